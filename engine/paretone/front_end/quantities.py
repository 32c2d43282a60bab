"""Quantities: numbers, fractions, scores, money, measures and formulas."""

from __future__ import annotations

import re

from paretone.front_end.numbers import cardinal, decimal, digits, fraction, ordinal, pairs, plural, year
from paretone.front_end.semiotic import FORMS, Around, Said, compiled, one_of, semiotic
from paretone.front_end.written_forms import (
    CURRENCIES,
    ELEMENTS,
    GREEK,
    MAGNITUDES,
    MONTHS,
    ROADS,
    SIGNS,
    STARTERS,
    UNITS,
    listed,
    rows,
    table,
)

_GROUPED = r"(?:\d{1,3}(?:,\d{3})+|\d{1,2}(?:,\d\d)+,\d{3})(?!\d)(?:\.\d+)?"
"""1,500,000 or, as in India, 15,00,000."""
_SPACED = r"\d{1,3}(?:['_]\d{3})+(?!\d)(?:\.\d+)?|\d{1,3}(?: \d{3}){2,}(?![\d-])|\d{1,3} 000(?!\d)"
NUMBER = rf"(?:{_GROUPED}|{_SPACED}|\d+(?:\.\d+)?(?!\d)|\.\d+)"
_FRACTION = r"(?:\d+[ -])?\d{1,3}[/⁄]\d{1,3}(?![\d/])(?:st|nd|rds?|ths?|s)?"
_COMMA = r"\d+,\d{1,2}(?!\d|,\d)"
_SCIENTIFIC = rf"(?:(?:{NUMBER} ?[×x] ?)?10\^[-+]?\d+|\d+(?:\.\d+)?e[-+]?\d{{1,3}}\b)"
_BEFORE_UNIT = rf"\d{{1,3}} \d{{3}}(?= ?(?:[€£%]|(?:{one_of((*UNITS, *filter(str.isalpha, CURRENCIES)))})\b))"
VALUE = rf"(?:{_SCIENTIFIC}|{_BEFORE_UNIT}|{_FRACTION}|{_COMMA}|{NUMBER})"
_SIGN = r"(?:(?<![\w)])[-+])?"
_SIGNS = {"-": "minus ", "+": "plus ", "": ""}
_IN_SHORT = r"(?:(?:bn|tn|mn)\b|(?:mil(?! (?:thick|gauge|plastic|poly|bag|sheet|film))|bil|tril)\b(?:\.(?= [a-z]))?)"
_MAGNITUDE = rf"(?:\s?(thousand|million|billion|trillion)\b|\s?({_IN_SHORT})|([kKmMBbT])\b)"
UNIT_WORD = rf"(?:{one_of(UNITS)})(?:\^[23](?!\d))?"
_OF = r"(?:10+ ?|1\.73 ?|\d\d? ?(?=h\b))?(?!°)"
UNIT = rf"{UNIT_WORD}(?![A-Za-z^])(?:\.?/{_OF}(?:{UNIT_WORD}(?![A-Za-z^])|(?!gas )[a-z]{{3,}}\b))*"
_CURRENCY = one_of([one for one in CURRENCIES if not one.isalpha()])
_CODE = one_of([one for one in CURRENCIES if one.isalpha()])


# --- Numbers ----------------------------------------------------------------------------------------------------------
def number(text: str) -> str:
    """The words of a number in any usual writing, with a sign or a fraction."""
    sign = _SIGNS.get(text[0], "")
    text = text.lstrip("+-")
    if "^" in text or "e" in text:
        return sign + expression(re.sub("e(.+)", r"×10^\1", text).replace("x", "×"))
    if re.search("[/⁄]", text):
        return sign + _mixed(text)
    if re.fullmatch(_COMMA, text):
        text = text.replace(",", ".")
    return sign + decimal(re.sub(r"[ ',_]", "", text))


def _mixed(text: str) -> str:
    match = re.match(r"(?:(\d+)[ -])?(\d+)[/⁄](\d+)", text)
    assert match is not None
    whole, top, bottom = match[1], int(match[2]), int(match[3])
    words = fraction(top, bottom)
    if whole and top == 1 and words.startswith("one ") and bottom in (2, 4):
        words = "a" + words[3:]
    return f"{decimal(whole)} and {words}" if whole else words


_CUE_OF_YEARS = rf"(?i:\b(?:{one_of(listed('before year'))})|[,(#])[ -]?"
COUNTED_NOUN = r" (?!(?:was|has|does|this|plus)\b)[a-z]+[^\Ws]s\b"
_COUNTED_BY_MILLIONS = rf" (?:(?:new|active|monthly|daily|paid|more) )?(?:{one_of(listed('counted by millions'))})\b"
_OF_MILLIONS = rf"(?i:\b(?:{one_of(listed('before millions'))})\b)[^!?]{{0,30}}"


def plain_number(match: re.Match[str], around: Around) -> Said | str | None:
    sign, text, magnitude = match[1], match[2], (match[3] or match[4] or match[5] or "").rstrip(".")
    words = _SIGNS[sign]
    if magnitude:
        if magnitude in "kKmMbBT" and not _magnified(text, magnitude, around):
            return None
        return words + f"{number(text)} {MAGNITUDES.get(magnitude, magnitude)}"
    if sign == "-" and re.fullmatch(r"\d{4,}", text) and around.follows(r"(?i:\b(?:ends? in|ending in|fax|tel)\.?:?) "):
        return digits(text)  # The dash stands for what is left out.
    if not sign and text.isdecimal():
        return _integer(text, around)
    return words + number(text)


def _magnified(text: str, letter: str, around: Around) -> bool:
    if letter in "kK":
        screen = letter == "K" and text in "2 4 5 8".split()
        return not around.precedes(rf" (?:{one_of(listed('after 4K'))})s?\b") and (
            not screen or around.precedes(rf"{COUNTED_NOUN}| to [\d.]+[kK]")
        )
    scaled = "." in text and letter in "MB" and not around.precedes(" (?:solution|[A-Z][a-z]?[A-Z])")
    counts = scaled or around.follows(
        rf"{_OF_MILLIONS}|(?i:\b(?:about|over|nearly|almost|than|has|have|had|of|to|hit|reached|got|from|by|"
        r"approx\.|around|roughly)) |~|(?<!-)[<>]|[$£€][\d.,]+ ?[-–] ?"
    )
    return around.precedes(rf"\+?(?:{COUNTED_NOUN}|{_COUNTED_BY_MILLIONS})") or (counts and letter != "b")


def _integer(text: str, around: Around) -> str:
    if len(text) != 4 or text[0] == "0":
        return decimal(text)
    if "1010" <= text <= "2199" and not text.endswith("00"):
        counted = around.precedes(COUNTED_NOUN) and not around.follows(_CUE_OF_YEARS)
        return decimal(text) if counted else year(int(text))
    return pairs(text) if text.endswith("00") and text[1] != "0" else decimal(text)


_PART_OF = (
    r" (?:of|cups?|miles?|inch|inches|lbs?|pounds?|tsp|tbsp|teaspoons?|tablespoons?|majority|hours?|full|empty)\b"
)
_CUE_OF_DATES = (
    r"(?i:(?:\b|')(?:on|by|until|'?till?|due|before|after|since|from|dated?|of|for|is|delivery|deadline|"
    r"(?:start|begin|open|end|close|expire|arrive|ship)s|(?:start|shipp|meet|clos|open)ing|expire|"
    r"(?:mon|tue|tues|wed|thu|thur|thurs|fri|sat|sun)(?:[a-z]*day|\.)?,?)) (?:the )?"
)

_SURE_DATE = r"\b\d\d?/(?:1[3457-9]|2[1-9]|3[01])"  # Of such numbers there are no fractions.
_CHANGED = rf"\b(?i:{one_of(listed('change'))})\b[^.!?]{{0,24}} by "
_AFTER_A_DATE = (
    rf"(?:{_SURE_DATE}|\b(?i:on|(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,?) \d\d?/\d\d?) ?(?:[-–]|to|through) ?"
)


def day_of_month(day: int) -> str:
    return ordinal(day).replace(" ", "-")


def _slashed(match: re.Match[str], around: Around) -> Said | str | None:
    """A fraction, a score, or a month and a day."""
    whole, top, bottom = match[1], match[2], match[3]
    if whole and around.precedes(" price"):
        return None
    if whole or "⁄" in match[0]:  # As of "½", which is no date.
        return Said(_mixed(match[0]), kind="fraction")
    first, second = int(top), int(bottom)
    if 12 < first < second and around.precedes(r" (?:on|in) (?:the|my|his|her|our|an?)\b| correct|%"):
        return Said(f"{number(top)} out of {cardinal(second)}", kind="score")
    if first + second == 100 and first > second:
        return Said(f"{cardinal(first)} {cardinal(second)}", kind="score")
    month, day = (second, first) if around.british or first > 12 else (first, second)
    usual = second in (*range(2, 11), 12, 16, 20, 32, 64, 100)
    end = around.follows(_AFTER_A_DATE) or around.precedes(f" ?[-–] ?{_SURE_DATE}")
    counted = around.follows(rf"(?<!week )\bof |/\d+ is |\b(?:{one_of(listed('amount'))}|[a-z]) is |{_CHANGED}")
    amount = first < second and usual and counted and not end
    date = not amount and 1 <= month <= 12 and 1 <= day <= 31 and not match[4] and (top[0] != "0" or len(top) == 2)
    part = match[4] or around.precedes(rf"(?: (?:to|and|or) \d+/\d+)?(?:{_PART_OF})")
    named = Said(day_of_month(day), before=MONTHS[month - 1], kind="date") if date else None
    if named and (end or around.follows(_CUE_OF_DATES)) and not part and not around.precedes(" (?:stars|points)"):
        return named
    rated = second in (10, 100) or first == second > 1 or (second == 5 and (first == 5 or around.precedes(" stars")))
    if rated and not part and first <= second:
        return Said(f"{number(top)} out of {cardinal(second)}", kind="score")
    if not usual and 12 < first < second:
        return Said(f"{cardinal(first)} slash {cardinal(second)}", kind="identifier")
    if named and not (first < second and usual) and not part:
        return named
    return Said(fraction(first, second), kind="fraction")


# --- Money and measures -----------------------------------------------------------------------------------------------
def _money(match: re.Match[str], around: Around) -> Said | None:
    sign, value = match["sign"] or match["inner"] or "", match["value"]
    names = CURRENCIES[match["country"] or match["symbol"] or match["code"]]
    magnitude = (match["word"] or match["short"] or match["letter"] or "").rstrip(".")
    unit = names[1]
    text = re.sub(r",(?=\d{1,2}$)", ".", re.sub(r"\.(?=\d{3},\d\d$)|[ '_](?=\d{3})", "", value))
    whole, _, cents = re.sub(",", "", text).partition(".")
    if magnitude:
        words, unit = f"{number(text)} {MAGNITUDES.get(magnitude, magnitude)}", names[not _adjective(around)]
    elif re.search("[/⁄^e]", value):
        words = number(value)
    elif len(cents) not in (0, 2) or match["symbol"] == "₿":
        words = decimal(text)
    else:
        words, unit = "", names[0] if int(whole or "0") == 1 else names[1]
        small = f"{cardinal(int(cents))} {names[2] if int(cents) == 1 else names[3]}" if cents.strip("0") else ""
        if small and int(whole or "0"):
            one, cent = (names[0], names[2]) if _adjective(around) else (unit, "")
            words, unit = f"{decimal(whole)} {one} and {cardinal(int(cents))}", cent or small.rpartition(" ")[2]
        elif small:
            words, _, unit = small.rpartition(" ")
        elif whole in ("5", "10", "20", "50", "100") and around.follows(r"\b[Aa]n? ") and around.precedes(_NO_NOUN):
            return Said(cardinal(int(whole)))  # A note.
        else:
            words = decimal(whole or "0")
            unit = names[0] if _adjective(around) else unit
    if match["pieces"]:
        return Said(plural(words))
    unit = names[0] if around.precedes("-(?!ish|plus|odd)[a-z]") else unit
    return Said(_SIGNS[sign] + words, f"{unit} per {per(match['per'])}" if match["per"] else unit)


_NOT_A_NOUN = "|".join(listed("no noun"))
_NOUNS = "|".join(listed("noun"))


def _adjective(around: Around) -> bool:
    """Whether a quantity belongs to a noun after it: "a $20 tip", "a 16 oz. can"."""
    articles = r"\b(?i:an?|another|each|every|this|that|one|the|his|her|its|their|our|my|your) (?:[$£€]?[\d.]+\w*[-–])?"
    owners = r"\b(?!That|There|What|Here|Where)[A-Z]\w{3,}'s "
    named = around.follows(r"\b[Aa]n? ") and around.precedes(r"[,;)]|\.?$")
    return named or (
        around.follows(f"{articles}|{owners}") and (_before_noun(around) or around.precedes(" [A-Z][A-Za-z]"))
    )


def _before_noun(around: Around) -> bool:
    return around.precedes(rf"\.? (?:(?:{_NOUNS})\b|(?!(?:{_NOT_A_NOUN})\b)(?![a-z]+(?:ly|ed|ing)\b)[a-z]+\b)")


def _measure(match: re.Match[str], around: Around) -> Said | None:
    sign, value, gap, written = match["sign"], match["value"], match["gap"], match["unit"]
    text = written if written in UNITS else written.rstrip(".")
    millions = text == "m" and not gap and (around.precedes(_COUNTED_BY_MILLIONS) or around.follows(_OF_MILLIONS))
    if millions or text.startswith("x^") or not _unit_here(match, text, around):
        return None
    part = re.fullmatch(r"(\d+)[/⁄](\d+).*", value)
    one = value.lstrip("0") == "1" or (part is not None and int(part[1]) < int(part[2]))
    close = not gap and text.isalpha() and (text in "WVA" or text == "mm" or (text[:-1] and text[:-1] not in UNITS))
    close = close or (match[0][-1] == "." and text in ("hr", "min", "sec", "wk", "mo", "yr"))
    singular = one or gap == "-" or (text[0] != "°" and ((close and _before_noun(around)) or _adjective(around)))
    if text == "pp" and match[0][-1] == "." and "." not in value and not around.follows(r"\b(?:rose|fell|up|down|by) "):
        text = "pg"  # Pages, not percentage points.
    text = "bp" if text == "bps" and len(value) < 4 else text  # Basis points, not bits.
    return Said(_SIGNS[sign] + number(value), units(text, singular))


SPANS = r"(?:days?|wks?|weeks?|mos?|months?|doses?|nights?|hrs?|hours?|yrs?|years?)\b"
TAKES = (
    r"(?i:\b(?:after|for|every|within|takes?|took|wait|only|just|about|than|lasts?|of|timeout:?) |=|[~≈] ?)~?|"
    r"(?i:\b(?:retry\w*|again|done|finished|passed|failed|built|ready|completed|started)\b[^.!?]{0,16} in )"
)
"""Before seconds, "30s", rather than a decade."""


def _unit_here(match: re.Match[str], unit: str, around: Around) -> bool:
    """Whether a unit that is also another word or letter is one here."""
    gap, value, dotted = match["gap"], match["value"], match[0][-1] == "."
    if unit in ("N", "W", "L") and around.follows(ROADS):
        return False
    if contexts := [context for one, *context in rows("unit in context") if one == unit]:
        here = around.before + match[0]
        return any(compiled(rf"(?:{before})\.?$").search(here) and around.precedes(after) for before, after in contexts)
    if unit == "s" and not gap:
        several = around.follows(r"\b(?:two|three|four|five|of|the|all|both|in|my) |[a-z]-|#")
        late = len(value) == 4 and value > "2100" and not around.follows(r"\b[Tt]he ")
        return around.follows(TAKES) or "." in value or (len(value) == 1 and not several) or late
    if unit in ("s", "t", "d", "ac", "pt", "st", "U"):
        teaspoons = unit == "t" and dotted and not around.precedes(" of")
        stones = unit == "st" and (not re.search("(?<!1)1$", value) or around.precedes(r" \d\d? ?lbs?\b"))
        closed = stones or (unit == "d" and around.follows("[x×] ?"))
        return closed or (bool(gap) and not teaspoons and not around.precedes(r"'|\.[A-Z]"))
    return bool(gap) or unit != "mo"


def units(text: str, singular: bool) -> str:
    """The words of a unit expression: "mg/kg", "m^2", "L/100 km"."""
    head, slash, last = text.rpartition("/")
    if text in UNITS or not slash:
        return _unit_words(text, singular)
    return f"{units(head, singular)} per {per(last)}"


def per(text: str) -> str:
    count = re.match(r"([\d.]+) ?", text)
    unit = text[count.end() :] if count else text
    base = unit.removesuffix("^2").removesuffix("^3")
    words = _unit_words(unit, not count or count[1] == "1") if base in UNITS else unit
    return f"{number(count[1])} {words}" if count else words


def _unit_words(unit: str, singular: bool) -> str:
    base, _, power = unit.partition("^")
    base = base if base in UNITS else base.rstrip(".")
    words = UNITS[base][not singular]
    if power and base in ("s", "sec", "min", "h"):
        return f"{words} {'squared' if power == '2' else 'cubed'}"
    return f"{'square' if power == '2' else 'cubic'} {words}" if power else words


def _unit_after_a_word(match: re.Match[str], around: Around) -> str | None:
    if len(match[1]) < 2 or match[1] == "in":
        return None
    many = around.follows(r"(?:\d\+|\d[kKmM]|thousand|[mbr]illion) ")
    one = (
        around.follows(r"\b[Aa]n? [\d.]+ \w+ ")
        or around.follows(r"\b(?:per|each|every|last|this|next) ")
        or (match[0][-1] == "." and around.follows(r"\b[Aa]n? "))
    )
    return UNITS[match[1]][many and not one] if many or one else None


_SCORER = rf"\b(?!(?:{one_of(STARTERS)})\b)[A-Z][a-z]+ (?:\d+', )*"


def _quoted(around: Around) -> bool:
    """Whether a mark of inches rather closes a quotation."""
    return around.follows(r'[\s(]"') or len(re.findall(r'(?<!\d)"', around.before)) % 2 == 1


def _inches(match: re.Match[str], around: Around) -> Said | None:
    if _quoted(around):
        return None
    singular = (
        re.match(r"1$|\d+[/⁄]", match[1])
        or _before_noun(around)
        or around.follows(r"\b[Aa]n? ")
        or around.precedes(r" (?:\d[kK]\b|(?!AGL|MSL)[A-Z]{2}|[A-Z][a-z])")
    )
    one, many = ("foot", "feet") if match[2] == "'" else ("inch", "inches")
    if one == "foot" and around.follows(_SCORER) and around.precedes(r"[,;).]| \(|$"):
        one, many = "minute", "minutes"
    return Said(number(match[1]), one if singular else many)


def _by(match: re.Match[str], around: Around) -> Said | None:
    unit = match["unit"]
    parts = re.split(r"[ \"]?[x×] ?", match["sizes"])
    product = "×" in match["sizes"] and (" " in match["sizes"] or not (parts[2:] or around.follows(r"\b[Aa] ")))
    if (not unit and product) or re.match(r"\d+x ", match["sizes"]):
        return None
    said = list(map(FORMS["code"], parts))
    if unit == "s":
        return Said(plural(" by ".join(said)))
    if unit == '"':
        return Said(" by ".join(said), "" if _quoted(around) else "inch" if _before_noun(around) else "inches")
    by = " times " if unit in ("g", "kg", "mg", "ml", "L", "GB", "TB", "MB") else " by "
    singular = match["gap"] == "-" or (match["gap"] == "" and _before_noun(around))
    return Said(by.join(said), units(unit, singular) if unit else "")


# --- Mathematics ------------------------------------------------------------------------------------------------------
_FUNCTIONS = table("function")
RELATIONS = SIGNS | table("relation")
_SAID = RELATIONS | GREEK | {"!": "factorial"}
_BOUNDS = table("bound")
_SMALL_WORDS = "to|of|in|is|at|on|or|if|by|as|an|am|be|do|go|he|it|me|my|no|so|up|us|we|vs"
_OPERAND = (
    r"(?:\d+(?:\.\d+)?e-?\d+(?!\w)|(?:\d+(?:,\d{3})+|\d*\.?\d+)(?![\d.]*\.\d|(?:st|nd|rd|th)\b)[A-Za-zΑ-ω]{0,3}|"
    r"(?:sin|cos|tan|log|ln|exp|mod|max|min)(?![a-z])\d*|"
    rf"(?!(?:{_SMALL_WORDS}|To|Of|In|Is|At|On|Or|If|By|As|It|No|So|We|US|UK|EU)\b)"
    r"(?:[A-Za-z]?[Α-ω][A-Za-z]?|[A-Za-z]{1,2})(?![A-Za-z'’])\d?|[∞π])(?:%|°(?! ?[CFK]\b))?"
)
_OPEN = r"(?:[-+±√(|∑∫]\s?){0,8}"
POWER = r"(?:\^(?:[-+]?(?:\d+|[A-Za-z]\b)|[({][^(){}]{1,12}[)}]))"
_CLOSE = rf"(?:(?:\)|\(\)|\|(?!\w)|!(?= ?[=+*/)]| - |-| [a-z])(?!=)|{POWER}){{0,8}})"
_NAMED = "log|sin|cos|tan|mod|ln"
_OPERATOR = (
    r"(?:\s?(?:==|!=|<=|>=|[=<>≤≥≠≈±+×*·÷/⁄→∈∩∪])\s?|\s[-–]\s|-|\|(?=\w)|(?=\()|, ?(?=-?[\w.]+\))|"
    rf" (?=(?:{_NAMED})\b)|(?:(?<=log)|(?<=sin)|(?<=cos)|(?<=tan)|(?<=mod)|(?<=ln)) (?=[\w(])|"
    r"(?<=\^\d)(?=[Α-ω(])|(?:(?<=sin\^\d)|(?<=cos\^\d)|(?<=tan\^\d)) ?(?=[a-zΑ-ω]))"
)
_MATHEMATICS = rf"{_OPEN}{_OPERAND}{_CLOSE}(?:{_OPERATOR}{_OPEN}{_OPERAND}{_CLOSE}){{0,60}}"
"""With as many operands and brackets as keep the time of any text linear."""
_STRONG = re.compile(
    r"[=≠≤≥<>×÷^√±≈∈∑∫∂]|\d\s?[+*·]\s?[\d(a-z]|[a-z)]\s?[+*·] ?[\d(a-z]|\b[a-z]\s?-\s?\d|\b[a-z] - [a-z]\b|"
    r"\b\d/[a-z]\b|\w\|\w|[A-Z] → [A-Z]|\d - \d|[)]-[(\da-z]|[Α-ω]\w?/|"
    rf"\b[a-z]/\d\b|\b[OfghP]\((?:(?:{_NAMED}) ?)?[\w.]\)|"
    rf"\b[b-hj-zA-HJ-Z\d]\)? (?:{_NAMED}) [b-hj-z\d(]|\b[a-z]\d [+-]|\d!"
)
_NO_FORMULA = re.compile(r"\bw/|^\(?M\d\d? ?[x×]|[A-Z][a-z]?\^\d?[+-](?: |$)")


def _mathematics(match: re.Match[str], around: Around) -> str | None:
    text = match["formula"]
    opened, closed = text.count("("), text.count(")")
    if (text[0] == "(" and opened > closed) or _NO_FORMULA.search(text) or around.precedes(r"–\d"):
        return None
    if not _STRONG.search(text) or around.follows(r"[\w$£€/#@.]") or around.precedes(r"\w|/\w|'\w|:\d"):
        return None
    if not re.search(r"[=≠≤≥<>×÷^√±≈+*·∈→]|\b[OfghP]\(", text):
        spaced = re.fullmatch(r"(\d+) - (\d+)", text)
        if spaced and int(spaced[1]) <= int(spaced[2]):
            return None
    if re.fullmatch(r"[A-Za-z] ?[/|] ?[A-Za-z]|.* <3|[-+±]\s?[\d.,]+|", text):
        return None
    wrapped = re.fullmatch(r"\([^()]*(?:\([^()]*\)[^()]*)*\)", text) is not None
    words = expression(text) + (f" {units(match['unit'], False)}" if match["unit"] else "")
    return f"({words})" if wrapped else words + ")" if closed > opened else words


def expression(text: str) -> str:
    """The words of a formula; brackets have no sound."""
    found: list[str] = []
    parts = re.findall(
        r"\^\s*(?:[({][^(){}]*[)}]|[-+]?(?:\d+|\w))|\d+(?:\.\d+)?e[-+]?\d+|\d+[/⁄]\d+|\d+(?:,\d{3})*(?:\.\d+)?|\.\d+|[A-Za-z]+|[Α-ω]|==|!=|<=|>=|\S",
        text,
    )
    for place, part in enumerate(parts):
        before = parts[place - 1] if place else ""
        after = parts[place + 1] if place + 1 < len(parts) else ""
        if part[0] == "^":
            found.append(power(part[1:].strip("(){} ")))
        elif part[0].isdecimal() or part[0] == ".":
            found.append(number(part))
        elif part.isalpha() and part.isascii():
            function = _FUNCTIONS.get(part, "")
            found.append(function or (part if len(part) == 1 else ".".join(part.upper()) + "."))
            if function and after.isdecimal() and parts[place + 2 : place + 3] == ["("]:
                found.append("base")
            elif after == "(" and (function or (len(part) == 1 and "".join(parts[place + 2 :])[:1].isalnum())):
                found.append("times" if parts[place + 2 : place + 3] == [part] and part not in "fgh" else "of")
        elif part == "(":
            if place > 1 and ((before.isdecimal() and parts[place - 2] in _FUNCTIONS) or parts[place - 2] in "χΧ"):
                found.append("of")
            elif before and (before[0].isdecimal() or before == ")"):
                found.append("times")
        elif part == "|" and not (before.isalnum() or before == ")"):
            found.append("the absolute value of")
        elif part == "|" and before.isalnum() and after.isalnum():
            found.append("given")
        else:
            found.append(_SAID.get(part.lower(), ""))
    return " ".join(filter(None, found))


def power(text: str) -> str:
    if text in ("2", "3"):
        return "squared" if text == "2" else "cubed"
    if text.isdecimal():
        return f"to the {ordinal(int(text))}"
    return f"to the {expression(text)}"


_MONEY_VALUE = rf"(?P<value>\d{{1,3}}(?:\.\d{{3}})+,\d{{2}}(?!\d)|{NUMBER}(?=/\d+ ?(?:{UNIT_WORD})\b)|{VALUE})"
_MANY = rf"(?:[\s-]?(?P<word>thousand|million|billion|trillion)\b|\s?(?P<short>{_IN_SHORT})|(?P<letter>[kKmMBbT])"
_DOT = r"(?:\.(?= (?:[a-z(\d=&+@]|[NSEW]{1,3}\b|(?:[MTWF]|Th|Sa|Su)[-–])|[,;:/*)]))?"
"""Of an abbreviation, which ends no sentence."""
_RATE = rf"(?:/(?P<per>(?:\d+ ?)?{UNIT_WORD}|[a-z]+)\b{_DOT})?"
_NO_NOUN = r"[,;).?!]| (?:and|in|from|for|on|to)\b|$"
_CUE_OF_HEAT = (
    r"(?i:\b(?:(?:pre)?heat(?:ed)?|bake|roast|cook|cool|boil|oven|temp\w*|below|above|reach(?:es|ed)?|hits?)\b"
    r"[^.!?]{0,30}[ (])"
)
_DEGREES = r"(\d+(?:\.\d+)?)"
FORMS["number"] = number
FORMS["code"] = lambda text: pairs(text) if len(text) == 4 and text.isdecimal() else number(text)
FORMS["plural"] = lambda text: plural(number(text))
FORMS["ordinal"] = lambda text: ordinal(int(text))
FORMS["per"] = per
FORMS["units"] = lambda text: units("wk" if text == "w" else text, False)
FORMS["heat"] = lambda text: UNITS[f"°{text}"][1]
FORMS["magnitude"] = lambda text: MAGNITUDES.get(text, text.removesuffix("s"))
FORMS["currency"] = lambda text: CURRENCIES[text][1]

# fmt: off
CLASSES = (
    semiotic("fraction", rf"1[/⁄]2 (?:({UNIT_WORD})\b{_DOT}|(?=[a-z]))", say="half {1:per}", after="every |each "),
    semiotic("money", rf"(?P<sign>{_SIGN})(?:(?P<symbol>{_CURRENCY})|\b(?P<code>{_CODE})) ?(?P<inner>-)?{_MONEY_VALUE}",
        rf"{_MANY}\b)?(?: (?P<country>{_CODE})\b)?{_RATE}(?P<pieces>s\b)?", say=_money, quantity=True),
    semiotic("money", rf"(?P<sign>{_SIGN}){_MONEY_VALUE}{_MANY}(?= ?[^\w\s]| ?(?:{_CODE})))? ?",
        rf"(?P<inner>)(?:(?P<symbol>[€£₹₽₩₺¥])|(?P<code>{_CODE})\b{_DOT})(?P<country>){_RATE}(?P<pieces>(?!))?",
        say=_money, quantity=True),
    semiotic("money", r"/([$£€¥])(?!\d)", say=lambda match, around: f"per {CURRENCIES[match[1]][0]}", after=r"\d"),
    semiotic("money", rf"(?P<value>{NUMBER}) ?(?:¢|cts?\b|c(?= (?:coin|piece|stamp|each|a)\b)){_RATE}", quantity=True,
        say=lambda match, around: Said(
            number(match["value"]), ("cent" if match["value"] == "1" or _adjective(around) else "cents")
            + (f" per {per(match['per'])}" if match["per"] else ""))),
    semiotic("measure", rf"1/(?!16s|32s|64s)(\d{{2,5}}) ?(?:s|secs?)\b{_DOT}", say="one {1:ordinal} of a second"),
    semiotic("measure", rf"(?P<sign>{_SIGN})(?P<value>{VALUE})(?P<gap>(?P<hyphen>-)| ?)(?P<unit>{UNIT})",
        rf"(?(hyphen)(?:\.(?= \w|[,)-]))?|{_DOT})(?!\w|'\w|\.[a-z]\b)",
        say=_measure, quantity=True, unless=r"\b[A-Z]+\d+[A-Z]+/"),
    semiotic("measure", rf"({_SIGN}{VALUE}) ?([%‰])", say="|{1:number}|{2:sign}", quantity=True),
    semiotic("measure", rf"({VALUE}) M(?= (?:solution|(?:(?:{one_of(ELEMENTS)})\d?){{2,}}\b))", say="{1:number} molar"),
    semiotic("measure", rf"({VALUE}) c(?:\.(?= [a-z]|[;,)]|$)|(?= (?!(?:{_NOT_A_NOUN})\b)[a-z]{{3,}}| =))",
        say="{1:number} {1:cup/cups}", quantity=True),
    semiotic("measure", rf"(\d)'(?: ?|-(?=\d+\"))({_FRACTION}|\d{{1,2}}(?:\.\d)?)(?!\d)(?:\"|''|(?!\w))",
        say="{1:number} foot {2:number}", quantity=True),
    semiotic("measure", rf"({VALUE})(\"|'')(?![^\WDHLW]|\w\w)", say=_inches, quantity=True),
    semiotic("measure", rf"(?!\d{{4}}')({VALUE})(')(?=[–.,;:)!?-]| [^A-Z]| [A-Z]{{2,3}}\b|$)", say=_inches,
        quantity=True, unless=r"(?<!\w)'[^']*"),
    semiotic("measure", rf"(?:\b([NSEW]) ?)?{_DEGREES}° ?(?:0?{_DEGREES}' ?)?(?:0?{_DEGREES}(?:\"|'') ?)?",
        r"(?(1)|(?:([NSEW])\b|(?<=['\"])))",
        say="[{1:compass} ]{2:number} {2:degree/degrees}[ {3:number} minutes][ {4:number} seconds][ {5:compass}]"),
    semiotic("measure", r"(?!0x)(?P<sizes>\d+(?:\.\d+)?(?:(?:\"(?=x)| )?[x×] ?\d+(?:\.\d+)?)+)",
        rf"(?:(?P<gap>[ -]?)(?P<unit>\"|(?!in \d){UNIT})(?!\w)(?:(?<=-in)\.(?= [a-z]))?)?(?![\d^])", say=_by),
    semiotic("measure", rf"(?:{one_of(UNITS)})\^[23](?!\d)", say="{0:per}", after=r"(?i:\b(?:per|square|cubic|a)) "),
    semiotic("measure", r"(?:[kcm]?m|ft|mi|yd)\^[23](?!\d|\s?[=+-])", say="{0:units}"),
    semiotic("measure", rf"{UNIT_WORD}/{UNIT_WORD}(?![\w^/])", say="{0:units}", unless=r"\d ?|[\w/]"),
    semiotic("measure", rf"[x×](?= ?\d+ ?(?:d\b|{SPANS}))", say="for", after="[A-Za-z.] ", unless=r"/[a-z]+\.? "),
    semiotic("mathematics", r"[x×](?= [$£€]?\d)", say="times", after=r"[a-z)] ", unless=r"\b(?i:the|an?|add|for) "),
    semiotic("money", rf"(\d{{1,2}}|\d+\.\d+)p\b{_RATE}", say="{1:number} {1:penny/pence}[ per {2:per}]"),
    semiotic("money", r"(\d\d?)s\. ?(\d\d?)d\b\.?", say="{1:number} {1:shilling/shillings} {2:number} {2:penny/pence}",
        quantity=True, ends=True),
    semiotic("measure", rf"({NUMBER})/({NUMBER}) ?([KMGT]i?B)\b", say="{1:number} of {2:number} {3:units}"),
    semiotic("measure", rf"/({UNIT_WORD}|day|week|month|year|person|night|hour|minute|second|user|page)\b",
        _DOT, say="per {1:per}", after=r"[A-Za-z]{2,}|[)%]|:\d\d|\d{3}"),
    semiotic("measure", r"(?<=\d)/([a-z]{3,})(?![\w/]|\.\w)", say="per {1}"),
    semiotic("measure", rf"({one_of(UNITS)})\b(?:\.(?= [a-z(]|[,)]))?", say=_unit_after_a_word),
    semiotic("measure", rf"(\d+)[- ]?y[/.]?o\b(?:{_DOT}|\.(?= [MF]\b))", say="{1:cardinal} year old"),
    semiotic("measure", r"(\d{2,3}) ?([FC])\b(?:(?=/\d{2,3} ?[FC]\b)|(?<=[FC]/\d{2}[FC])|(?<=[FC]/\d{3}[FC]))",
        say="{1:number} {2:heat}", quantity=True),
    semiotic("measure", r"(\d{2,3}(?:\.\d)?) ?([FC])\b", say="{1:number} {2:heat}", quantity=True, after=_CUE_OF_HEAT),
    semiotic("fraction", r"(?:(\d+)[ -])?(\d{1,6})[/⁄](\d{1,6})(st|nd|rds?|ths?|s)?(?![\d/])", say=_slashed,
        quantity=True),
    semiotic("identifier", r"(?!\d{3}0s)(\d{4})s\b", say=lambda match, around: plural(pairs(match[1]))),
    semiotic("measure", rf"({VALUE}) ?T\.(?= [a-z])", say="{1:number} {1:tablespoon/tablespoons}", quantity=True),
    semiotic("measure", rf"({VALUE}) ?t\.(?= (?!of\b)[a-z])", say="{1:number} {1:teaspoon/teaspoons}", quantity=True),
    semiotic("cardinal", r"(\d\d)ers\b", say=lambda match, around: f"{number(match[1]).removesuffix('e')}ers"),
    semiotic("measure", r"(\d+)' ?[x×] ?(\d+)'(?!\w)", quantity=True, say=lambda match, around: Said(
        f"{number(match[1])} by {number(match[2])}", "foot" if _before_noun(around) else "feet")),
    semiotic("ordinal", r"(\d+\.\d*)?(\d{1,3}(?:,\d{3})+|\d+)(?i:st|nd|rd|th)\b", quantity=True,
        say=lambda match, around: (decimal(match[1] + "0").removesuffix("zero") if match[1] else "")
        + ordinal(int(match[2].replace(",", "")))),
    semiotic("cardinal", rf"({_SIGN})({_COMMA}|{NUMBER}){_MAGNITUDE}(?![\d])", say=plain_number, quantity=True),
)
PLAIN = (
    semiotic("cardinal", rf"({_SIGN})({_SCIENTIFIC}|{NUMBER})()()()(?![\d])", say=plain_number, quantity=True),
    semiotic("mathematics", r"([∑∫∏]) ?_?[{(]?([^\s(){}^]+)[)}]?\^[{(]?([-+]?\w+|∞)[)}]?", say=lambda match, around: (
        f"{SIGNS[match[1]].removesuffix(' of')} from {expression(match[2])} to {expression(match[3])} of")),
    semiotic("mathematics", rf"(?P<formula>{_MATHEMATICS})",
        rf"(?:(?:(?<=\d)|(?<=\^[a-z])) (?P<unit>(?!(?:in|x|t|h|a)\b){UNIT})(?![\w(=]))?",
        say=_mathematics),
    semiotic("mathematics", r"[Α-ω]+|µ(?![A-Za-z])",
        say=lambda match, around: " ".join(GREEK[one] for one in match[0].lower())),
    semiotic("mathematics", r"[<>]=(?= ?\d)", say=_BOUNDS, after=r"\b(?:to|of|with|use|at|from|for|is|are|be) "),
    semiotic("mathematics", r"!=|<=|>=|==", say=RELATIONS),
    semiotic("mathematics", r"((?<!\w)~|[<>]=?|[≤≥])(?= ?[-+]?[\d$£€.])", say=_BOUNDS),
    semiotic("mathematics", r"[<>](?= )", say=RELATIONS, after=r"\w "),
    semiotic("mathematics", POWER, say=lambda match, around: power(match[0][1:].strip("(){}")), after=r"[\w)]"),
)
# fmt: on
