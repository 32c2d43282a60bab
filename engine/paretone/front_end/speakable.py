"""Texts that cannot be spoken, and characters that have no sound, in sentences for the user."""

from __future__ import annotations

import unicodedata

from paretone.errors import TextError
from paretone.wording import grouped

MOST_CHARACTERS = 50_000
LARGEST_TEXT = 1 << 24
"""Bytes of a file with a text."""
MOST_NAMED = 8
"""Maximum number of characters or words named in a sentence for the user."""


def require_text(text: str) -> None:
    """Raise :class:`TextError` for an empty text and for more than :data:`MOST_CHARACTERS`."""
    if not text.strip():
        raise TextError("There is no text to speak; type at least one word.")
    if len(text) > MOST_CHARACTERS:
        raise TextError(
            f"The text has {grouped(len(text))} characters, and {grouped(MOST_CHARACTERS)} is the limit; speak it in "
            "several parts."
        )


def nothing_to_say(dropped: tuple[str, ...]) -> str:
    """Why a text without words cannot be spoken; ``dropped`` are its characters without sound."""
    if dropped:
        return f"Nothing in the text can be spoken ({name_characters(dropped)}); type English words."
    return "The text has no words, only punctuation; type at least one word."


def name_characters(characters: tuple[str, ...]) -> str:
    """Characters for a sentence: each with its Unicode name if there are few, else the first ones and how many more."""
    if len(characters) <= 3:
        return ", ".join(f"{one} ({unicodedata.name(one, f'U+{ord(one):04X}').lower()})" for one in characters)
    rest = len(characters) - MOST_NAMED
    return " ".join(characters[:MOST_NAMED]) + (f" and {rest} more" if rest > 0 else "")
