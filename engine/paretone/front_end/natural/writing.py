"""Any text to plain English words with capitals and all punctuation, ready to be read sentence by sentence.

The steps are those of :mod:`paretone.front_end.normalisation`, with which this shares numbers, dates, money and
addresses; unlike there, capitals stay (they say what is a name, and what are letters to be named), and so do all marks
that are heard. Readings follow the teacher of natural speech where it reads rightly.

Own code, not a library: ``wetext`` reads "$3.50" as "three point five dollars" and "555" in a telephone number as
"five hundred and fifty five", leaves "Main St." and "Chapter IV", and brings 49 MB; ``num2words`` (LGPL) knows numbers
only.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from paretone.front_end.abbreviations import ENDINGS, TITLES, saint_or_street, spell_addresses
from paretone.front_end.normalisation import FOLDED, KEPT, LONGEST_WORD, SYMBOLS, Normalised, fold_characters
from paretone.front_end.numbers import MONTHS, REGNAL_NAMES, cardinal, ordinal, spell_numbers

_HEARD = frozenset("“”—…")
_FOLDED = {symbol: words for symbol, words in FOLDED.items() if not symbol.isalpha() and symbol not in _HEARD} | {
    "―": "—",
    "•": " ",
    "·": " ",
    "¢": " cents ",
}
_KEPT = KEPT | _HEARD

_TITLES = (
    TITLES
    | {"Mrs": "Mrs", "Messrs": "Messrs", "Apt": "Apartment", "Hwy": "Highway", "Maj": "Major"}
    | {
        "Adm": "Admiral",
        "Atty": "Attorney",
        "Pres": "President",
        "Rep": "Representative",
        "Supt": "Superintendent",
        "Cpl": "Corporal",
    }
)
_ENDINGS = (
    ENDINGS
    | {"Univ": "University", "Assn": "Association", "Govt": "Government", "Ln": "Lane"}
    | {
        "etc": "etc",
        "Bldg": "Building",
        "Pkwy": "Parkway",
        "Sat": "Saturday",
        "Sun": "Sunday",
        "ed": "edition",
    }
)


def _numerals() -> list[str]:
    """From I to XXXIX."""
    ones = ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX")
    return [tens + one for tens in ("", "X", "XX", "XXX") for one in ones][1:]


_MONTH_NAMES = [month.capitalize() for month in MONTHS]
_MONTH_STARTS = {name[:3]: name for name in _MONTH_NAMES} | {"Sept": "September"}
_MONTH = "|".join(sorted((*_MONTH_NAMES, *_MONTH_STARTS), key=len, reverse=True))
_CODES = {"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "INR": "₹"}
_COMMON_DENOMINATORS = frozenset((*range(2, 11), 12, 16, 20, 32, 64, 100))
_DIVISIONS = "Chapter|Part|Act|Scene|Section|Volume|Book|Phase|Article|Level|Stage|Class|Grade|Episode|Round|Type|Mark"
_ROMAN = {numeral: number for number, numeral in enumerate(_numerals(), 1)}
_AFTER_REIGN = "was|is|had|of|and|ruled|reigned|became|died|came|ordered"

Spell = Callable[[re.Match[str]], str] | str


def _day_first(match: re.Match[str]) -> str:
    day = int(match[2])
    if not 1 <= day <= 31:
        return match[0]
    return f"{match[1] or 'the '}{_day(day)} of {_month(match[3])}"


def _day(day: int) -> str:
    return ordinal(day).replace(" ", "-")


def _month(name: str) -> str:
    return _MONTH_STARTS.get(name[:4], _MONTH_STARTS[name[:3]])


def _month_and_day(match: re.Match[str]) -> str:
    """A month and a day with a slash, unless it reads as a fraction."""
    month, day = int(match[1]), int(match[2])
    fraction = month < day and day in _COMMON_DENOMINATORS
    if fraction or not (1 <= month <= 12 and 1 <= day <= 31):
        return match[0]
    return f"{_MONTH_NAMES[month - 1]} {_day(day)}"


def _mixed_half(match: re.Match[str]) -> str:
    """ "2 1/2" is "two and a half"."""
    return f"{match[1]} and a {'half' if match[2] == '2' else 'quarter'}"


def _several(match: re.Match[str]) -> str:
    """ "52s" is "fifty twos"."""
    words = cardinal(int(match[1]))
    return f" {words[:-1]}ies" if words.endswith("y") else f" {words}es" if words.endswith("x") else f" {words}s"


def _part(match: re.Match[str]) -> str:
    """ "1534-3" is no range but a number and its part."""
    return f"{match[1]} {match[2]}"


_FIRST: tuple[tuple[re.Pattern[str], Spell], ...] = (
    (re.compile(r"\b([eE])\.g\."), "E.G."),
    (re.compile(r"\b([iI])\.e\."), "I.E."),
    (re.compile(r"\bPh\.? ?D\b\.?"), "P.H.D."),
    (re.compile(r"\b(?:aka|AKA|a\.k\.a\.)(?!\w)"), "also known as"),
    (re.compile(r"\bNo\. ?(?=\d)"), "Number "),
    (re.compile(r"\bNos\. ?(?=\d)"), "Numbers "),
    (re.compile(r"\bno\. ?(?=\d)"), "number "),
    (re.compile(r"\bpp\. ?(?=\d)"), "pages "),
    (re.compile(r"\bp\. ?(?=\d)"), "page "),
    (re.compile(r"\bw/o\b"), "without"),
    (re.compile(r"\bw/ ?(?=[a-z])"), "with "),
    (re.compile(r"\b[vV](?=\d+\.\d)"), "version "),
    (re.compile(r"\bSt\. ?(?=\d)"), "Street "),
    (re.compile(r"\b9/11\b"), "nine eleven"),
    (re.compile(r"\b(\d+) 1/([24])\b(?!/)"), _mixed_half),
    (re.compile(r"(?<![\d/.$£€])\b(\d{1,2})/(\d{1,2})\b(?![\d/.]\d|/)"), _month_and_day),
    (re.compile(rf"\b(the )?(\d{{1,2}}) (?:of )?({_MONTH})\b(?:\.(?= ))?"), _day_first),
    (
        re.compile(rf"\b({_MONTH})\.? (?=\d{{1,2}}(?:st|nd|rd|th)?\b(?![:%]))"),
        lambda match: f"{_month(match[1])} ",
    ),
    (re.compile(rf"\b({'|'.join(_CODES)}) ?(?=\d)"), lambda match: _CODES[match[1]]),
    (re.compile(rf"(\d[\d,.]*) ?({'|'.join(_CODES)})\b"), lambda match: _CODES[match[2]] + match[1]),
    (
        re.compile(r"(\d+(?:\.\d+)?) ?(?: cents |ct\b)"),
        lambda match: f"{match[1]} {'cent' if match[1] == '1' else 'cents'}",
    ),
    (re.compile(r"\b(\d+)'(\d{1,2})(?:\"|”|'')"), r"\1 foot \2"),
    (re.compile(r"\b(\d+) ?ft\.? (\d+) ?in\b\.?"), r"\1 feet \2 inches"),
    (re.compile(r"\b(\d+)[ -]?in\.(?= [a-z])"), r"\1 inches"),
    (re.compile(rf"\b({_DIVISIONS}) ([IVX])\b(?!')"), lambda match: f"{match[1]} {_ROMAN[match[2]]}"),
    (
        re.compile(rf"\b({_DIVISIONS.lower()}) ([VX]|I(?! [a-z]))\b(?!')"),
        lambda match: f"{match[1]} {_ROMAN[match[2]]}",
    ),
    (
        re.compile(rf"\b({'|'.join(sorted(REGNAL_NAMES))}) ([IVX]{{2,}})\b"),
        lambda match: f"{match[1]} the {_day(_ROMAN[match[2]])}" if match[2] in _ROMAN else match[0],
    ),
    (re.compile(r"\b(\d[\d,.]*) ?ha\b"), lambda match: f"{match[1]} {'hectare' if match[1] == '1' else 'hectares'}"),
    (
        re.compile(rf"\b({'|'.join(sorted(REGNAL_NAMES))}) ([IVX])\b(?= (?:{_AFTER_REIGN})\b|[,.;:!?')]|$|'s)"),
        lambda match: f"{match[1]} the {ordinal(_ROMAN[match[2]])}",
    ),
    (
        re.compile(r"(?<![\w.,$£€¥₹-])([1-9]\d)00\b(?![.,]\d|-\d|–\d)"),
        lambda match: match[0] if match[1][1] == "0" else f"{cardinal(int(match[1]))} hundred",
    ),
    (re.compile(r"#(?=[A-Za-z])"), " hashtag "),
    (re.compile(r"\b([A-Z])&([A-Z])\b"), r"\1 and \2"),
    (re.compile(r"\b([CF])#"), r"\1 sharp"),
    (re.compile(r"(?<!\S)\.(?=[A-Za-z])"), "dot "),
    (re.compile(r"(?<=[A-Z])-?(\d+)s\b"), _several),
    (re.compile(r"\b(\d+)-([a-z]+)-([a-z]+)\b"), r"\1 \2 \3"),
    (re.compile(r"(?<=\d)-(?=[A-Za-z])"), " "),
    (re.compile(r"(?<=\d)\.\.+(?=\d)"), " to "),
    (re.compile(r"(?<=[A-Z])\.(?=\d{2})"), " "),
    (re.compile(r"\b(\d{3,})-(\d)\b(?!-)"), _part),
    (re.compile(r"\bet al\.(?!$)"), "et al"),
)
"""Before anything else: what the steps after it would read in another way."""

_LAST: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?<![\w.'])([A-Z](?: [A-Z])+)(?![\w'])"), ""),
    (re.compile(r"(?<=[a-z0-9])\.(?=[a-z])"), " dot "),
    (re.compile(r"%"), " percent "),
    (re.compile(r"°"), " degrees "),
    (re.compile(r"\$"), " dollars "),
    (re.compile(r"£"), " pounds "),
    (re.compile(r"€"), " euros "),
    (re.compile(r"¥"), " yen "),
    (re.compile(r"₹"), " rupees "),
    (re.compile(r"[\^*_\\|<>~=]"), " "),
    (re.compile(r"(?<![^\s(\"'“])(?:--?|–)(?=\w)"), " "),
    (re.compile(r"(?<!\S)\.(?=\w)"), "dot "),
    (re.compile(r"\s+"), " "),
    (re.compile(r" +(?=[,.;:!?](?![.\w]))"), ""),
)
"""What is left when everything else is in words."""
_TITLE = re.compile(rf"\b({'|'.join(_TITLES)})\.(?=\s|-)|\b(vs|Mr|Ms)\b(?!\.)")
_ENDING = re.compile(rf"\b({'|'.join(_ENDINGS)})\.(\s+[A-Z]|[”\"')]*\s*$)?")
_SAINT = re.compile(r"\b(St|Dr)\.(?=(\s+[A-Z])?)")
_DOTTED_LAST = re.compile(r"(?<![\w.'])((?:[A-Za-z]\.)+)([”\"')]*)$")


def write_out(text: str) -> Normalised:
    """``text``, one sentence or more, in words."""
    plain, dropped = fold_characters(unicodedata.normalize("NFC", text), _FOLDED, _KEPT, accents=True)
    plain = re.sub(rf"\S{{{LONGEST_WORD}}}", r"\g<0> ", re.sub(r"\s+", " ", plain).strip())
    for pattern, words in _FIRST:
        plain = pattern.sub(words, plain)
    plain = spell_addresses(plain)
    for pattern, words in SYMBOLS:
        plain = pattern.sub(words, plain)
    plain = _expanded(plain)
    plain = spell_numbers(plain, hyphens=True)
    (letters, _), *rest = _LAST
    plain = letters.sub(lambda match: ".".join(match[1].split()) + ".", plain)
    for pattern, words in rest:
        plain = pattern.sub(words, plain)
    return Normalised(_DOTTED_LAST.sub(r"\1.\2", plain.strip()), dropped)


def _expanded(text: str) -> str:
    text = _SAINT.sub(lambda match: saint_or_street(match, text), text)
    text = _TITLE.sub(lambda match: _TITLES[match[1] or match[2]], text)
    return _ENDING.sub(lambda match: _ENDINGS[match[1]] + (f".{match[2]}" if match[2] is not None else ""), text)
