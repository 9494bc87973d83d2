"""Data types and errors shared by all rooms. This room imports no other room of Gramercy."""
