"""Judges of speech behind one interface, and the published lists of sentences they are used with."""
