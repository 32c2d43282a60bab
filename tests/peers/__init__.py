"""Comparisons with official implementations (same weights, same output, before any technique), recordings of people,
damage that checks of takes find, and a study's driver on simulated workers; :mod:`tests.peers.__main__` runs them."""
