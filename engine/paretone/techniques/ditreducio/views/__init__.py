"""Figures of the DiTReducio paper, computed on any model that it applies to."""
