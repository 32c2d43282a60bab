"""Recordings and spectrograms: reading, resampling, prompt preparation and mel front ends."""
