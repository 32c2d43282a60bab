"""Searched grids on the command line."""
