"""Plots: palettes, axes, cursors, export."""
