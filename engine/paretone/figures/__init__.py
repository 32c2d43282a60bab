"""Plots as plain descriptions, the scales and marks they share, and writing them as SVG. Free of Qt."""
