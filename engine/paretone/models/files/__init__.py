"""Checkpoints on disk and on the way there: reading, recognising, downloading."""
