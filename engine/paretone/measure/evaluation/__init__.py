"""Judges of speech with one interface, and the published lists of sentences they are used with."""
