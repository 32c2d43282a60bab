"""Comparisons with the official implementations (same weights, same output, before any technique), with recordings of
people, of the checks of takes with damage, and of a study's driver with simulated workers; :mod:`tests.peers.__main__`
runs them."""
