"""Cut a text into tokens of semiotic classes and plain words.

From left to right every class is tried at each place; the longest match wins, of equals the first in :data:`CLASSES`.

After Ebden and Sproat, "The Kestrel TTS text normalization system", Natural Language Engineering 21, 2015. Own code,
not a library: ``wetext`` reads "$3.50" as "three point five dollars" and two fifths of 47 such texts wrongly;
``nemo_text_processing`` needs Pynini; ``num2words`` (LGPL) knows only numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from paretone.front_end import dates, names, quantities
from paretone.front_end.numbers import digits
from paretone.front_end.quantities import day_of_month, number
from paretone.front_end.semiotic import Around, Said, SemioticClass, Token
from paretone.front_end.written_forms import GREEK, MAGNITUDES, MONTH_STARTS, SLANG, UNITS, WEEKDAYS
from paretone.observer import may_stop

CLASSES: tuple[SemioticClass, ...] = (
    *names.TYPED,
    *dates.CLASSES,
    *names.NOTATIONS,
    *quantities.CLASSES,
    *names.NAMES,
    *quantities.PLAIN,
    *names.SIGNS_AND_ABBREVIATIONS,
)
_QUANTITIES = tuple(one for one in CLASSES if one.quantity)
_INSIDE = tuple(one for one in CLASSES if one.name == "cardinal")
"""For digits in the middle of a word."""
_DASH = re.compile(r"[-–—]|\.\.")
MOST_OF_A_RANGE = 60
"""Characters."""
_RANGE = re.compile(r" [-–—] |[-–—] ?| ?\.\.+ ?")
_GOES_ON = re.compile(r"-(?![a-z]{3})|/")
_PLAIN = re.compile(r"[^\W\d_Α-ω]+(?:'[^\W\d_]+)*")
_EASY = re.compile(
    r"(?=[a-z]*[aeiouy])(?![ivx]+\b)(?:[a-z]{3,}(?:'[a-z]+)?(?=[ ,;?)\"\x02]|!(?!=)|:(?!\S)|$)|[a-z]{1,2}(?= [a-z]))|"
    r"[A-Z][a-z]{2,}(?=,? [a-z]{2,})|[;?)“”\"]|,(?! [A-Z]{2}\b)|[.!](?=[\s\x02]|$)"
)
"""Plain words and marks, which need not be classified."""
_HARD = {*SLANG, "et", *WEEKDAYS, *map(str.lower, WEEKDAYS), *MONTH_STARTS, *filter(str.islower, UNITS)} - {"in", "a"}
_DIVIDES = re.compile(r" (?:[ivxIVX]+)[a-c]?\b")


def tokens(text: str, british: bool = False) -> Iterator[Token]:
    """Cut a folded ``text`` into tokens. Numeric dates have the month first, unless ``british``."""
    place = 0
    while place < len(text):
        may_stop()
        easy = _EASY.match(text, place)
        if easy and easy[0] not in _HARD and easy[0].lower() not in SLANG and not _DIVIDES.match(text, easy.end()):
            yield Token("", easy[0], easy[0])
            place = easy.end()
            continue
        end, token = _classified(text, place, british)
        if token is None:
            plain = _PLAIN.match(text, place)
            end = plain.end() if plain else place + 1
            token = Token("", text[place:end], text[place:end])
        yield token
        place = end


def _classified(text: str, place: int, british: bool) -> tuple[int, Token | None]:
    if text[place].isspace():
        return place, None
    end, kind, said = _longest(text, place, british, CLASSES)
    start, left_kind, left = place, "", None
    if _DASH.search(text, place, place + MOST_OF_A_RANGE):
        start, left_kind, left = _longest(text, place, british, _QUANTITIES)
    if left is not None and (dash := _RANGE.match(text, start)):
        last, right_kind, right = _longest(text, dash.end(), british, _QUANTITIES)
        joined = None if right is None or last <= end else _range(left, left_kind, right, right_kind, text[place:last])
        goes_on = _GOES_ON.match(text, last)
        if joined is not None and (goes_on is None or (right_kind == "time" and goes_on[0] == "/")):
            end, kind, said = last, "range", joined
    if said is None:
        return place, None
    words = re.sub(r"\d+", lambda match: digits(match[0]), str(said))
    return end, Token(kind, text[place:end], words, said.ends)


def _longest(text: str, place: int, british: bool, classes: tuple[SemioticClass, ...]) -> tuple[int, str, Said | None]:
    best: tuple[int, str, Said | None] = (place, "", None)
    if place and text[place - 1 : place + 1].isalnum() and text[place : place + 1].lower() not in ("", *GREEK):
        classes = _INSIDE if text[place].isdecimal() and not text[place - 1].isdecimal() else ()
    before = text[max(0, place - 40) : place]
    for one in classes:
        match = one.pattern.match(text, place)
        if match is None or match.end() <= best[0]:
            continue
        said = one.say(match, Around(before, text[match.end() : match.end() + 40], british))
        if said is not None:
            said = Said(said) if isinstance(said, str) else said
            best = match.end(), said.kind or one.name, said
    return best


_NUMBERS = ("cardinal", "ordinal", "fraction")


def _range(left: Said, left_kind: str, right: Said, right_kind: str, text: str) -> Said | None:
    """ "class to class": what one end leaves out, the other has."""
    both = Said(f"{left} to {right}", ends=right.ends)
    shared = re.search(r"^\D*(\d+)\D+(\d+)([kmMbB]n?)$", text)
    magnified = re.search(r"(\d[\d,]*(?:\.\d+)?)([kmMbB]n?)$", text)
    if left_kind == right_kind == "money" and shared and int(shared[1]) < int(shared[2]):
        return Said(f"{left.words} to {right}")
    if left_kind == right_kind == "time" and right.unit and not left.unit:
        return Said(left.words.removesuffix(" o'clock") + f" to {right}", ends=right.ends)
    hour = left_kind == "time" and not left.unit and right_kind == "cardinal"
    if left_kind == right_kind or hour or (left_kind in _NUMBERS and right_kind in _NUMBERS):
        return both
    if left_kind == "date" and left.before and right_kind in ("cardinal", "ordinal"):
        day = re.search(r"(\d{1,2})(?:st|nd|rd|th)?$", text)
        return Said(f"{left} to {day_of_month(int(day[1]))}") if day and 1 <= int(day[1]) <= 31 else None
    if right_kind == "date" and right.unit.startswith("of ") and left_kind in ("cardinal", "ordinal"):
        day = re.match(r"\d{1,2}", text)
        return Said(f"{right.before} {day_of_month(int(day[0]))} to {right.words} {right.unit}") if day else None
    if left_kind == "money" and (right_kind in _NUMBERS or (right_kind == "measure" and magnified)):
        more = f"{number(magnified[1])} {MAGNITUDES[magnified[2]]}" if magnified else right.words
        return Said(f"{left.words} to {more} {left.unit}")
    if left_kind in _NUMBERS and (right_kind in ("money", "measure", "time") or right.unit[1:2] == "."):
        many = dict(UNITS.values()).get(right.unit, right.unit) if right_kind == "measure" else right.unit
        return Said(f"{left} to {replace(right, unit=many)}", ends=right.ends)
    return None
