"""Plots as plain descriptions, their shared scales and marks, and their SVG form. Free of Qt."""
