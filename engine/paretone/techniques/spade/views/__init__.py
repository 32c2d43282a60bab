"""Figures of the SPADE paper."""
