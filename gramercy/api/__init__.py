"""The Python interface of those who read releases: a catalogue, its releases, their matrices."""
