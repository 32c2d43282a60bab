"""Words whose neighbours say how they are pronounced, where their part of speech, as the tagger finds it, does not."""

from __future__ import annotations

from collections.abc import Sequence

_AFTER: dict[str, tuple[frozenset[str], str]] = {
    "bass": (frozenset("player players guitar guitars clef line lines drum drums voice voices notes".split()), "JJ"),
    "dove": (frozenset("into in under down off headfirst".split()), "VBD"),
    "minute": (
        frozenset(
            "amount amounts change changes detail details difference differences measurements particles quantities "
            "traces".split()
        ),
        "JJ",
    ),
    "tear": (frozenset(["in"]), "VB"),
}
"""Words that come next, and the part of speech that they say."""
_NOT_OBJECTS = frozenset("did do does i might must n't never not strongly they to we who will would you".split())
"""In front of "object to", which is a verb then."""
_METAL = frozenset(
    "acid bullet bullets content contamination crystal glass level levels mine mines ore paint pipe pipes poisoning "
    "shot weight weights".split()
)
_LEAD = "lˈɛd"


def settled_tag(words: Sequence[str], place: int, tag: str) -> str:
    """The part of speech of the word at ``place``, which the tagger takes for ``tag``."""
    word, following = words[place].lower(), _following(words, place)
    if word == "object" and following == "to":
        return "VB" if place and words[place - 1].lower() in _NOT_OBJECTS else tag
    others, other = _AFTER.get(word, (frozenset(), tag))
    return other if following in others else tag


def settled_reading(words: Sequence[str], place: int) -> str | None:
    """Phonemes of the word at ``place`` that go with no part of speech: of the metal."""
    return _LEAD if words[place].lower() == "lead" and _following(words, place) in _METAL else None


def _following(words: Sequence[str], place: int) -> str:
    return words[place + 1].lower() if place + 1 < len(words) else ""
