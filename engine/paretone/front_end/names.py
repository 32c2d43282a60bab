"""Names that are not plain words: identifiers, versions, Roman numerals, telephone numbers, addresses, what is typed
into a computer, abbreviations and signs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from paretone.front_end.numbers import cardinal, decimal, digits, ordinal, pairs, plural, roman, short, year
from paretone.front_end.quantities import SPANS, UNIT_WORD, number
from paretone.front_end.semiotic import FORMS, Around, Said, one_of, semiotic
from paretone.front_end.written_forms import (
    BEFORE_SMALL,
    COUNTED,
    ELEMENTS,
    ENDINGS,
    MONTH_STARTS,
    ROADS,
    SIGNS,
    SLANG,
    STREETS,
    TITLES,
    UNITS,
    WEEKDAYS,
    begins_sentence,
    listed,
    rows,
    table,
)

DAYS, DIRECTIONS, PROVINCES, SCRIPTURE = map(table, ("day", "direction", "province", "scripture"))
STATES, STATES_IN_SHORT = table("state"), table("state in short")


def _identifier(match: re.Match[str], around: Around) -> Said | None:
    text = match[0]
    if text[0] == "x" and around.precedes(f" {SPANS}"):
        return None
    many = text.endswith("s") and text[-2].isdecimal() and text[0].isupper()
    found = []
    for part in re.finditer(r"[A-Z]+(?![a-z]{2})|[A-Z]?[a-z]+|\d+|(?<=\d)\.|\.(?!\d\d)", text[:-1] if many else text):
        one = part[0]
        if one == ".":
            found.append("point" if text[part.start() - 1].isdecimal() else "dot")
        elif one.isdecimal():
            found.append(pairs(one) if len(one) > 2 or one[0] == "0" else cardinal(int(one)))
        else:  # A few letters next to digits are spelled.
            found.append(FORMS["letters"](one) if len(one) < 2 or (one.isupper() and len(one) <= 3) else one)
    if many:
        found[-1] = plural(found[-1])
    return Said(" ".join(found))


def _ion(match: re.Match[str], around: Around) -> str:
    parts = re.findall(r"[A-Z][a-z]?|e|\d+", f"{match[1]} {match[2]}")
    said = [number(one) if one.isdecimal() else ".".join(one.upper()) + "." for one in parts]
    return " ".join((*said, *({"+": ["plus"], "-": ["minus"]}.get(match[3], ()))))


def _version(match: re.Match[str], around: Around) -> str | None:
    prefix, text = match[1] or "", match[2]
    parts = text.split(".")
    if not prefix and re.fullmatch(r"\d{1,3}(?:\.\d{3}){2}|\d{1,3}(?:\.000){2,}", text):
        return decimal(text.replace(".", ""))
    if not prefix and len(parts) < 3 and not (match[3] or around.follows(_SOFTWARE)):
        return None
    address = not prefix and len(parts) == 4 and all(int(part) < 256 for part in parts)
    if address and (max(map(int, parts)) > 20 or around.follows(_BEFORE_ADDRESSES)):
        return " dot ".join(cardinal(int(part)) for part in parts)
    said = " point ".join(short(part) if len(part) == 2 else decimal(part) for part in parts)
    said += f" point {'star' if match[3] == '*' else 'x'}" if match[3] else ""
    said += f" {_RELEASES.get(match[4], match[4])}" if match[4] else ""
    said += f"{' point' if match[5] else ''} {number(match[6])}" if match[6] else ""
    return f"version {said}" if prefix and not around.follows("[Vv]ersion ") else said


_SOFTWARE = rf"\b(?i:{one_of(listed('software'))}) (?:(?:to|from) )?(?:[≥≤<>]=? ?)?"
_BEFORE_ADDRESSES = r"(?i:\b(?:ssh to|dns|ip|host|server|gateway|router|address|subnet):? )|@"
_COMMANDS = rf"\b(?:{one_of(listed('command'))}) "
_RELEASES = {"rc": "R.C.", "pre": "prerelease"}


_REGNAL_NAMES = listed("regnal name")
"""After these names a Roman numeral is an ordinal (Henry the eighth), otherwise a cardinal (Chapter four)."""
_DIVISIONS = listed("division")
"""Words before a Roman numeral that may be one letter, or of the letters L to M."""
_LONG = ("Chapter", "Canto", "Psalm", "Bowl")  # There are fifty: in "Appendix C", C is a letter.
_COURSES = listed("course")


def _roman_name(match: re.Match[str], around: Around) -> str | None:
    name, text, letter, dash, last = match.groups()
    name, value = TITLES[name] if name in ("Mk", "Vol", "Ch") else name, roman(text.upper())
    if value is None or (f"{name}{text}".islower() and len(text) < 2):
        return None
    division = name if name in _DIVISIONS else name.removesuffix("s").capitalize()
    if division in _DIVISIONS or (name in _COURSES and not letter):
        word = r"'| [a-z]" if name.islower() or name in _COURSES else "'"
        if (text == "I" and around.precedes(word)) or (text in ("C", "D", "L", "M") and division not in _LONG):
            return None
        end = roman((last or "").upper())
        said = f"{name} {cardinal(value)}" + (f" {letter}" if letter else "")
        return said + (f" to {cardinal(end)}" if dash and end else "")
    if letter or not text.isupper() or not name[0].isupper():
        return None
    if 1 < value < 6 and around.follows(_GIVEN_NAMES):
        return f"{name} the {ordinal(value)}"
    if name in _REGNAL_NAMES or (name.title() in _REGNAL_NAMES and len(text) > 1) or around.follows(_RULERS):
        ended = around.precedes(
            r" (?:was|is|are|were|has|had|of|and|ruled|reigned|became|died|came|ordered|in|by|to|who|with|did)\b|"
            r" ?[,.;:!?'()]|$"
        )
        sure = len(text) > 1 or ended or (text in "VX" and not around.precedes(r"\. [A-Z]"))
        return f"{name} the {ordinal(value).replace(' ', '-')}" if sure else None
    if text == "V" and name.isupper() and len(name) > 2:
        return f"{name} five"
    return f"{name} {cardinal(value)}" if len(text) > 1 and set(text) <= set("IVX") and name not in _NO_NAMES else None


_NO_NAMES = listed("no name")
_GIVEN_NAMES = rf"\b(?:[A-Z]\.|(?:Mr|Dr|Sir|Rev|Capt)\.?|{one_of(_REGNAL_NAMES)}) "
_RULERS = rf"\b(?:{one_of(listed('ruler'))}) "
_BEFORE_NUMERALS = r"\b(?i:ch|vol|no|sec|art|pts?|bk|act|pp?|figs?|sc|mk|pars?|ll|mvt)\. "
_SERIES = r"\b[A-Z]?[a-z]+s (?:[IVX]+(?:,? (?:and|or|&|to|through)|,) )+"


def _numerals_between(match: re.Match[str], around: Around) -> str | None:
    first, last = (roman(one.upper()) for one in match.groups())
    return f"{cardinal(first)} to {cardinal(last)}" if first and last and first < last else None


def _roman_alone(match: re.Match[str], around: Around) -> str | None:
    value, counted = roman(match[1].upper()), around.follows(f"{_BEFORE_NUMERALS}|{_SERIES}")
    word = len(match[1]) < 2 and around.precedes(" (?!is|was|of|and|in)[a-z]")
    if value is None or word or ((len(match[1]) < 2 or match[1].islower()) and not counted):
        return None
    if counted or (not around.before and around.precedes(r"\. [A-Z]")):
        return cardinal(value)
    if around.precedes(r" (?:century|centuries|Olympi|dynasty|Dynasty|Corps|edition|Winter|Summer|Congress|Legion)"):
        return ordinal(value)
    return year(value) if value > 1000 and len(match[1]) > 3 else None


# --- Telephone numbers and addresses ----------------------------------------------------------------------------------
def _telephone(match: re.Match[str], around: Around) -> str | None:
    text = match[0]
    count = sum(map(str.isdecimal, text))
    if re.fullmatch(r"\d(?:-\d){2,}", text):
        return digits(text.replace("-", ""))
    if re.fullmatch(r"\d\d?(?:-\d\d?){2}", text) and around.follows(r"\b(?:record|season|went|finished)\b[^.!?]{0,9} "):
        return None
    if " " in text and not re.match(r"[0+(]", text) and not around.follows(_CUE_OF_TELEPHONES):
        groups = [len(one) for one in re.findall(r"\d+", text)]
        if groups not in ([3, 3, 4], [3, 2, 4], [4, 6, 5], [4, 3, 3]) and {4} != {*groups[:-1]}:
            return None
    if count < 7 and not around.follows(_CUE_OF_TELEPHONES):
        return None
    said = [digits(one) for one in re.findall(r"\d+", text)]
    return ("plus " if text.startswith("+") else "") + ", ".join(said)


_CUE_OF_TELEPHONES = (
    r"(?i:\b(?:(?:calls?|dial|ring|phone|tel|telephone|fax|text|cell|mobile|work|number|reach)(?: is)?|at|us|id)"
    r"\.?:? )(?:us at )?"
)
_BEFORE_SAINTS = r"\b(?:The|And|With|In|Of|Old|A|Mount|Port|Bury) "
_SAINTS = rf" (?:{one_of(listed('saint'))}|[A-Z][a-z]+ (?:and [A-Z]|[A-Z]))"


def _saint(match: re.Match[str], around: Around) -> Said:
    """ "St. Paul", "Dr. Li", but "Main St." and "Lake Dr."."""
    following = re.match(r" ([A-Z][\w']*)(?!\.)", around.after)
    if match[1] == "Dr" and following:
        return Said("Drive", ends=True) if begins_sentence(following[1]) else Said("Doctor")
    named = around.follows(r"(?:\b[A-Z][a-z]*|\bJr\.|\d(?:st|nd|rd|th)) ") and not around.follows(_BEFORE_SAINTS)
    if (named and not around.precedes(_SAINTS)) or not around.precedes(r" [A-Z]"):
        return Said({"St": "Street", "Dr": "Drive" if named else "Doctor"}[match[1]], ends=True)
    return Said({"St": "Saint", "Dr": "Doctor"}[match[1]])


# --- What is typed into a computer ------------------------------------------------------------------------------------
_ADDRESS_MARKS = SIGNS | table("typed")
_MARKS = _ADDRESS_MARKS | table("quoted mark")
_SPELLED = listed("spelled")
_FILES = "|".join(listed("file"))


def _electronic(match: re.Match[str], around: Around) -> str:
    text = re.sub(r"^[a-z]+://", "", match[0])
    return " ".join(_typed(part) for part in re.findall(r"[^\W\d_]+|\d+|[^\w\s]|_", text))


def _name(text: str) -> str:
    """The words of a name in one word: "jane_doe", "MondayMotivation"."""
    parts = re.sub(r"(?<=[a-z])(?=[A-Z\d])|_", " ", text).split()
    return " ".join(pairs(one) if one.isdecimal() else one for one in parts)


def _typed(part: str) -> str:
    if part.isdecimal():
        return pairs(part)
    return part.upper() if part in _SPELLED else _ADDRESS_MARKS.get(part, SLANG.get(part, part))


def _clause(text: str) -> str:
    """The mark of a part of a law: "b", "10", "iv"."""
    value = int(text) if text.isdecimal() else roman(text.upper())
    return cardinal(value) if value and (len(text) > 1 or text.isdecimal()) else text.upper()


_CHESS = SIGNS | table("chess")
_MOVE = r"(?:O-O(?:-O)?|[KQRBN][a-h]?[1-8]?x?[a-h][1-8]|[a-h]x[a-h][1-8](?:=[QRBN])?|[a-h][18]=[QRBN])[+#]?(?![\w'-])"
_CHORDS = table("chord")


def _noted(words: Mapping[str, str], parts: Iterable[str]) -> str:
    """A notation of letters and numbers, such as chess moves and chords."""
    return " ".join(words.get(one) or (number(one) if one.isdecimal() else one.upper()) for one in parts)


# --- Abbreviations and signs ------------------------------------------------------------------------------------------
def _slang(match: re.Match[str], around: Around) -> str | None:
    text = match[0]
    words = SLANG.get(text) or SLANG.get(text.lower())
    if words is None or not (text in SLANG or text[1:].islower() or (text.isupper() and len(text) > 2)):
        return None
    return words[0].upper() + words[1:] if text.istitle() and words[0].islower() else words


def _in_context(match: re.Match[str], around: Around) -> Said | None:
    """The words of the first row of this form whose context fits."""
    for form, words, kind, before, after, *never in rows("in context"):
        if form != match[0] or any(map(around.follows, never)):
            continue
        if around.follows(before) and around.precedes(after):
            return Said(words, kind=kind, ends=after == r"(?!\w)")
    return None


_SOUNDS = listed("sound")
FORMS["name"] = _name
FORMS["lower"] = str.lower
FORMS["apart"] = lambda text: text.replace("-", " ")
FORMS["named"] = lambda text: re.sub(r"(\d+)(?:st|nd|rd|th)", lambda one: ordinal(int(one[1])), text)
FORMS["whole"] = lambda text: (STATES | STREETS | SCRIPTURE).get(text, text)
FORMS["compass"] = DIRECTIONS.__getitem__
_KEYS = table("key")
FORMS["keys"] = lambda text: " plus ".join(
    _KEYS.get(one.lower(), re.sub(r"(?<=\D)(?=\d)", " ", one)) for one in text.split("+")
)
FORMS["sign"] = (SIGNS | {"#": "hashtag", "-": "minus"}).__getitem__
FORMS["each"] = lambda text: " ".join(digits(one) if one.isdecimal() else one.upper() for one in text if one.isalnum())
FORMS["clauses"] = lambda text: " ".join(map(_clause, re.findall(r"\w+", text)))
_TOP = "|".join(listed("domain"))
# fmt: off
_NO_PATH = rf"(?:[-\d.,/+]+(?:[CF]|{UNIT_WORD})/|(?:{one_of(WEEKDAYS)})\b|(?:[a-z]/)+[a-z]\b|(?:[A-Z]/)+[A-Z]{{1,3}}\b)"
TYPED = (
    semiotic("abbreviation", rf"(?:{one_of({*listed('in context')})})(?:(?<=\W)|\b)", say=_in_context),
    semiotic("electronic", r"[\w.+-]+@(?!\d+\.\d)[\w-]+(?:\.[\w-]+)+(?::[\w./-]*\w)?", say=_electronic),
    semiotic("electronic",
        rf"(?:https?://|www\.)[^\s<>\"]*[\w/]|(?:[\w-]+\.)+(?:(?:{_TOP})\b(?![@\w])|(?:ly|be|gg|so|sh|xyz)(?=/\w))",
        r"(?:/[\w./~?=&%#-]*\w)?",
        say=_electronic),
    semiotic("electronic", rf"[\w-]+\.(?:{_FILES})\b", say=lambda match, around: (
        _electronic(match, around).replace(" underscore", ""))),
    semiotic("electronic", r"(?=[\w./\\:~-]*[A-Za-z])(?:(?:[A-Z]:[/\\]|~/|\.{1,2}/)[\w.-]*(?:[/\\][\w.-]*)*\w|",
        rf"[\w.-]+/[\w-]+\.(?:{_FILES})\b(?:#[\w-]+)?|",
        rf"(?!/?{_NO_PATH})(?:[\w.-]+(?:[/\\][\w.-]*\w){{2,}}|(?:/[\w.-]*\w){{2,}})(?:\?[\w=&%.-]*\w)?)",
        say=_electronic),
    semiotic("electronic", r"localhost:\d+|\d+\.\d+\.\d+\.\d+:\d+", say=_electronic),
    semiotic("version", r"(\d+(?:\.\d+)?)/(\d+(?:\.\d+)?)(?![\d/])", say="{1:number} slash {2:number}",
        after=_SOFTWARE),
    semiotic("version", r"\b(\d+)\.(\d\d?)([a-h])\b", say="{1:number} point {2:short} {3:upper}", after=_SOFTWARE),
    semiotic("electronic", r"(?<!\S)-(?![A-Za-z]\d)([A-Za-z][\w-]*)", say="dash {1:letters}", after=_COMMANDS),
    semiotic("abbreviation", rf"(?<![\w./])(?i:{one_of(SLANG)})(?![\w.]\w|\w)", say=_slang),
)
NOTATIONS = tuple(
    semiotic(kind, written, say=words, after=before, unless=never, quantity=kind == "cardinal")
    for written, words, kind, before, never in rows("notation")
)
_NAMED_WITH_A_DASH = (
    r"(?:\b(?:Boeing|Airbus|Embraer|MD|(?i:no\.|ref\.?|inv\.?|acct\.?|order|case|invoice|serial|bill|claim)|Table|Figure|"
    r"Fig\.|Room|Rm\.|Eq\.|Exhibit|Example|Problem) |#)"
)
_SIZES = r"(X{0,3}S|S|M)[-–](M|L|[2-6]?X{1,4}L)\b"
_THREADED = r"(?:UNC|UNF|bolts?|screws?|taps?|nuts?)\b"
_SCHOOL_DAY = "Th|Tu|Sa|Su|[MTWF]"
_STREET = rf"(?:{one_of(STREETS)}|{one_of(STREETS.values())})"
_DIRECTION = "([NSEW]|N[EW]|S[EW])"
NAMES = (
    semiotic("telephone", r"\+?(?:\d{1,3}[ .-])?(?:\(\d{2,5}\) ?)\d{2,4}(?:[ .-]\d{2,5})*(?!\d)|",
        r"\+?\d{2,5}(?:[ -]\d{2,6}){2,5}(?![\d/])|\+?\d{1,3}(?: ?\(0\) ?\d{1,4})?(?:[ -]\d{2,6}){2,5}(?!\d)|",
        r"\d(?:-\d{2,6}){2,4}(?!\d)|\d{3}\.\d{3}\.\d{4}(?!\d)|\d+(?:-\d+){2,}(?!\d)|",
        r"\d{3}-\d{4}(?!\d)|\+\d{7,15}(?!\d)|0\d{2,4} \d{4,8}(?![\d ]*\d)", say=_telephone),
    semiotic("identifier", rf"(?=[1-3] |\D{{1,20}}\d+:)(?:([1-3]) )?\b({one_of({*SCRIPTURE, *SCRIPTURE.values()})})",
        r"\.? (\d{1,3})(?::(\d{1,3}))?(?:[-–](\d{1,3}))?(?![\d:])",
        say="[{1:ordinal} ]{2:whole} {3:cardinal}[, {4:cardinal}][ to {5:cardinal}]"),
    semiotic("identifier", rf"\b{_MOVE}", say=lambda match, around: (
        _noted(_CHESS, re.findall(r"O-O(?:-O)?|.", match[0])))),
    semiotic("identifier", rf"\b(\d{{1,3}})\.(?:\.\.|…)?(?= ?(?:{_MOVE}|[a-h][1-8]\b))", say="{1:number}"),
    semiotic("identifier", r"\b[A-G][#b]?(?:(?:maj|dim|aug)\d{0,2}|sus[24]|(?:min|add|m|M)(?:[679]|1[13]))(?:b5)?",
        r"(?:/[A-G][#b]?)?(?![\w'])", say=lambda match, around: (
        _noted(_CHORDS, re.findall(r"[A-G#b]|[a-z]{3}|\d+|[mM]", match[0])))),
    semiotic("version", r"\b([vV])?(\d+(?:\.\d+)+)(?:\.(x\b|\*))?(?:-(rc|beta|alpha|pre|dev)(?:(\.?)(\d+))?\b)?",
        r"(?![\d])", say=_version),
    semiotic("address", r"(\d{1,3})([NSEWLR])\b", say="{1:pairs} {2:compass}", after=ROADS),
    semiotic("identifier", r"\b[A-Z]+[-.]?\d+(?:[-._]\d+)*s?\b|\b[A-Z]{1,6}-?\d+[a-zA-Z]{0,3}\b(?![-/]\w)|",
        r"\b\d+[A-Z]{1,3}\d*\b|\b\d{3,4}p\b|\b[A-Za-z]*[a-z]\d+\b(?!\.\d)|\b[A-Z]+v\d\b", say=_identifier),
    semiotic("identifier", r"\b[A-Za-z]+\d+(?:-\d+[A-Z]*)+\b|\b[A-Z][a-z]+-(?:\d+s|\d{3}[a-z]?)\b|",
        r"\b[A-Z][A-Za-z]+-?\d+\.\d+(?:-[A-Za-z\d.]*\w)+", say=_identifier),
    semiotic("identifier", r"\b(\d+)-(\d+)(?![-\d])", say="{1:pairs} {2:pairs}", after=_NAMED_WITH_A_DASH),
    semiotic("range", r"\b[A-Z]–[A-Z]\b|\bA-Z\b|(?<!-)\b[A-H]-[A-H]\b(?!-)", say=lambda match, around: (
        f"{match[0][0]} to {match[0][2]}" if match[0][0] < match[0][2] else None)),
    semiotic("range", rf"\b({one_of(DAYS)})[-–]({one_of(DAYS)})\b|\bSu(?= \d)", say=lambda match, around: (
        f"{DAYS[match[1]]} to {DAYS[match[2]]}" if match[1] else DAYS["Su"])),
    semiotic("date", rf"\b(?=(?:{_SCHOOL_DAY})/?(?:{_SCHOOL_DAY}))(?:M/?)?(?:Tu?(?!h)/?)?(?:W/?)?(?:Th/?)?(?:F/?)?",
        r"(?:Sa/?)?(?:Su/?)?(?<!/)(?= \d\d?(?:[:–-]| ?[ap]\.?m))|",
        rf"\b(?:M/W/F|Tu?/Th)\b|\b(?:{_SCHOOL_DAY})(?= \d\d?(?::\d\d)?[-–]\d\d?(?::\d\d)? ?[ap]\.?m)",
        say=lambda match, around: (
        ", ".join(DAYS.get(one, "Tuesday") for one in re.findall(_SCHOOL_DAY, match[0])))),
    semiotic("identifier", rf"(?:(\d/\d{{1,2}})\"?|((?<=#)\d\d?|\d\d?(?=-\d\d \w+[^s]\b)))-(\d\d)(?= {_THREADED})",
        say="[{1:number} inch]{2:number} {3:number}"),
    semiotic("identifier", r"\b([A-Z]{2})(\d\d(?: ?[A-Z\d]{4}){3,7}(?: [A-Z\d]{1,3})?)\b", say=lambda match, around: (
        f"{FORMS['letters'](match[1])} {', '.join(map(FORMS['each'], match[2].split()))}")),
    semiotic("range", rf"\b(?=\w\w|.[-–]\w\w){_SIZES}", say="{1:letters} to {2:letters}"),
    semiotic("range", rf"\b{_SIZES}", say="{1} to {2}", after=r"(?i:\bsizes?:?) "),
    semiotic("range", r"\b([ivxlc]+)[-–]([ivxlc]+)\b", after=_BEFORE_NUMERALS, say=_numerals_between),
    semiotic("range", r"\b(?=[IVX]{2}|[IVX].[IVX]{2})([IVX]+)[-–]([IVX]+)\b", say=_numerals_between),
    semiotic("identifier", r"\b((?:[A-Z][a-z]?\d*){1,3}|e)\^(\d?)([+-])(?![\w(])", say=_ion),
    semiotic("identifier", rf"\b((?:(?:{one_of(ELEMENTS)})\d{{0,2}}){{2,}})()()(?<=[a-zA-Z]\d)(?!\w)", say=_ion),
    semiotic("roman", r"\b([A-Za-z]+) ([IVX]+(?=[A-C]\b)|[IVXLCDM]+|[ivx]+)((?<=[IVX])[a-cA-C])?",
        r"(?:([-–])([IVXLCDM]+))?\b(?!'(?:m|d|ll|ve|re)\b)", say=_roman_name),
    semiotic("roman", r"\b([IVXLCDM]{2,}|(?<=\. )(?:[ivx]+|I))\b", say=_roman_alone),
    semiotic("address", rf"(?:(?:(\d+)/)?(\d{{1,5}}) (?:{_DIRECTION}\.? )?|{_DIRECTION}\.? )",
        rf"((?:(?:[A-Z][a-z]+|\d+(?:st|nd|rd|th)) ){{1,3}})({_STREET})\b\.?(?=\W|$)",
        say="[{1:pairs} slash ][{2:pairs} ][{3:compass} ][{4:compass} ]{5:named}{6:whole}", ends=True),
    semiotic("address", rf"(?:, |(?<=[a-z] )(?=.{{3}}\d{{5}}))({one_of(STATES)})\b(?!, ?(?:Ph|M[BP]|RN\b))",
        r"(?: (\d{5})(?:-(\d{4}))?(?!\d))?",
        say=", {1:whole}[, {2:digits}][, {3:digits}]", after=r"[A-Z][a-z]+ ?"),
    semiotic("address", rf"({one_of(PROVINCES)})(?= [A-Z]\d[A-Z] ?\d[A-Z]\d\b)", say=PROVINCES, after=", "),
    semiotic("address", rf"({one_of(STATES_IN_SHORT)})\.(?= (?:Ave|Blvd|Rd|Pkwy)\b)", say=STATES_IN_SHORT),
    semiotic("address", rf"({one_of(STATES_IN_SHORT)})\.(?!\w)", say=STATES_IN_SHORT,
        after=r"[A-Z][a-z]+, |\b[DRI]-|\bin ", ends=True),
    semiotic("address", rf"\bCo\.(?=, (?:{one_of((*STATES.values(), *STATES_IN_SHORT))}))", say="County",
        after="[a-z] "),
    semiotic("address", r"\b([NSEW])\.(?= (?:(?:Korea|Africa|America|Dakota|Carolina|Sudan|Virginia|Germany)n?|"
        r"Ireland|\d+(?:st|nd|rd|th)|gate|side|end|entrance|wing)\b)", say=DIRECTIONS, unless=r"(?i:\bvitamin) "),
    semiotic("address", r"\b(St|Dr)(?:\.(?!\w)|(?![\w.'-]))", say=_saint),
    semiotic("address", r"\b(N[EW]|S[EW])\b(?= (?:[A-Z][a-z]+\b(?!(?:'s)? (?:wrote|writes|novel|book))|\d+[snrt]))",
        say=DIRECTIONS, unless=r"\b(?i:by|authors?|novelist|writers?|poet) "),
    semiotic("address", r"\b([NSEW])\.(?= [A-Z])", say=DIRECTIONS, after=rf"\b{_STREET}\.? (?:and|&|at) "),
    semiotic("address", rf"\b{_DIRECTION}\b", say=DIRECTIONS,
        after=ROADS + r"\d+ |\b[A-Z]{1,2}-\d+ |\d ?(?:km|mi|m|miles|kilometers|ft|blocks?)\.? |"
        rf"\b(?:{_STREET})\.? |(?i:\bwinds?):? (?:from the |out of the )?"),
)
SIGNS_AND_ABBREVIATIONS = (
    semiotic("abbreviation", rf"\b({one_of(TITLES)})\.(?=[\s\d:,)-]|$)", say=TITLES),
    semiotic("abbreviation", rf"\b([bdm])\.(?= (?:(?:\d\d? )?(?:{one_of(MONTH_STARTS)})[a-z.]* |",
        r"ca?\. ?\d|1[5-9]\d\d\b))", unless=r"\d ?", say={"b": "born", "d": "died", "m": "married"}),
    semiotic("abbreviation", rf"\b({one_of(BEFORE_SMALL)})\.(?= [a-z($£€]|,|-[a-z]|\))", say=BEFORE_SMALL),
    semiotic("abbreviation", r"\b(?!No\. \d+ (?:others?|more|people|minutes|hours|days|of us)\b)",
        rf"(?:({one_of(COUNTED)})\.|([Ff]ig|pp|(?<=[a-z] )No)(?= \d))",
        r"(?= ?(?:-?\d|[B-HJ-Z]\b(?!\. [A-Z])|[A-Z]+-?\d|[IVXLC]{2,}\b|[VX]\b|[ivx]+\b))", say=COUNTED),
    semiotic("abbreviation", rf"\b({one_of(BEFORE_SMALL)})\.(?= ?-?\d)", say=BEFORE_SMALL, after=r"(?:^|[.;,:(] )"),
    semiotic("abbreviation", rf"\b({one_of(ENDINGS)})\.(?!\w)", say=ENDINGS, ends=True),
    semiotic("abbreviation", r"\b(?:(Ph)\.?|(Ed|Sc|Psy|Th)\.) ?D\b\.?", ends=True,
        say={"Ph": "P.H.D.", "Ed": "Ed D.", "Sc": "S.C.D.", "Psy": "Psy D.", "Th": "T.H.D."}),
    semiotic("abbreviation", r"\b([BMD])\.? ?Sc\b\.?", say="{1}.S.C.", ends=True),
    semiotic("abbreviation", r"\b([BM])\.(Ed|Eng|Phil|Tech|Com|Arch|Res)\b\.?", say="{1} {2}", ends=True),
    semiotic("abbreviation", r"\b(?:[A-Za-z]\.){2,}(?!\w)|\b(?:[A-Z]\.)+[A-Z]\b(?![.'])",
        say=lambda match, around: Said(match[0].rstrip(".") + ".", ends=True)),
    semiotic("abbreviation", r"\b[A-Z]\.(?= ?[A-Z])", say="{0}"),
    semiotic("abbreviation", r"(?<![\w'’])(km|kg|cm|mm|ml|mg)\b(?!['’]|\.\w)", say="{1:units}"),
    semiotic("abbreviation", rf"(?<![\w'’])(?!(?:{one_of(_SOUNDS)})\b)[b-df-hj-np-tv-xz]{{2,5}}\b(?!['’]|\.\w)",
        say="{0:letters}"),
    semiotic("money", r"\$+", say="dollars"),
    semiotic("emoji", rf"<3(?!\.?\d| ?(?:[%°]|(?!in)(?:{one_of(UNITS)})\b))|",
        r"(?<!\w)(?:(?:[:;=]|8(?=-))[-^']?[)(DPpoO/|\]\[]+|[xX]D+|\^_?\^|[:;]3)(?!\w)", say=""),
    semiotic("score", r"(?=[★☆]{3,10}(?![★☆]))(★*)(☆*)( ?1[/⁄]2)?", say=lambda match, around: (
        cardinal(len(match[1])) + (f" out of {cardinal(len(match[1] + match[2]))}" if match[2] else "")
        + (" and a half" if match[3] else "") + " stars")),
    semiotic("symbol", r"'([^\w\s'\"])'(?! ?s\b)", say=lambda match, around: _MARKS.get(match[1])),
    semiotic("symbol", f"[{re.escape(''.join(SIGNS))}]", say=SIGNS),
    semiotic("symbol", r"[\^*_\\|<>~#·°★☆]", say=""),
)
# fmt: on
