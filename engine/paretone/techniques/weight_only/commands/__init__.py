"""Packed weights on the command line."""
