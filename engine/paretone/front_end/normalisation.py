"""Any text to plain spoken English: lower-case words, ``. , ? !`` for pauses, single capitals for letters to be named.

The steps, in this order: characters are folded to a small set (accents off, quotes straight, Greek and symbols named),
addresses and abbreviations are written out, then numbers, then initialisms, then what symbols are left. Characters that
English speech has nothing for (emoji, other scripts) are dropped and reported.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Set
from dataclasses import dataclass

from paretone.front_end.abbreviations import expand_abbreviations, spell_addresses, spell_initialisms
from paretone.front_end.lexicon import Lexicon
from paretone.front_end.numbers import spell_numbers

GREEK = dict(
    zip(
        "αβγδεζηθικλμνξοπρςστυφχψω",
        "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma sigma tau "
        "upsilon phi chi psi omega".split(),
        strict=True,
    )
)

FOLDED = {
    "‘": "'",
    "’": "'",
    "‛": "'",
    "′": "'",
    "`": "'",
    "“": '"',
    "”": '"',
    "„": '"',
    "«": '"',
    "»": '"',
    "‐": "-",
    "‑": "-",
    "−": "-",
    "‒": "–",
    "—": " , ",
    "―": " , ",
    "…": ", ",
    "•": ", ",
    "·": ", ",
    "¿": " ",
    "¡": " ",
    "ß": "ss",
    "æ": "ae",
    "Æ": "Ae",
    "œ": "oe",
    "Œ": "Oe",
    "ø": "o",
    "Ø": "O",
    "ł": "l",
    "Ł": "L",
    "đ": "d",
    "Đ": "D",
    "ð": "th",
    "þ": "th",
    "Þ": "Th",
    "ı": "i",
    "²": "^2",
    "³": "^3",
    "℃": "°C",
    "℉": "°F",
    "№": " number ",
    "™": " ",
    "®": " ",
    "©": " copyright ",
    "§": " section ",
    "×": " times ",
    "÷": " divided by ",
    "±": " plus or minus ",
    "≈": " about ",
    "≤": " at most ",
    "≥": " at least ",
    "≠": " is not equal to ",
    "∞": " infinity ",
    "√": " the square root of ",
    "→": " to ",
    "µs": " microseconds",
    "µm": " micrometers",
    "µg": " micrograms",
}
KEPT = frozenset(" \n\t.,;:?!'\"-–()[]{}&@#+=%°$£€¥₹^*_/\\|<>~")

SYMBOLS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\band/or\b"), "and or"),
    (re.compile(r"(?<![\d ]m)(?<!km)\^2\b"), " squared"),
    (re.compile(r"(?<![\d ]m)\^3\b"), " cubed"),
    (re.compile(r"(?<=\w)\^(?=\d\d|[14-9a-z])"), " to the "),
    (re.compile(r"#(?=\d)"), " number "),
    (re.compile(r"#(?=\w)"), " hash "),
    (re.compile(r"~(?=[\d$£€])"), " about "),
    (re.compile(r"&"), " and "),
    (re.compile(r"@"), " at "),
    (re.compile(r"(?<=[a-zA-Z])\+\+"), " plus plus"),
    (re.compile(r"\+"), " plus "),
    (re.compile(r"==?"), " equals "),
    (re.compile(r"(?<=\d|\s)<=?(?=\s|\d)"), " is less than "),
    (re.compile(r"(?<=\d|\s)>=?(?=\s|\d)"), " is greater than "),
)
"""Symbols that are named before numbers are spelled out."""

LEFT_OVER: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?<=[a-z0-9])\.(?=[a-z])"), " dot "),
    (re.compile(r"%"), " percent "),
    (re.compile(r"°"), " degrees "),
    (re.compile(r"\$"), " dollars "),
    (re.compile(r"£"), " pounds "),
    (re.compile(r"€"), " euros "),
    (re.compile(r"¥"), " yen "),
    (re.compile(r"₹"), " rupees "),
    (re.compile(r"(?<=\w)/(?=\w)"), " slash "),
    (re.compile(r"\s-+\s|\s*–\s*|--+|[()\[\]{};|]|:(?!\w)|\n\s*\n"), ", "),
    (re.compile(r"(?<![a-zA-Z])'(?!(?:tis|twas|em|til|cause|round|n)\b)|'(?![a-zA-Z])"), " "),
    (re.compile(r"[^a-zA-Z'.,?!]"), " "),
)
"""Characters for a pause, and characters without sound."""

LONGEST_WORD = 80
"""Characters after which an unbroken run is cut, which only addresses and noise come near."""


@dataclass(frozen=True)
class Normalised:
    """Text as it is spoken, and the characters that could not be."""

    text: str
    dropped: tuple[str, ...]
    """Each dropped character once, in the order of appearance."""


def normalise(text: str, lexicon: Lexicon) -> Normalised:
    """Write ``text`` out as it is spoken."""
    plain, dropped = fold_characters(text)
    plain = re.sub(r"[^\S\n]+", " ", plain)
    plain = re.sub(rf"\S{{{LONGEST_WORD}}}", r"\g<0> ", plain)
    plain = spell_addresses(plain)
    for pattern, words in SYMBOLS:
        plain = pattern.sub(words, plain)
    plain = spell_numbers(expand_abbreviations(plain))
    plain = spell_initialisms(plain, lexicon)
    for pattern, words in LEFT_OVER:
        plain = pattern.sub(words, plain)
    plain = re.sub(r"\s+", " ", re.sub(r"[a-zA-Z']{2,}", lambda match: match[0].lower(), plain))
    plain = re.sub(r" (?=[.,?!])", "", plain)
    plain = re.sub(r"[.,?!]*([.?!])[.,?!]*|,+", lambda match: match[1] or ",", plain)
    plain = re.sub(r"(?<=[.,?!])(?=\w)", " ", plain).strip(" ,")
    return Normalised(plain, dropped)


def fold_characters(
    text: str, folded: Mapping[str, str] = FOLDED, kept: Set[str] = KEPT, accents: bool = False
) -> tuple[str, tuple[str, ...]]:
    """``text`` in ASCII and a few symbols, and the characters for which there is nothing. ``folded`` says how symbols
    are written, ``kept`` which stay; with ``accents`` Latin letters keep theirs."""
    for symbol in ("µs", "µm", "µg"):
        text = text.replace(symbol, FOLDED[symbol])
    found: list[str] = []
    dropped: dict[str, None] = {}
    for character in text:
        stays = character in kept or (accents and character.isalpha() and "LATIN" in unicodedata.name(character, ""))
        spoken = character if stays else _fold(character, found[-1] if found else "", folded)
        if spoken is None:
            dropped[character] = None
            spoken = " "
        found.append(spoken)
    return "".join(found), tuple(dropped)


def _fold(character: str, before: str, folded: Mapping[str, str]) -> str | None:
    if character in folded:
        return folded[character]
    if (character.isascii() and character.isalnum()) or character in KEPT:
        return character
    if character.lower() in GREEK:
        return f" {GREEK[character.lower()]} "
    if character.isspace():
        return " "
    category = unicodedata.category(character)
    if category in ("Mn", "Cf", "Cc"):
        return ""
    if category == "Nd":
        return str(unicodedata.decimal(character))
    expanded = unicodedata.normalize("NFKD", character)
    if "⁄" in expanded:
        return (" " if before.isdigit() else "") + expanded.replace("⁄", "/")
    plain = "".join(part for part in expanded if unicodedata.category(part) != "Mn")
    if plain and plain != character:
        parts = [_fold(part, "", folded) for part in plain]
        if all(part is not None for part in parts):
            return "".join(part for part in parts if part)
    return None
