"""The Python interface for analysts: a catalogue, its releases, their matrices."""
