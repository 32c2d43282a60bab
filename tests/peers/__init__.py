"""Comparisons with the official implementations (same weights, same output, before any technique), with recordings of
people, and of a study's driver with simulated workers; :mod:`tests.peers.__main__` runs them."""
