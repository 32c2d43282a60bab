"""Modules that exports take along: each runs without Paretone, with what its first lines name."""
