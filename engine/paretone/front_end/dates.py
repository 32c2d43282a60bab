"""Dates, periods and times of day."""

from __future__ import annotations

import re

from paretone.front_end.numbers import cardinal, digits, ordinal, plural, short, year
from paretone.front_end.quantities import TAKES, day_of_month, number
from paretone.front_end.semiotic import FORMS, Around, Said, one_of, semiotic
from paretone.front_end.written_forms import MONTH_STARTS, MONTHS, WEEKDAYS

_MONTH = rf"(?:{one_of((*MONTHS, *MONTH_STARTS, *map(str.upper, MONTH_STARTS)))})(?![A-Za-z])"
_WEEKDAY = rf"(?:{one_of(WEEKDAYS)})(?![a-z])"
_SMALL_DAY = r"(?:mon|tues?|wed|thur?s?|fri|sat|sun)\b"
_BEFORE_DAYS = r"(?i:\b(?:by|on|for|til|until|till|this|next|last|every|due)) "
_DAY = r"0?[1-9]|[12]\d|3[01]"
_HALF = r"(?:[AaPp]\.\s?[Mm]\.|[AaPp][Mm]\b)"
_ZONE = r"(?:UTC|GMT|E[SD]?T|C[SD]T|P[SD]T|M[SD]T|[PCM]T|[CE]ES?T|AE[SD]T|BST|[IJ]ST)\b"


def _month_name(name: str) -> str:
    if name.isdecimal():
        return MONTHS[int(name) - 1]
    return MONTH_STARTS.get(name[:4].title()) or MONTH_STARTS[name[:3].title()]


def _year_of(text: str) -> str:
    if text == "00":
        return "two thousand"
    return short(text) if len(text) == 2 else year(int(text))


def _numeric_date(match: re.Match[str], around: Around) -> str | None:
    """Year, month, day; or two of them in either order and the year."""
    if match["y"]:
        month, day, named = int(match["m"]), int(match["d"]), match["y"]
    else:
        first, second, named = int(match["a"]), int(match["b"]), match["c"]
        swapped = first > 12 or (around.british and second <= 12)
        month, day = (second, first) if swapped else (first, second)
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    comma = "," if around.precedes(r" ?\d") else ""
    return f"{MONTHS[month - 1]} {day_of_month(day)}, {_year_of(named)}{comma}"


def _day_first(match: re.Match[str], around: Around) -> Said:
    weekday, day, suffix, of, name, named = match.groups()
    head = f"{WEEKDAYS[weekday]} " if weekday else ""
    bare = around.follows(r"(?i:\bthe )") or (suffix and of)
    tail = f"of {_month_name(name)}" + (f"{',' if of else ''} {year(int(named))}" if named else "")
    words = ordinal(int(day)) if suffix else day_of_month(int(day))
    return Said(words, tail, head + ("" if bare else "the"))


def _weekday(match: re.Match[str], around: Around) -> Said | None:
    """ "Sat" and "Sun" are words, too, and so are days in small letters."""
    if match[0].islower():
        between = around.precedes(f"[-–]{_SMALL_DAY}") or around.follows(rf"\b{_SMALL_DAY}[-–]")
        named = match[0] not in ("sat", "sun") or (match[0] == "sat" and around.precedes(r"[,!?;]|\.(?! [a-z])| \d|$"))
        return Said(WEEKDAYS[match[0].capitalize()]) if between or (named and around.follows(_BEFORE_DAYS)) else None
    word = match[1] in ("Sat", "Sun") and not match[2]
    word = word and not around.follows(r"[-–] ?|\b(?:Fri|Sat)/|EOD |(?:on|by|for|until|this|next) ")
    word = word and not around.precedes(r" \d\d?(?:[-–:]| ?[ap]m?\b)|/[MTWFS][a-z]{2,3}\b")
    return None if word or around.precedes("'") else Said(WEEKDAYS[match[1]], ends=bool(match[2]))


def _season(match: re.Match[str], around: Around) -> str | None:
    first, last = int(match[1]), int(match[1][:2] + match[2])
    if "/" in match[0] and last != first + 1:
        return f"{MONTHS[int(match[2]) - 1]} {year(first)}" if 1 <= int(match[2]) <= 12 else None
    return f"{year(first)} to {_year_of(match[2])}" if last == first + 1 or not match[2].startswith("0") else None


def _clock(match: re.Match[str], around: Around) -> Said | None:
    hour, minute, second, part, half, zone = match.groups()
    if int(hour) > 24 or int(minute) > 59 or int(second or 0) > 59:
        return None
    if not (second or half) and (around.precedes(_AFTER_RATIOS) or around.follows(_BEFORE_RATIOS)):
        return None
    if second and part and not half and "," not in match[0] and not around.follows(r"\d[-/]\d\d "):  # As logs have it.
        return Said(_length(hour, minute, f"{second}.{part}"))
    if minute == "00" and not second and not half and hour[0] != "0" and around.follows(_COOKING):
        return Said(_length("", hour, ""))
    cue = _CUE_OF_DURATIONS if "00" in (minute, second) else r"\b(?:took|takes|lasted|lasts) "
    if second and not half and not part and around.follows(cue):
        return Said(_length(hour, minute, second))
    whole = cardinal(int(hour)).replace(" ", "-")
    if int(minute):
        words = f"{whole} {short(minute).replace(' ', '-') if minute[0] != '0' else short(minute)}"
    elif half:
        words = whole
    else:
        words = f"{whole} o'clock" if 1 <= int(hour) <= 12 else f"{whole} hundred"
    if second:
        words += f" and {number(second.lstrip('0') or '0')}" + (f" point {digits(part)}" if part else "")
        words += " second" if second == "01" and not part else " seconds"
    return _with_half(words, half, zone)


def _hour(match: re.Match[str], around: Around) -> Said:
    return _with_half(cardinal(int(match[1])), *match.groups()[1:])


def _with_half(words: str, half: str | None, zone: str | None = None) -> Said:
    tail = [f"{half[0].upper()}.M."] if half else []
    if zone:
        tail.append(".".join(zone) + ".")
    return Said(words, " ".join(tail), ends=bool(half and half.endswith(".") and not zone))


def _length(*parts: str | None) -> str:
    names = ("week", "day", "hour", "minute", "second")[-len(parts) :]
    named = zip(((one or "").lstrip("0") for one in parts), names, strict=True)
    return " ".join(f"{number(one)} {name}{'' if one == '1' else 's'}" for one, name in named if one)


def _military(match: re.Match[str], around: Around) -> Said | None:
    """ "0600", "1345 hrs."."""
    zoned = around.precedes(f" {_ZONE}")
    if match[0][0] != "0" and not zoned and (not around.follows(_BEFORE_TIMES) or around.precedes(" of")):
        return None
    named = zoned or match[3] or around.precedes(_BEFORE_HOURS)
    if not named and (not around.follows(_BEFORE_TIMES) or around.precedes(r" [A-Z\d]|-\d")):
        return None
    hour = f"oh {cardinal(int(match[1]))}" if match[1][0] == "0" and match[1] != "00" else cardinal(int(match[1]))
    words = f"{hour} {'hundred' if match[2] == '00' else short(match[2])}"
    return Said(words, "hours" if match[3] else "")


FORMS["day"] = lambda text: day_of_month(int(text))
FORMS["weekday"] = WEEKDAYS.__getitem__
FORMS["month"] = _month_name
FORMS["year"] = _year_of
FORMS["decade"] = lambda text: plural(_year_of(text))
_BEFORE_TIMES = (
    r"(?i:\b(?:at|by|from|until|till|before|after|around|since|between|the|to|for|and|open|et[ad](?: is|:)?)|&) |"
    r"\d{4} ?[-–] ?"
)
_BEFORE_HOURS = r"(?:, \d{4}){0,6},? ?(?:[-–&]|and|or) ?\d{4} ?(?:hours|hrs?)\b"
_CUE_OF_DURATIONS = r"(?i:\b(?:record|times?|in|length|took|takes|lasted|lasts|ran|runs|finished)\b)[^.!?\d]{0,12}"
_AFTER_RATIOS = r" (?:dilution|ratio|scale|mix(?:ture)?|aspect|odds|screen|display|monitor|panel|laptop|split|slope)\b"
_BEFORE_RATIOS = r"(?i:\b(?:ratio|scale|aspect|odds|diluted|mixed|split)(?: (?:of|is|to|at))?:?) "
_COOKING = r"\b(?i:(?:steep|bake|cook|boil|simmer|microwave|fry|grill)(?:[ \w]* (?:for|about))?|rest|plank|hold) "

# fmt: off
CLASSES = (
    semiotic("date", r"(?P<y>\d{4})([-/.])(?P<m>\d{1,2})\2(?P<d>\d{1,2})(?!\d)|",
        r"(?P<a>\d{1,2})([-/.])(?P<b>\d{1,2})\6(?P<c>\d{4}|(?<=[/])\d{2})(?!\d|[./-]\d)", say=_numeric_date,
        quantity=True),
    semiotic("date", rf"(?:({_WEEKDAY})\.?,? )?({_MONTH})\.? ({_DAY})(?:st|nd|rd|th)?(?![\d:%]|[.,]\d|[ap]m\b)",
        r"(?:,? (\d{4})(?![\d%]))?", say="[{1:weekday}, ]{2:month}|{3:day}[, {4:year}]|", quantity=True),
    semiotic("date", rf"({_MONTH})\.?,? (?:'(?=\d\d\b))?(\d{{4}}|(?<=')\d\d)(?![\d%:])",
        say="{1:month} {2:year}", quantity=True),
    semiotic("date", rf"(?:({_WEEKDAY})\.?,? )?({_DAY})(st|nd|rd|th)?[- ](of )?({_MONTH})(?:\.(?=,? ['a-z\d]))?",
        r"(?:(?:,? |-)(\d{4})(?!\d))?", say=_day_first, quantity=True),
    semiotic("date", rf"(?!Jan [a-z])({_MONTH})(?![\w.']| [A-Z])", say="{1:month}",
        after=r"\b(?:in|since|by|until|till|from|last|next|early|late|mid|this) |mid-"),
    semiotic("date", rf"({_WEEKDAY})(\.)?(?!\w)|\b{_SMALL_DAY}", say=_weekday, quantity=True),
    semiotic("date", rf"/(?={_WEEKDAY})", say=",", after=rf"\b{_WEEKDAY}\.?"),
    semiotic("date", rf"({_MONTH})\.?(?= ?[-–]| \d)", say="{1:month}", quantity=True),
    semiotic("date", rf"({_MONTH})(?:(?<=[-–]...)\.|(?!\w))", say="{1:month}", after=r"[-–] ?", quantity=True),
    semiotic("date", r"(\d{1,4}) ?(BCE?|AD|CE|B\.C\.|A\.D\.)(?!\w)", quantity=True, say=lambda match, around: Said(
        (year if len(match[1]) == 4 else cardinal)(int(match[1])), ".".join(match[2].replace(".", "")) + ".")),
    semiotic("date", r"(?:AD|A\.D\.) (\d{1,4})(?:[-–](\d{1,4}))?(?![\d,])", say="A.D. {1:year}[ to {2:year}]",
        quantity=True),
    semiotic("date", r"'?((?:1\d|20)\d0)'?s\b|'([2-9]0|00)'?s\b", say="{1:decade}{2:decade}", quantity=True),
    semiotic("date", r"([2-9]0)'?s\b", say="{1:decade}", quantity=True, unless=TAKES),
    semiotic("date", r"'(\d\d)(?!\d|[^']{0,60}'(?!\w))", say="{1:short}", unless=r"[\w)]", quantity=True),
    semiotic("date", r"\b([QH](?=[1-4](?!\d))|[FC]Y(?=(?:[1-4](?!\d))? ?'?\d))([1-4](?!\d))?",
        r"(?:(?: ?'| ?)(\d{2}(?!\d))| ?(\d{4})(?!\d)(?:[-–/](\d\d)(?!\d))?)?",
        say="{1:letters}[ {2:cardinal}][ {3:year}{4:year}][ to {5:short}]", quantity=True),
    semiotic("date", r"(1\d{3}|20\d{2})[-–/](\d{2})(?![-–/\d])", say=_season),
    semiotic("cardinal", r"(1\d{3})\?(?=[-–]\d)|(?<=[-–])c(?:a?\.|irca) ?(\d{4})(?!\d)",
        say="[{1:year}][circa {2:year}]", quantity=True),
    semiotic("time", rf"(\d{{1,2}})(?::|\.(?=\d\d\s?{_HALF})|h(?=\d\d\b))(\d{{2}})(?::(\d{{2}})(?:[.,](\d+))?)?",
        rf"(?![\d:])(?:\s?({_HALF}|(?<=\d)[ap]\b))?(?: ({_ZONE}))?", say=_clock, quantity=True),
    semiotic("time", r"([01]\d|2[0-3])([0-5]\d)(?: ?(hours|hrs?)\b(?:\.(?! [A-Z]|$))?|",
        rf"(?={_BEFORE_HOURS})|(?= {_ZONE})|(?<=\b0\d{{3}})(?!\d|[.:]\d))",
        say=_military, quantity=True),
    semiotic("time", r"(\d{1,2}):([0-5]\d)\.(\d{1,3})(?![\d:]| ?[AaPp]\.?[Mm])",
        say="{1:number} {2:short} point {3:digits}", quantity=True),
    semiotic("time", rf"(0?\d|1[0-2])\s?({_HALF})(?: ({_ZONE}))?", quantity=True,
        say=_hour),
    semiotic("time", r"(?i:noon|midnight)\b", say=lambda match, around: match[0], quantity=True),
    semiotic("time", r"(\d\d?)([ap])(?:(?=[-–]\d\d?(?::\d\d)?[ap]\b)|(?<=[-–]\d[ap])\b|(?<=[-–]\d\d[ap])\b)",
        quantity=True, say=_hour),
    semiotic("time", r"(1[0-2]|\d)([ap])\b(?!(?: to \d+p)?,? (?:each|an?|apiece|per|upwards?)\b)", quantity=True,
        unless=r"\b(?i:priced?|sold|tax(?:ed)?|shares?|traded|fell|rose|dropped) (?:at|by|from) ",
        say=_hour,
        after=rf"(?i:(?<!look )(?<!looking )\b(?:at|by|til|till|until|from)) |@ ?|\d[ap] to |\b{_WEEKDAY}s?[.,]* "),
    semiotic("time", r"(?<!\d)(?=\d)(?:(\d+) ?w(?:ks?)?)?(?: ?(\d+) ?d(?:ays?)?)?(?:,? ?(\d\d?) ?h(?:rs?)?)?",
        r"(?:,? ?(\d\d?) ?m(?:in)?)?(?: ?(\d\d?) ?s(?:ec)?)?\b", say=lambda match, around: (
        _length(*match.groups()) if sum(map(bool, match.groups())) > 1 else None)),
)
# fmt: on
