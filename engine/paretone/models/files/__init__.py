"""Checkpoint files: download, recognition, reading."""
