"""Spell numbers in English text as words: "$3.50 at 14:05 on 3/4/2025" as it is read aloud.

American usage: month before day in numeric dates, no "and" inside cardinals. Results are lower-case words; letters to
be spelled (the P and M of a time) are single capitals, as in :mod:`paretone.front_end.writing`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
TENS = "_ _ twenty thirty forty fifty sixty seventy eighty ninety".split()
SCALES = ("", "thousand", "million", "billion", "trillion")
IRREGULAR_ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
MONTHS = ("january february march april may june july august september october november december").split()

CURRENCIES = {
    "$": ("dollar", "dollars", "cent", "cents"),
    "£": ("pound", "pounds", "penny", "pence"),
    "€": ("euro", "euros", "cent", "cents"),
    "¥": ("yen", "yen", "sen", "sen"),
    "₹": ("rupee", "rupees", "paisa", "paise"),
}
MAGNITUDES = {
    "k": "thousand",
    "K": "thousand",
    "m": "million",
    "M": "million",
    "bn": "billion",
    "B": "billion",
    "T": "trillion",
    "tn": "trillion",
}

UNITS = {
    "km/h": ("kilometer per hour", "kilometers per hour"),
    "m/s": ("meter per second", "meters per second"),
    "km^2": ("square kilometer", "square kilometers"),
    "m^2": ("square meter", "square meters"),
    "m^3": ("cubic meter", "cubic meters"),
    "km": ("kilometer", "kilometers"),
    "cm": ("centimeter", "centimeters"),
    "mm": ("millimeter", "millimeters"),
    "m": ("meter", "meters"),
    "ft": ("foot", "feet"),
    "mi": ("mile", "miles"),
    "mph": ("mile per hour", "miles per hour"),
    "kg": ("kilogram", "kilograms"),
    "mg": ("milligram", "milligrams"),
    "g": ("gram", "grams"),
    "lb": ("pound", "pounds"),
    "lbs": ("pound", "pounds"),
    "oz": ("ounce", "ounces"),
    "ml": ("milliliter", "milliliters"),
    "mL": ("milliliter", "milliliters"),
    "L": ("liter", "liters"),
    "GHz": ("gigahertz", "gigahertz"),
    "MHz": ("megahertz", "megahertz"),
    "kHz": ("kilohertz", "kilohertz"),
    "Hz": ("hertz", "hertz"),
    "kB": ("kilobyte", "kilobytes"),
    "KB": ("kilobyte", "kilobytes"),
    "MB": ("megabyte", "megabytes"),
    "GB": ("gigabyte", "gigabytes"),
    "TB": ("terabyte", "terabytes"),
    "kbps": ("kilobit per second", "kilobits per second"),
    "Mbps": ("megabit per second", "megabits per second"),
    "fps": ("frame per second", "frames per second"),
    "dB": ("decibel", "decibels"),
    "kW": ("kilowatt", "kilowatts"),
    "kWh": ("kilowatt hour", "kilowatt hours"),
    "W": ("watt", "watts"),
    "V": ("volt", "volts"),
    "px": ("pixel", "pixels"),
    "ns": ("nanosecond", "nanoseconds"),
    "ms": ("millisecond", "milliseconds"),
    "s": ("second", "seconds"),
    "sec": ("second", "seconds"),
    "min": ("minute", "minutes"),
    "hr": ("hour", "hours"),
    "hrs": ("hour", "hours"),
    "h": ("hour", "hours"),
    "x": ("time", "times"),
}

FRACTIONS = {2: ("half", "halves"), 4: ("quarter", "quarters")}
LONGEST_CARDINAL = 15
"""Digits; longer runs are read digit by digit."""

ROMAN = {
    numeral: value
    for value, numeral in enumerate(
        "II III IV V VI VII VIII IX X XI XII XIII XIV XV XVI XVII XVIII XIX XX XXI".split(), 2
    )
    if len(numeral) > 1
}
REGNAL_NAMES = frozenset(
    "Alexander Benedict Catherine Charles Edward Elizabeth Francis Frederick George Gregory Henry James John Leo Louis "
    "Mary Napoleon Nicholas Paul Peter Philip Pius Ramesses Richard Robert William".split()
)
"""After these names a Roman numeral is an ordinal (Henry the eighth), otherwise a cardinal (Chapter four)."""


def cardinal(number: int) -> str:
    """2045 is "two thousand forty five". From 10¹⁵ digit by digit."""
    if number < 0:
        return f"minus {cardinal(-number)}"
    if number >= 10**LONGEST_CARDINAL:
        return digits(str(number))
    if number < 20:
        return ONES[number]
    if number < 100:
        return TENS[number // 10] + (f" {ONES[number % 10]}" if number % 10 else "")
    if number < 1000:
        return f"{ONES[number // 100]} hundred" + (f" {cardinal(number % 100)}" if number % 100 else "")
    scale = (len(str(number)) - 1) // 3
    head, rest = divmod(number, 1000**scale)
    return f"{cardinal(head)} {SCALES[scale]}" + (f" {cardinal(rest)}" if rest else "")


def ordinal(number: int) -> str:
    """21 is "twenty first"."""
    *head, last = cardinal(number).split()
    if last in IRREGULAR_ORDINALS:
        last = IRREGULAR_ORDINALS[last]
    elif last.endswith("y"):
        last = last[:-1] + "ieth"
    else:
        last += "th"
    return " ".join((*head, last))


def year(number: int) -> str:
    """1905 is "nineteen oh five", 2007 "two thousand seven", 2026 "twenty twenty six"."""
    century, rest = divmod(number, 100)
    if not 1010 <= number <= 2099 or (century % 10 == 0 and rest < 10):
        return cardinal(number)
    if rest == 0:
        return f"{cardinal(century)} hundred"
    return f"{cardinal(century)} " + (f"oh {ONES[rest]}" if rest < 10 else cardinal(rest))


def digits(text: str) -> str:
    """Digit by digit, with a comma after every third in runs of more than seven."""
    names = [ONES[int(digit)] for digit in text]
    if len(names) <= 7:
        return " ".join(names)
    return ", ".join(" ".join(names[start : start + 3]) for start in range(0, len(names), 3))


def decimal(text: str) -> str:
    """ "1,234.50" as words; a leading zero before other digits ("007") means digit by digit."""
    whole, _, fraction = text.replace(",", "").partition(".")
    if (len(whole) > 1 and whole[0] == "0") or len(whole) > LONGEST_CARDINAL:
        words = digits(whole)
    else:
        words = cardinal(int(whole or "0"))
    return f"{words} point {digits(fraction)}" if fraction else words


def spell_numbers(text: str, hyphens: bool = False) -> str:
    """Replace all numbers in ``text`` with words. ``text`` has plain digits, hyphens and slashes. With ``hyphens`` the
    minutes of times and the days of dates are compounds: "six forty-five", "May twenty-first"."""
    for pattern, spell in PATTERNS:
        compound = _COMPOUNDS.get(spell) if hyphens else None
        text = pattern.sub(_with_hyphens(spell, compound) if compound else spell, text)
    return text


def _with_hyphens(spell: Spell, compound: re.Pattern[str]) -> Spell:
    return lambda match: compound.sub(r"\1-\2", spell(match) if callable(spell) else spell)


def _plural(number: str, names: tuple[str, str]) -> str:
    return names[0] if number == "1" else names[1]


def _full_date(year_digits: str, month: int, day: int) -> str | None:
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    return f" {MONTHS[month - 1]} {ordinal(day)}, {_year_of(year_digits)} "


def _year_of(text: str) -> str:
    """Four digits as a year, two as a number or "oh five"."""
    if len(text) == 2:
        return f"oh {ONES[int(text)]}" if text[0] == "0" else cardinal(int(text))
    return year(int(text))


def _iso_date(match: re.Match[str]) -> str:
    return _full_date(match[1], int(match[2]), int(match[3])) or match[0]


def _numeric_date(match: re.Match[str]) -> str:
    first, second = int(match[1]), int(match[2])
    month, day = (second, first) if first > 12 else (first, second)
    return _full_date(match[3], month, day) or match[0]


def _month_day(match: re.Match[str]) -> str:
    return f"{match[1]} {ordinal(int(match[2]))}" + (f", {year(int(match[3]))}" if match[3] else "")


def _day_month(match: re.Match[str]) -> str:
    return f"{ordinal(int(match[1]))} of {match[2]}" + (f", {year(int(match[3]))}" if match[3] else "")


def _half_of_day(text: str | None) -> str:
    return f" {text[0].upper()} M" if text else ""


def _time(match: re.Match[str]) -> str:
    hour, minute, second, half = int(match[1]), int(match[2]), match[3], match[4]
    if hour > 24 or minute > 59:
        return f"{cardinal(hour)} to {cardinal(minute)}"
    if minute:
        words = f"{cardinal(hour)} {_year_of(match[2])}"
    elif half:
        words = cardinal(hour)
    else:
        words = f"{cardinal(hour)} o'clock" if 1 <= hour <= 12 else f"{cardinal(hour)} hundred"
    if second:
        words += f" and {cardinal(int(second))} {_plural(second.lstrip('0'), UNITS['s'])}"
    return words + _half_of_day(half)


def _hour(match: re.Match[str]) -> str:
    return cardinal(int(match[1])) + _half_of_day(match[2])


def _money(match: re.Match[str]) -> str:
    sign, symbol, whole, fraction, magnitude = match.groups()
    one, many, small_one, small_many = CURRENCIES[symbol]
    prefix = "minus " if sign else ""
    if magnitude:
        number = decimal(whole + (f".{fraction}" if fraction else ""))
        return f"{prefix}{number} {MAGNITUDES.get(magnitude, magnitude)} {many}"
    plain = whole.replace(",", "")
    if not fraction or len(fraction) != 2:
        number = decimal(whole + (f".{fraction}" if fraction else ""))
        return f"{prefix}{number} {one if plain == '1' and not fraction else many}"
    parts = []
    if int(plain) or not int(fraction):
        parts.append(f"{decimal(plain)} {_plural(plain, (one, many))}")
    if int(fraction):
        parts.append(f"{cardinal(int(fraction))} {_plural(str(int(fraction)), (small_one, small_many))}")
    return prefix + " and ".join(parts)


def _phone_number(match: re.Match[str]) -> str:
    groups = re.findall(r"\d+", match[0])
    return ("plus " if match[0].startswith("+") else "") + ", ".join(digits(group) for group in groups)


def _mixed_fraction(match: re.Match[str]) -> str:
    whole, numerator, denominator = match[1], int(match[2]), int(match[3])
    if denominator < 2 or numerator == 0 or denominator > 100 or numerator >= denominator:
        words = f"{cardinal(numerator)} over {cardinal(denominator)}"
        return f"{decimal(whole)} {words}" if whole else words
    singular, plural = FRACTIONS.get(denominator, (ordinal(denominator), ordinal(denominator) + "s"))
    words = f"{cardinal(numerator)} {singular if numerator == 1 else plural}"
    return f"{decimal(whole)} and {words}" if whole else words


def _short_year_range(match: re.Match[str]) -> str:
    return f"{year(int(match[1]))} to {_year_of(match[2])}"


def _degrees(match: re.Match[str]) -> str:
    scale = {"C": " celsius", "F": " fahrenheit", "K": " kelvin", None: ""}[match[2]]
    return f"{decimal(match[1])} {_plural(match[1], ('degree', 'degrees'))}{scale}"


def _with_unit(match: re.Match[str]) -> str:
    return f"{decimal(match[1])} {_plural(match[1], UNITS[match[2]])}"


def _decade(match: re.Match[str]) -> str:
    words = year(int(match[1])) if len(match[1]) == 4 else cardinal(int(match[1]))
    return words[:-1] + "ies" if words.endswith("y") else words + "s"


def _version(match: re.Match[str]) -> str:
    return " point ".join(decimal(part) for part in match[0].split("."))


def _roman(match: re.Match[str]) -> str:
    number = ROMAN[match[2]]
    return f"{match[1]} {'the ' + ordinal(number) if match[1] in REGNAL_NAMES else cardinal(number)}"


def _plain_number(match: re.Match[str]) -> str:
    text = match[0]
    if len(text) == 4 and text.isdigit() and "1010" <= text <= "2099":
        return year(int(text))
    return decimal(text)


_NUMBER = r"\d+(?:,\d{3})+(?:\.\d+)?|\d*\.\d+|\d+"
_MONTH = "|".join(month.capitalize() for month in MONTHS)
_HALF = r"(?: ?([AaPp])\.?[Mm]\b(?:\.(?!\s+[A-Z]|\s*$))?)"
"""Half of the day after a time; the full stop stays if it also ends the sentence."""
_UNIT = "|".join(re.escape(unit) for unit in sorted(UNITS, key=len, reverse=True))

Spell = Callable[[re.Match[str]], str] | str

_TENS = f"({'|'.join(TENS[2:])})"
_DAYS = re.compile(rf"\b{_TENS} ({'|'.join(ordinal(number) for number in range(1, 10))})\b")
_MINUTES = re.compile(rf"\b{_TENS} ({'|'.join(ONES[1:10])})\b")
_COMPOUNDS: dict[Spell, re.Pattern[str]] = {
    _time: _MINUTES,
    **dict.fromkeys((_iso_date, _numeric_date, _month_day, _day_month), _DAYS),
}

PATTERNS: tuple[tuple[re.Pattern[str], Spell], ...] = (
    (re.compile(rf"\b([A-Z][a-z]+) ({'|'.join(sorted(ROMAN, key=len, reverse=True))})\b"), _roman),
    (re.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b"), _iso_date),
    (re.compile(r"\b(\d{1,2})/(\d{1,2})/(\d{4}|\d{2})\b(?!/)"), _numeric_date),
    (re.compile(r"\b(\d{1,2})\.(\d{1,2})\.(\d{4})\b(?!\.\d)"), _numeric_date),
    (re.compile(rf"\b({_MONTH})\.? (\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (\d{{4}})\b)?(?!:)"), _month_day),
    (re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)? ({_MONTH})\b(?:,? (\d{{4}})\b)?"), _day_month),
    (re.compile(r"\b(\d{1,2}):(\d{2})(?::(\d{2}))?" + _HALF + r"?(?!\d)"), _time),
    (re.compile(r"\b(\d{1,2})" + _HALF), _hour),
    (re.compile(r"\b(\d+):(\d+)\b"), r"\1 to \2"),
    (re.compile(r"(?<=\d)[-–](?=[$£€¥₹]\d)"), " to "),
    (
        re.compile(
            r"((?<![\w%])-)?([$£€¥₹]) ?(\d+(?:,\d{3})*)(?:\.(\d+))?"
            r"(?: ?(thousand|million|billion|trillion|bn|tn|[kKmMBT])\b)?"
        ),
        _money,
    ),
    (re.compile(r"(?<!\w)\+?(?:\d{1,3}[ -])?(?:\(\d{3}\) ?|\d{3}[-. ])\d{3}[-. ]\d{4}\b"), _phone_number),
    (re.compile(r"\b\d{3}-\d{4}\b|\b\d+(?:-\d+){2,}\b|\+\d{7,}\b"), _phone_number),
    (re.compile(r"\b24/7\b"), "twenty four seven"),
    (re.compile(r"(?:\b(\d+) )?(?<![\d.,/])\b(\d{1,4})/(\d{1,4})\b(?![\d/])"), _mixed_fraction),
    (re.compile(r"\b\d+(?:\.\d+){2,}\b"), _version),
    (re.compile(r"(?:\b|')([1-9]\d{2}0|[2-9]0)'?s\b"), _decade),
    (re.compile(r"\b(1\d{3}|20\d{2})[-–](\d{2})\b(?![-–\d])"), _short_year_range),
    (re.compile(r"(?<=\d)(%?)(?:-| ?– ?)(?=\.?\d)"), r"\1 to "),
    (re.compile(r"(?<=\d) - (?=\.?\d)|(?<![\w.])-(?=\.?\d)"), " minus "),
    (re.compile(rf"({_NUMBER}) ?°(?: ?([CFK])\b)?"), _degrees),
    (re.compile(rf"({_NUMBER}) ?%"), lambda match: f"{decimal(match[1])} percent"),
    (re.compile(rf"(?<![A-Za-z])({_NUMBER})[ -]?({_UNIT})(?![\w^/]|'\w)"), _with_unit),
    (re.compile(r"\b(\d+(?:,\d{3})*)(?:st|nd|rd|th)\b"), lambda match: ordinal(int(match[1].replace(",", "")[:15]))),
    (re.compile(r"(?<=[A-Za-z])-?(?=\d)"), " "),
    (re.compile(rf"(?:{_NUMBER})(?=[A-Za-z])"), lambda match: f"{_plain_number(match)} "),
    (re.compile(_NUMBER), _plain_number),
)
"""Applied in order: specific patterns before plain numbers."""
