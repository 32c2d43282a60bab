"""Measurements: time, memory, the machine, loudness, fidelity, intelligibility."""
