"""What English writes in short: units, currencies, abbreviations, marks and letters, with their words.

The tables are rows of ``resources/lexicon/written_forms.tsv``: name of the table, written form, spoken words; of forms
that mean something else elsewhere and of notations also their class and the text around them."""

from __future__ import annotations

import re
from functools import cache

from paretone.paths import resource


@cache
def _tables() -> dict[str, list[tuple[str, ...]]]:
    found: dict[str, list[tuple[str, ...]]] = {}
    for row in resource("lexicon", "written_forms.tsv").read_text(encoding="utf-8").splitlines():
        if not row.startswith("#"):
            name, *fields = row.split("\t")
            found.setdefault(name, []).append(tuple(fields))
    return found


def rows(name: str) -> list[tuple[str, ...]]:
    """Rows of the table called ``name``: the written form, its words, and whatever else the table has."""
    return _tables()[name]


def listed(name: str) -> tuple[str, ...]:
    """Written forms in the table called ``name``."""
    return tuple(short for short, *_ in rows(name))


def table(name: str) -> dict[str, str]:
    """Spoken words by written form, from the table called ``name``."""
    return {short: words for short, words, *_ in rows(name)}


def _either(name: str) -> dict[str, str]:
    """The same with a capital, too, unless that means something else; single letters only as they are."""
    small = table(name)
    capital = {short[0].upper() + short[1:]: words.capitalize() for short, words in small.items() if len(short) > 1}
    return capital | small


MONTHS = listed("month")
WEEKDAYS = table("weekday")
MONTH_STARTS = {name[:3]: name for name in MONTHS} | {"Sept": "September"}
CURRENCIES = {sign: (one, many, cent, cents) for sign, one, many, cent, cents in rows("currency")}
MAGNITUDES = table("magnitude")
UNITS = {sign: (one, many) for sign, one, many in rows("unit")}
"""By sign: one and several."""
TITLES = _either("title")
"""Abbreviations whose full stop never ends a sentence, because a word always follows."""
COUNTED = _either("counted")
"""Abbreviations before a number or a letter; elsewhere their letters are other words."""
BEFORE_SMALL = _either("before small")
"""Abbreviations whose full stop a small letter or a comma follows."""
STREETS = table("street")
ENDINGS = table("ending") | WEEKDAYS | {
    short: name for short, name in (STREETS | MONTH_STARTS).items() if short not in ("St", "Dr", "Hwy", "May")
}  # fmt: skip
"""Abbreviations that may end a sentence: they do if a capital follows the full stop."""
ROADS = r"\b(?:Hwy\.?|Rte\.?|Route|Highway|Interstate|[Rr]unways?|[Rr]wy\.?) "
SLANG = table("slang")
"""Short forms without a full stop."""
GREEK = table("greek")
LATEX = {name: letter for letter, name in GREEK.items()} | table("latex")
"""Signs of formulas, and commands without sound."""
ELEMENTS = listed("element")
SIGNS = table("sign") | {
    sign: many for sign, (_, many, *_) in CURRENCIES.items() if len(sign) == 1 and not sign.isalnum()
}
"""Symbols with a name wherever they stand."""
STARTERS = frozenset(listed("starter"))
"""Words that begin a sentence after an abbreviation ("in the U.S. They"); other capitals are names ("U.S. Senate")."""


def begins_sentence(word: str) -> bool:
    return not STARTERS.isdisjoint((word, re.split("['’]", word)[0]))
