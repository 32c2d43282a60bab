"""Stress marks of phonemes: moved, strengthened and weakened.

Every word of a dictionary has its own stress; in a sentence it depends on how the word is written (capitals are
stressed more) and what it is part of (of compounds, the weaker half loses some).
"""

from __future__ import annotations

from paretone.front_end.natural.phones import STRESSES, VOWELS

_, SECONDARY, PRIMARY = STRESSES
_HEAVY = frozenset("AIOWYʤʧ")
"""Phonemes of two sounds."""


def stressed(phonemes: str) -> bool:
    """Whether there is any stress in ``phonemes``."""
    return PRIMARY in phonemes or SECONDARY in phonemes


def unstressed(phonemes: str) -> str:
    """Without any stress."""
    return phonemes.replace(PRIMARY, "").replace(SECONDARY, "")


def weakened(phonemes: str) -> str:
    """With secondary stress in place of primary, and none in place of secondary, if there is primary stress."""
    if PRIMARY not in phonemes:
        return phonemes
    return phonemes.replace(SECONDARY, "").replace(PRIMARY, SECONDARY)


def emphasised(phonemes: str) -> str:
    """With primary stress: in place of the secondary, or on the first vowel."""
    if PRIMARY in phonemes:
        return phonemes
    return _on_first_vowel(phonemes, PRIMARY).replace(SECONDARY, PRIMARY)


def lightly_stressed(phonemes: str) -> str:
    """With secondary stress on the first vowel, if there is no stress at all."""
    return _on_first_vowel(phonemes, SECONDARY)


def weight(phonemes: str) -> int:
    """How much there is of a part of a word, in short sounds."""
    return len(phonemes) + sum(phoneme in _HEAVY for phoneme in phonemes)


def _on_first_vowel(phonemes: str, mark: str) -> str:
    if stressed(phonemes):
        return phonemes
    place = next((place for place, phoneme in enumerate(phonemes) if phoneme in VOWELS), None)
    return phonemes if place is None else phonemes[:place] + mark + phonemes[place:]
