"""The English phone front end of the bundled models: text to phones, phones to seconds, seconds to frames."""

MOST_CHARACTERS = 50_000
"""Longest text of one take."""
