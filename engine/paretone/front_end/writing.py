"""Write out any English text in words, with capitals and punctuation, ready to be read sentence by sentence.

Characters are folded to a small set (quotes straight, Greek and symbols named); addresses and abbreviations are written
out, then numbers, dates and money, then the remaining symbols. Capitals stay, because they mark names and letters to be
spelled; so do all audible marks. Characters without English sound (emoji, other scripts) are dropped and reported.
Readings follow the teacher of natural speech where it is right.

Own code, not a library: ``wetext`` reads "$3.50" as "three point five dollars" and "555" in a telephone number as "five
hundred and fifty five", leaves "Main St." and "Chapter IV", and adds 49 MB; ``num2words`` (LGPL) knows only numbers.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

from paretone.front_end.numbers import MONTHS, REGNAL_NAMES, cardinal, ordinal, spell_numbers

TITLES = {
    "Mr": "Mister",
    "Mrs": "Missus",
    "Ms": "Miz",
    "Messrs": "Messieurs",
    "Prof": "Professor",
    "Rev": "Reverend",
    "Gen": "General",
    "Col": "Colonel",
    "Capt": "Captain",
    "Cmdr": "Commander",
    "Lt": "Lieutenant",
    "Sgt": "Sergeant",
    "Sen": "Senator",
    "Gov": "Governor",
    "Hon": "Honorable",
    "Mt": "Mount",
    "Ft": "Fort",
    "Fig": "Figure",
    "fig": "figure",
    "Eq": "Equation",
    "Sec": "Section",
    "Ch": "Chapter",
    "Vol": "Volume",
    "vol": "volume",
    "approx": "approximately",
    "vs": "versus",
    "cf": "compare",
}
"""Abbreviations whose full stop never ends a sentence, because a word always follows."""

ENDINGS = {
    "Jr": "Junior",
    "Sr": "Senior",
    "etc": "et cetera",
    "Inc": "Incorporated",
    "Ltd": "Limited",
    "Corp": "Corporation",
    "Co": "Company",
    "Bros": "Brothers",
    "Ave": "Avenue",
    "Blvd": "Boulevard",
    "Rd": "Road",
    "Dept": "Department",
    "dept": "department",
    "est": "established",
    "Jan": "January",
    "Feb": "February",
    "Mar": "March",
    "Apr": "April",
    "Jun": "June",
    "Jul": "July",
    "Aug": "August",
    "Sept": "September",
    "Sep": "September",
    "Oct": "October",
    "Nov": "November",
    "Dec": "December",
    "Mon": "Monday",
    "Tue": "Tuesday",
    "Tues": "Tuesday",
    "Wed": "Wednesday",
    "Thu": "Thursday",
    "Thurs": "Thursday",
    "Fri": "Friday",
}
"""Abbreviations that may end a sentence: they do if a capital follows the full stop."""

TOP_LEVEL = "com org net edu gov mil int info app dev io ai uk de fr eu ca us co me tv"
_EMAIL = re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b")
_ADDRESS = re.compile(
    rf"\b(?:https?://|www\.)[^\s<>\"]*[\w/]|\b(?:[\w-]+\.)+(?:{TOP_LEVEL.replace(' ', '|')})\b(?:/[\w./~?=&%#-]*\w)?",
)
_ADDRESS_MARKS = {".": " dot ", "/": " slash ", "-": " dash ", "_": " underscore ", "@": " at ", ":": " colon "} | {
    "?": " question mark ",
    "=": " equals ",
    "&": " and ",
    "#": " hash ",
    "%": " percent ",
    "+": " plus ",
    "~": " tilde ",
}


def saint_or_street(match: re.Match[str], text: str) -> str:
    """ "St. Paul", "Dr. Li", but "Main St." and "Lake Dr."."""
    before = text[: match.start()].rstrip(" ").rpartition(" ")[2]
    after_name = bool(re.fullmatch(r"[A-Z][a-z]+|\d+(?:st|nd|rd|th)", before))
    if match[2] and not after_name:
        return {"St": "Saint", "Dr": "Doctor"}[match[1]]
    if not after_name:
        return {"St": "Street", "Dr": "Doctor"}[match[1]]
    return {"St": "Street", "Dr": "Drive"}[match[1]] + ("." if match[2] or not text[match.end() :].strip() else "")


def spell_addresses(text: str) -> str:
    """Spell web and mail addresses as over the telephone, without the scheme."""
    text = _EMAIL.sub(lambda match: _spoken_address(match[0]), text)
    return _ADDRESS.sub(lambda match: _spoken_address(re.sub(r"^https?://", "", match[0])), text)


def _spoken_address(address: str) -> str:
    for mark, words in _ADDRESS_MARKS.items():
        address = address.replace(mark, words)
    return " ".join(
        word.upper() if word in ("www", "io", "ai", "uk", "us", "tv", "eu", "ca") else word for word in address.split()
    )


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
    "„": '"',
    "«": '"',
    "»": '"',
    "‐": "-",
    "‑": "-",
    "−": "-",
    "‒": "–",
    "―": "—",
    "•": " ",
    "·": " ",
    "¿": " ",
    "¡": " ",
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
    "¢": " cents ",
}
MICRO = {"µs": " microseconds", "µm": " micrometers", "µg": " micrograms"}
KEPT = frozenset(" \n\t.,;:?!'\"-–()[]{}&@#+=%°$£€¥₹^*_/\\|<>~“”—…")

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

LONGEST_WORD = 80
"""Maximum length of an unbroken run in characters; longer ones (addresses, noise) are cut."""


@dataclass(frozen=True)
class Normalised:
    """Text in spoken form, with the characters that cannot be spoken."""

    text: str
    dropped: tuple[str, ...]
    """Each dropped character once, in order of appearance."""


def fold_characters(text: str) -> tuple[str, tuple[str, ...]]:
    """Reduce ``text`` to Latin letters, digits and a few symbols; return it with the dropped characters."""
    for symbol, words in MICRO.items():
        text = text.replace(symbol, words)
    found: list[str] = []
    dropped: dict[str, None] = {}
    for character in text:
        stays = character in KEPT or (character.isalpha() and "LATIN" in unicodedata.name(character, ""))
        spoken = character if stays else _fold(character, found[-1] if found else "")
        if spoken is None:
            dropped[character] = None
            spoken = " "
        found.append(spoken)
    return "".join(found), tuple(dropped)


def _fold(character: str, before: str) -> str | None:
    if character in FOLDED:
        return FOLDED[character]
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
        parts = [_fold(part, "") for part in plain]
        if all(part is not None for part in parts):
            return "".join(part for part in parts if part)
    return None


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
    """ "1534-3" is a number and its part, not a range."""
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
"""Applied first: later steps would read these differently."""

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
"""Applied last, to symbols that remain."""
_TITLE = re.compile(rf"\b({'|'.join(_TITLES)})\.(?=\s|-)|\b(vs|Mr|Ms)\b(?!\.)")
_ENDING = re.compile(rf"\b({'|'.join(_ENDINGS)})\.(\s+[A-Z]|[”\"')]*\s*$)?")
_SAINT = re.compile(r"\b(St|Dr)\.(?=(\s+[A-Z])?)")
_DOTTED_LAST = re.compile(r"(?<![\w.'])((?:[A-Za-z]\.)+)([”\"')]*)$")


def write_out(text: str) -> Normalised:
    plain, dropped = fold_characters(unicodedata.normalize("NFC", text))
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
