"""Roofline: the cost of each part of a model, its lower time bound on this machine, and its measured time."""
