"""Searched grids in studies."""
