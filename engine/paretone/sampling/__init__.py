"""Sampling loops: time grids, integration, guidance, decoding, demasking, and skipped modules."""
