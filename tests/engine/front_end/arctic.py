"""What models that read flite's phones have next to their weights: the phones, and how long each lasts."""

from __future__ import annotations

from pathlib import Path

from engine.front_end.durations import DurationTable
from engine.front_end.phones import CONSONANTS, PAUSE, VOWELS, PhoneVocabulary

VOCABULARY = PhoneVocabulary((PAUSE, *sorted(VOWELS | CONSONANTS)))
DURATION_FILE = Path(__file__).with_name("durations.json")


def duration_table() -> DurationTable:
    """Of the voices slt and rms."""
    return DurationTable.load(DURATION_FILE)
