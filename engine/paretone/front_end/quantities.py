"""Quantities: numbers, fractions, scores, money, measures and formulas."""

from __future__ import annotations

import re

from paretone.front_end.numbers import (
    LONGEST_CARDINAL,
    cardinal,
    decimal,
    digits,
    fraction,
    ordinal,
    pairs,
    short,
    year,
)
from paretone.front_end.semiotic import Around, Said, one_of, semiotic
from paretone.front_end.written_forms import CURRENCIES, DIRECTIONS, GREEK, MAGNITUDES, MONTHS, UNITS

_GROUPED = r"\d{1,3}(?:,\d{3})+(?![\d])(?:\.\d+)?"
_SPACED = r"\d{1,3}(?:'\d{3})+(?!\d)(?:\.\d+)?|\d{1,3}(?: \d{3}){2,}(?![\d-])|\d{1,3} 000(?!\d)"
NUMBER = rf"(?:{_GROUPED}|{_SPACED}|\d+(?:\.\d+)?(?!\d)|\.\d+)"
_FRACTION = r"(?:\d+[ -])?\d{1,3}/\d{1,3}(?![\d/])(?:st|nd|rd|ths?|s)?"
_COMMA = r"\d+,\d{1,2}(?!\d|,\d)"
_SCIENTIFIC = rf"(?:(?:{NUMBER} ?[×x] ?)?10\^[-+]?\d+|\d+(?:\.\d+)?e[-+]?\d{{1,3}}\b)"
_BEFORE_UNIT = rf"\d{{1,3}} \d{{3}}(?= ?(?:[€£%]|(?:{one_of(UNITS)})\b))"
VALUE = rf"(?:{_SCIENTIFIC}|{_BEFORE_UNIT}|{_FRACTION}|{_COMMA}|{NUMBER})"
_SIGN = r"[-+]?"
_MAGNITUDE = r"(?:\s?(thousand|million|billion|trillion)\b|\s?(bn|tn|mn)\b|([kKmMBbT])\b)"
UNIT_WORD = rf"(?:{one_of(UNITS)})(?:\^[23])?"
UNIT = rf"{UNIT_WORD}(?![A-Za-z^])(?:/(?:\d+ ?)?(?!°)(?:{UNIT_WORD}(?![A-Za-z^])|[a-z]{{3,}}\b))*"
_CURRENCY = one_of([one for one in CURRENCIES if not one.isalpha()])
_CODE = one_of([one for one in CURRENCIES if one.isalpha()])


# Numbers.


def number(text: str) -> str:
    """The words of a number in any usual writing, with a sign or a fraction."""
    sign = {"-": "minus ", "+": "plus "}.get(text[0], "")
    text = text.lstrip("+-")
    if "^" in text or "e" in text:
        return sign + expression(re.sub("e(.+)", r"×10^\1", text).replace("x", "×"))
    if "/" in text:
        return sign + _mixed(text)
    if re.fullmatch(r"\d{1,3}(?:\.\d{3})+,\d{2}", text):
        text = text.replace(".", "").replace(",", ".")
    if re.fullmatch(_COMMA, text):
        text = text.replace(",", ".")
    return sign + decimal(re.sub(r"[ ',]", "", text))


def _mixed(text: str) -> str:
    match = re.match(r"(?:(\d+)[ -])?(\d+)/(\d+)", text)
    assert match is not None
    whole, top, bottom = match[1], int(match[2]), int(match[3])
    words = fraction(top, bottom)
    if whole and top == 1 and words.startswith("one ") and bottom in (2, 4):
        words = "a" + words[3:]
    return f"{decimal(whole)} and {words}" if whole else words


_CUE_OF_YEARS = (
    r"(?i:\b(?:in|since|until|till|by|from|to|of|the|after|before|during|through|year|early|late|mid|around|circa|"
    r"and|between|winter|summer|spring|fall|autumn|than|for)|[,(])[ -]?"
)
COUNTED_NOUN = r" [a-z]+[^\Ws]s\b"
_NAMED_BY_NUMBER = r"\b(?:Boeing|Airbus|Flight|Route|Highway|Hwy|Interstate|Porsche|Levi's|HTTP|[Ee]rror|[Aa]rea code) "


def plain_number(match: re.Match[str], around: Around) -> Said | str | None:
    sign, text, magnitude = match[1], match[2], match[3] or match[4] or match[5]
    if sign and around.follows(r"[\w)]"):
        return None
    words = {"-": "minus ", "+": "plus ", "": ""}[sign]
    if magnitude:
        if magnitude in "kKmMbBT" and not _magnified(text, magnitude, around):
            return None
        return words + f"{number(text)} {MAGNITUDES.get(magnitude, magnitude)}"
    if not sign and text.isdigit():
        return _integer(text, around)
    return words + number(text)


def _magnified(text: str, letter: str, around: Around) -> bool:
    if letter in "kK":
        raced = text in ("5", "10") and around.follows(r"\b(?:ran|run|a|the|her|his|my|our) ")
        return not (
            raced
            or around.precedes(r" (?:run|race|walk|film|video|resolution|screen|tv|TV)\b")
            or (letter == "K" and text in ("2", "4", "5", "8") and not around.precedes(COUNTED_NOUN))
        )
    counts = around.follows(
        r"(?i:\b(?:about|over|nearly|almost|than|has|have|had|of|to|hit|reached|got|from|by)) |[~<>]"
    )
    return around.precedes(rf"{COUNTED_NOUN}| people\b") or (counts and letter != "b")


def _integer(text: str, around: Around) -> str:
    if len(text) == 3 and around.follows(_NAMED_BY_NUMBER):
        return pairs(text)
    if text in ("911", "112", "999", "411", "311", "211") and around.follows(
        r"(?i:\b(?:call|dial|called|dialed|ring) )"
    ):
        return digits(text)
    if 4 <= len(text) <= 6 and around.follows(r"(?i:\b(?:zip|pin|code|password|passcode|postcode)(?: is|:)?) "):
        return digits(text)
    if len(text) != 4 or text[0] == "0":
        return decimal(text)
    if "1010" <= text <= "2199" and not text.endswith("00"):
        counted = around.precedes(COUNTED_NOUN) and not around.follows(_CUE_OF_YEARS)
        return decimal(text) if counted and not around.precedes(" (?:was|is|has|does|as)") else year(int(text))
    if text.endswith("00") and text[1] != "0":
        return f"{cardinal(int(text[:2]))} hundred"
    return decimal(text)


_PART_OF = (
    r" (?:of|cups?|miles?|inch|inches|lbs?|pounds?|tsp|tbsp|teaspoons?|tablespoons?|majority|hours?|full|empty)\b"
)
_CUE_OF_DATES = (
    r"(?i:\b(?:on|by|until|till|due|before|after|since|from|starting|dated?|expires?|of|for|until|is)) (?:the )?"
)
_SCRIPTURE = r"\b(?:Psalms?|John|Luke|Mark|Matthew|Genesis|Exodus|Romans|Acts|Isaiah|Proverbs|Corinthians|Kings|Job) "


def day_of_month(day: int) -> str:
    return ordinal(day).replace(" ", "-")


def month_day(month: int, day: int) -> str:
    return f"{MONTHS[month - 1]} {day_of_month(day)}"


def _slashed(match: re.Match[str], around: Around) -> Said | str | None:
    """A fraction, a score, or a month and a day."""
    whole, top, bottom = match[1], match[2], match[3]
    if whole:
        return Said(_mixed(match[0]), kind="fraction")
    if match[0] in ("24/7", "9/11"):
        return Said("twenty four seven" if match[0] == "24/7" else "nine eleven", kind="date")
    if match[0] in ("50/50", "20/20"):
        return Said(f"{cardinal(int(top))} {cardinal(int(top))}", kind="score")
    first, second = int(top), int(bottom)
    if first + second == 100 and first > second:
        return Said(f"{cardinal(first)} {cardinal(second)}", kind="score")
    month, day = (second, first) if around.british or first > 12 else (first, second)
    date = 1 <= month <= 12 and 1 <= day <= 31 and not match[4] and (top[0] != "0" or len(top) == 2)
    part = match[4] or around.precedes(_PART_OF)
    if date and around.follows(_CUE_OF_DATES) and not part and not around.precedes(" (?:stars|points)"):
        return Said(month_day(month, day), kind="date")
    rated = second in (10, 100) or first == second > 1 or (second == 5 and (first == 5 or around.precedes(" stars")))
    if rated and not part and first <= second:
        return Said(f"{number(top)} out of {cardinal(second)}", kind="score")
    usual = second in (*range(2, 11), 12, 16, 20, 32, 64, 100)
    if not usual and 12 < first < second:
        return Said(f"{cardinal(first)} slash {cardinal(second)}", kind="identifier")
    if date and not (first < second and usual) and not part:
        return Said(month_day(month, day), kind="date")
    return Said(fraction(first, second), kind="fraction")


def _ratio(match: re.Match[str], around: Around) -> str:
    if around.follows(_SCRIPTURE) or re.fullmatch(r"[2-9]\d:[0-5]\d", match[0]):
        return f"{cardinal(int(match[1]))} {short(match[2]) if match[2] != '00' else 'minutes'}"
    return f"{number(match[1])} to {number(match[2])}"


# Money and measures.


def _money(match: re.Match[str], around: Around) -> Said | None:
    sign, value = match["sign"] or match["inner"] or "", match["value"]
    names = CURRENCIES[match["symbol"] or match["code"]]
    magnitude = match["word"] or match["short"] or match["letter"]
    unit = names[1]
    minus = {"-": "minus ", "+": "plus "}.get(sign, "")
    if sign and around.follows(r"[\w)]"):
        return None
    text = re.sub(r"\.(?=\d{3},)|[ ']", "", value) if re.search(r"\d\.\d{3},\d\d$", value) else value
    text = re.sub(r",(?=\d{1,2}$)", ".", re.sub(r"[ ']", "", text))
    whole, _, cents = re.sub(",", "", text).partition(".")
    if magnitude:
        words = f"{decimal(text)} {MAGNITUDES.get(magnitude, magnitude)}"
    elif "/" in value or len(cents) not in (0, 2):
        words = number(value) if "/" in value else decimal(text)
    else:
        words, unit = "", names[0] if int(whole or "0") == 1 else names[1]
        small = f"{cardinal(int(cents))} {names[2] if int(cents) == 1 else names[3]}" if cents.strip("0") else ""
        if small and int(whole or "0"):
            words, unit = f"{decimal(whole)} {unit} and {cardinal(int(cents))}", small.rpartition(" ")[2]
        elif small:
            words, _, unit = small.rpartition(" ")
        else:
            words = decimal(whole or "0")
            unit = names[0] if _adjective(around) else unit
    return Said(minus + words, f"{unit} per {per(match['per'])}" if match["per"] else unit)


_NOT_A_NOUN = (
    "of|in|on|at|to|for|from|by|with|and|or|is|are|was|were|as|a|an|the|per|more|less|each|every|than|that|when|if|but|"
    "so|down|up|off|out|under|over|into|before|after|long|wide|high|tall|deep|away|apart|old|later|ago|now|then|here"
)


def _adjective(around: Around) -> bool:
    """Whether a quantity belongs to a noun after it: "a $20 tip", "a 16 oz. can"."""
    singular = around.precedes(rf"\.? (?!(?:{_NOT_A_NOUN})\b)[a-z]+\b")
    return around.follows(r"(?i:\b(?:an?|another|each|every|this|that|one)) ") and singular


def _measure(match: re.Match[str], around: Around) -> Said | None:
    sign, value, gap, written = match["sign"], match["value"], match["gap"], match["unit"]
    if sign and around.follows(r"[\w)]"):
        return None
    text = written.rstrip(".")
    if text in ("in", "h", "t", "s", "x", "mo", "K", "min", "N", "pt") and not _unit_here(text, gap, value, around):
        return None
    one = value.lstrip("0") == "1" or re.fullmatch(r"\d+/\d+.*", value) is not None
    singular = one or gap == "-" or (text[0] != "°" and _adjective(around))
    if not singular and re.fullmatch(r"\d0?s", value + text):
        return None
    mark = {"-": "minus ", "+": "plus ", "": ""}[sign]
    text = "bp" if text == "bps" and len(value) < 4 else text  # Basis points, not bits.
    return Said(mark + number(value), units(text, singular), ends=False)


def _unit_here(unit: str, gap: str, value: str, around: Around) -> bool:
    """Whether a unit that is also another word or letter is one here."""
    if unit == "in" and gap == "-":
        return True
    if unit == "in":
        return (
            around.precedes(r"\.?(?: [a-z=]|[,;)]|$)") and around.follows(r"(?:ft|feet|foot)\.? ")
        ) or around.precedes(r"\.(?: [a-z]|$)")
    if unit in ("s", "t", "pt"):
        return bool(gap) and not around.precedes("'")
    if unit == "N":
        return bool(gap) and not around.precedes(r"\.? [A-Z]|\.")
    if unit == "x":
        return not gap
    if unit == "K":
        return bool(gap) and not around.precedes(COUNTED_NOUN)
    return not (unit == "mo" and not gap)


def units(text: str, singular: bool) -> str:
    """The words of a unit expression: "mg/kg", "m^2", "L/100 km"."""
    if text in UNITS:
        return UNITS[text][not singular]
    head, *rest = text.split("/")
    words = _unit_words(head, singular, not rest)
    for part in rest:
        words += f" per {per(part)}"
    return words


def per(text: str) -> str:
    count = re.match(r"(\d+) ?", text)
    unit = text[count.end() :] if count else text
    base = unit.removesuffix("^2").removesuffix("^3")
    words = _unit_words(unit, not count or count[1] == "1", False) if base in UNITS else unit
    return f"{cardinal(int(count[1]))} {words}" if count else words


def _unit_words(unit: str, singular: bool, alone: bool) -> str:
    base, _, power = unit.partition("^")
    words = UNITS[base][not singular]
    if power and base in ("s", "sec", "min", "h"):
        return f"{words} {'squared' if power == '2' else 'cubed'}"
    return f"{'square' if power == '2' else 'cubic'} {words}" if power else words


def _unit_alone(match: re.Match[str], around: Around) -> str | None:
    if around.follows(r"(?i:\b(?:per|square|cubic|a|in)) "):
        return _unit_words(match[0], True, True)
    lengths = match[1] in ("m", "km", "cm", "mm", "ft", "mi", "yd")
    return _unit_words(match[0], False, True) if lengths and not around.precedes(r"\s?[=+-]") else None


def _percent(match: re.Match[str], around: Around) -> Said | None:
    if match[1] and around.follows(r"[\w)]"):
        return None
    return Said(number(match[1] + match[2]), "percent" if match[3] == "%" else "per mille")


def _inches(match: re.Match[str], around: Around) -> Said | None:
    if len(re.findall(r'(?<!\d)"', around.before)) % 2:
        return None  # It closes a quotation.
    return Said(number(match[1]), "inch" if re.match(r"1$|\d+/", match[1]) or _adjective(around) else "inches")


def _place_on_earth(match: re.Match[str], around: Around) -> str:
    parts = [f"{number(match[1])} {'degree' if match[1] == '1' else 'degrees'}"]
    parts += [f"{number(match[2])} minutes"] if match[2] else []
    parts += [f"{number(match[3])} seconds"] if match[3] else []
    return " ".join((*parts, DIRECTIONS[match[4]].lower()))


def _by(match: re.Match[str], around: Around) -> Said | None:
    unit = match["unit"]
    parts = re.split(r" ?[x×] ?", match["sizes"])
    if not unit and "×" in match["sizes"]:
        return None
    said = [pairs(one) if len(one) == 4 else number(one) for one in parts]
    return Said(" by ".join(said), units(unit.rstrip("."), False) if unit else "")


# Mathematics.


_FUNCTIONS = {
    "sin": "sine", "cos": "cosine", "tan": "tangent", "ln": "natural log", "exp": "exp", "log": "log", "mod": "mod",
}  # fmt: skip
RELATIONS = {
    "=": "equals", "==": "equals", "!=": "is not equal to", "≠": "is not equal to", "<": "is less than",
    ">": "is greater than", "<=": "is less than or equal to", ">=": "is greater than or equal to",
    "≤": "is less than or equal to", "≥": "is greater than or equal to", "≈": "about", "±": "plus or minus",
    "+": "plus", "-": "minus", "×": "times", "*": "times", "·": "times", "÷": "divided by", "/": "over",
    "→": "to", "^": "to the", "√": "the square root of", "|": "", "%": "percent", "∈": "in", "∞": "infinity",
    "π": "pi", "∑": "the sum of", "∫": "the integral of", "∂": "partial",
}  # fmt: skip
_BOUNDS = {
    "<": "less than",
    ">": "more than",
    "<=": "at most",
    ">=": "at least",
    "~": "about",
    "≤": "at most",
    "≥": "at least",
}
_OPERAND = (
    r"(?:(?:\d+(?:,\d{3})+|\d*\.?\d+)(?![\d.]*\.\d)[A-Za-zΑ-ω]{0,3}|(?:sin|cos|tan|log|ln|exp|mod|max|min)(?![a-z])|"
    r"(?!(?:to|of|in|is|at|on|or|if|by|as|an|am|be|do|go|he|it|me|my|no|so|up|us|we|vs|To|Of|In|Is|At|On|Or|If|By|As|It|No|So|We|US|UK|EU)\b)(?:[A-Za-z]?[Α-ω][A-Za-z]?|[A-Za-z]{1,2})(?![A-Za-z'’])|[∞π]|\|)%?"
)
_OPEN = r"(?:[-+±√(|∑∫]\s?)*"
POWER = r"(?:\^(?:[-+]?(?:\d+|[A-Za-z]\b)|[({][^(){}]{1,12}[)}]))"
_CLOSE = rf"(?:(?:\)|\(\)|{POWER})*)"
_OPERATOR = r"(?:\s?(?:==|!=|<=|>=|[=<>≤≥≠≈±+×*·÷/→∈])\s?|\s-\s|-|\|(?=\w)|(?=\())"
_MATHEMATICS = rf"{_OPEN}{_OPERAND}{_CLOSE}(?:{_OPERATOR}{_OPEN}{_OPERAND}{_CLOSE})*"
_STRONG = re.compile(
    r"[=≠≤≥<>×÷^√±≈∈∑∫∂]|\d\s?[+*·]\s?[\d(a-z]|[a-z)]\s?[+*·] ?[\d(a-z]|\b[a-z]\s?-\s?\d|\b[a-z] - [a-z]\b|"
    r"\b\d/[a-z]\b|\w\|\w|[A-Z] → [A-Z]|\d - \d|[)]-[(\da-z]"
)


def _mathematics(match: re.Match[str], around: Around) -> str | None:
    text = match["formula"]
    if not _STRONG.search(text) or around.follows(r"[\w$£€/#@.]") or around.precedes(r"\w|/\w|'\w"):
        return None
    if not re.search(r"[=≠≤≥<>×÷^√±≈+*·∈→]", text):
        spaced = re.fullmatch(r"(\d+) - (\d+)", text)
        if spaced and int(spaced[1]) <= int(spaced[2]):
            return None
    if re.fullmatch(r"[A-Za-z] ?[/|] ?[A-Za-z]|.* <3|[-+±]\s?[\d.,]+|", text):
        return None
    unit = match["unit"]
    return expression(match["formula"]) + (f" {units(unit, False)}" if unit else "")


def expression(text: str) -> str:
    """The words of a formula; brackets have no sound."""
    found: list[str] = []
    parts = re.findall(
        r"\^\s*(?:[({][^(){}]*[)}]|[-+]?(?:\d+|\w))|\d+/\d+|\d+(?:,\d{3})*(?:\.\d+)?|\.\d+|[A-Za-z]+|[Α-ω]|==|!=|<=|>=|\S",
        text,
    )
    for place, part in enumerate(parts):
        before = parts[place - 1] if place else ""
        after = parts[place + 1] if place + 1 < len(parts) else ""
        if part[0] == "^":
            found.append(power(part[1:].strip("(){} ")))
        elif part[0].isdigit() or part[0] == ".":
            found.append(number(part))
        elif part.isalpha() and part.isascii():
            function = _FUNCTIONS.get(part, "")
            found.append(function or (part if len(part) == 1 else ".".join(part.upper()) + "."))
            if after == "(" and (
                function or (len(part) == 1 and place + 2 < len(parts) and parts[place + 2].isalnum())
            ):
                found.append("of")
        elif part.lower() in GREEK:
            found.append(GREEK[part.lower()])
        elif part == "(":
            if before and (before[0].isdigit() or before == ")"):
                found.append("times")
        elif part == "|" and before.isalnum() and after.isalnum():
            found.append("given")
        else:
            found.append(RELATIONS.get(part, ""))
    return " ".join(filter(None, found))


def power(text: str) -> str:
    if text in ("2", "3"):
        return "squared" if text == "2" else "cubed"
    if text.isdigit():
        return f"to the {ordinal(int(text[:LONGEST_CARDINAL]))}"
    return f"to the {expression(text)}"


_MONEY_VALUE = rf"(?P<value>\d{{1,3}}(?:\.\d{{3}})+,\d{{2}}(?!\d)|{VALUE})"
_MANY = r"(?:\s?(?P<word>thousand|million|billion|trillion)\b|\s?(?P<short>bn|tn|mn)\b|(?P<letter>[kKmMBbT])"
_RATE = rf"(?:/(?P<per>[a-z]+|{UNIT_WORD})\b)?"
_DEGREES = r"(\d+(?:\.\d+)?)"

# fmt: off
CLASSES = (
    semiotic("money", rf"(?P<sign>[-+])?(?:(?P<symbol>{_CURRENCY})|\b(?P<code>{_CODE})) ?(?P<inner>-)?{_MONEY_VALUE}",
        rf"{_MANY}\b)?{_RATE}", say=_money, quantity=True),
    semiotic("money", rf"(?P<sign>[-+])?{_MONEY_VALUE}{_MANY}(?= ?[^\w\s]| ?(?:{_CODE})))? ?",
        rf"(?P<inner>)(?:(?P<symbol>[€£₹₽₩₺¥])|(?P<code>{_CODE})\b){_RATE}", say=_money, quantity=True),
    semiotic("money", rf"({NUMBER}) ?(?:¢|ct\b|cts\b)",
        say=lambda match, around: Said(number(match[1]), "cent" if match[1] == "1" else "cents"), quantity=True),
    semiotic("measure",
        rf"(?P<sign>{_SIGN})(?P<value>{VALUE})(?P<gap>[ -]?)(?P<unit>{UNIT})(?:\.(?= [a-z(\d=]|,))?(?!\w|'\w)",
        say=_measure, quantity=True),
    semiotic("measure", rf"({_SIGN})({VALUE}) ?([%‰])", say=_percent, quantity=True),
    semiotic("measure", rf"({VALUE}) c\.(?= [a-z])",
        say=lambda match, around: Said(number(match[1]), "cup" if re.match(r"1$|\d+/", match[1]) else "cups")),
    semiotic("measure", r"[x×](?= \d)",
        say=lambda match, around: "by" if around.follows(r"\d ?(?:ft|in|yd|mi|[kcm]?m)\.? |['\"] ?") else None),
    semiotic("measure", rf"(\d)' ?({_FRACTION}|\d{{1,2}}(?:\.\d)?)(?!\d)(?:\"|''|(?!\w))",
        say=lambda match, around: f"{cardinal(int(match[1]))} foot {number(match[2])}", quantity=True),
    semiotic("measure", rf"({VALUE})(?:\"|'')(?!\w)", say=_inches),
    semiotic("measure", rf"{_DEGREES}° ?(?:{_DEGREES}' ?)?(?:{_DEGREES}(?:\"|'') ?)?([NSEW])\b", say=_place_on_earth),
    semiotic("measure", rf"(?P<sizes>\d+(?:\.\d+)?(?: ?[x×] ?\d+(?:\.\d+)?)+)(?: ?(?P<unit>{UNIT})(?!\w))?(?![\d^])",
        say=_by),
    semiotic("measure", rf"({one_of(UNITS)})\^[23]", say=_unit_alone),
    semiotic("measure", rf"{UNIT_WORD}/{UNIT_WORD}(?![\w^/])",
        say=lambda match, around: None if around.follows(r"\d ?|[\w/]") else units(match[0], False)),
    semiotic("measure", r"°[CF]\b", say=lambda match, around: UNITS[match[0]][1]),
    semiotic("money", r"(\d{1,2})p\b",
        say=lambda match, around: f"{number(match[1])} {'penny' if match[1] == '1' else 'pence'}"),
    semiotic("measure", rf"/({UNIT_WORD}|day|week|month|year|person|night|hour|minute|second|user|page)\b",
        say=lambda match, around: f"per {per(match[1])}" if around.follows("[a-z]{2,}|[)%]") else None),
    semiotic("fraction", r"(?:(\d+)[ -])?(\d{1,4})/(\d{1,4})(st|nd|rd|ths?|s)?(?![\d/])", say=_slashed, quantity=True),
    semiotic("score", r"(\d+\.\d+)/(\d+)(?!\.?\d|/)",
        say=lambda match, around: f"{number(match[1])} out of {number(match[2])}"),
    semiotic("score", r"(\d+):(\d{1,3}(?:,\d{3})+|\d+)(?![\d:])", say=_ratio),
    semiotic("ordinal", r"(\d{1,3}(?:,\d{3})+|\d+)(?:st|nd|rd|th|ST|ND|RD|TH)\b",
        say=lambda match, around: ordinal(int(match[1].replace(",", "")[:LONGEST_CARDINAL])), quantity=True),
    semiotic("cardinal", rf"({_SIGN})({NUMBER}){_MAGNITUDE}(?![\d])", say=plain_number, quantity=True),
)
PLAIN = (
    semiotic("cardinal", rf"({_SIGN})({_SCIENTIFIC}|{NUMBER})()()()(?![\d])", say=plain_number, quantity=True),
    semiotic("mathematics", rf"(?P<formula>{_MATHEMATICS})(?:(?<=\d) (?P<unit>(?!(?:in|x|t|h|a)\b){UNIT})(?![\w(=]))?",
        say=_mathematics),
    semiotic("mathematics", r"-(?=[(√Α-ω]|[a-z]\b)",
        say=lambda match, around: None if around.follows(r"[\w)]") else "minus"),
    semiotic("mathematics", r"[Α-Ωα-ω]+", say=lambda match, around: " ".join(GREEK[one.lower()] for one in match[0])),
    semiotic("mathematics", r"-(?= )", say=lambda match, around: "minus" if around.follows(r"= ?[^.=]* ") else None),
    semiotic("mathematics", r"([A-Za-z])'(?=\()", say=lambda match, around: f"{match[1]} prime of"),
    semiotic("mathematics", r"!=|<=|>=|==", say=lambda match, around: RELATIONS[match[0]]),
    semiotic("mathematics", r"((?<!\w)~|[<>≤≥]=?)(?= ?[-+]?[\d$£€.])", say=lambda match, around: _BOUNDS[match[1]]),
    semiotic("mathematics", r"[<>](?= )",
        say=lambda match, around: RELATIONS[match[0]] if around.follows(r"\w ") else None),
    semiotic("mathematics", POWER,
        say=lambda match, around: power(match[0][1:].strip("(){}")) if around.follows(r"[\w)]") else None),
)
# fmt: on
