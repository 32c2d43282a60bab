"""Numbers as English words: cardinals, ordinals, years, decimals, and digits one by one or in pairs. American usage: no
"and" inside cardinals. Where a number stands decides how it is read: :mod:`paretone.front_end.semiotic`."""

from __future__ import annotations

import re

ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
TENS = "_ _ twenty thirty forty fifty sixty seventy eighty ninety".split()
SCALES = ("", "thousand", "million", "billion", "trillion")
_IRREGULAR = {"one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth"}
_IRREGULAR["twelve"] = "twelfth"
FRACTIONS = {2: ("half", "halves"), 4: ("quarter", "quarters")}
LONGEST_CARDINAL = 15
"""Digits; longer runs are read digit by digit."""
_ROMAN = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}


def cardinal(number: int) -> str:
    """2045 is "two thousand forty five". From 10¹⁵ digit by digit."""
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
    regular = last[:-1] + "ieth" if last.endswith("y") else last + "th"
    return " ".join((*head, _IRREGULAR.get(last, regular)))


def year(number: int) -> str:
    """1905 is "nineteen oh five", 2007 "two thousand seven", 2026 "twenty twenty six"."""
    century, rest = divmod(number, 100)
    if not 1010 <= number <= 2199 or (century % 10 == 0 and rest < 10):
        return cardinal(number)
    if rest == 0:
        return f"{cardinal(century)} hundred"
    return f"{cardinal(century)} {short(f'{rest:02}')}"


def short(text: str) -> str:
    """One or two digits; "05" is "oh five"."""
    return f"oh {ONES[int(text)]}" if len(text) == 2 and text[0] == "0" else cardinal(int(text))


def digits(text: str) -> str:
    """Digit by digit, with a comma after every third in runs of more than seven."""
    names = [ONES[int(digit)] for digit in text]
    if len(names) <= 7:
        return " ".join(names)
    return ", ".join(" ".join(names[start : start + 3]) for start in range(0, len(names), 3))


def pairs(text: str) -> str:
    """Numbers that name something, as they are called: 221 "two twenty one", 1534 "fifteen thirty four"."""
    if len(text) > 5 or text[0] == "0":
        return digits(text)
    if len(text) <= 2 or text.endswith("000"):
        return cardinal(int(text))
    head, last = text[:-2], text[-2:]
    if last == "00":
        rest = f"{cardinal(int(head[-1]))} " if len(head) > 2 else ""
        return f"{cardinal(int(head[:2]))} {rest}hundred"
    return f"{pairs(head)} {short(last)}"


def decimal(text: str) -> str:
    """ "1,234.50" as words; a leading zero before other digits ("007") means digit by digit."""
    whole, _, fraction = text.replace(",", "").partition(".")
    words = digits(whole) if len(whole) > 1 and whole[0] == "0" else cardinal(int(whole or "0"))
    return f"{words} point {digits(fraction)}" if fraction else words


def fraction(numerator: int, denominator: int) -> str:
    """3/4 is "three quarters"; improper ones and unusual denominators are "over"."""
    if denominator < 2 or denominator > 100 or not 0 < numerator < denominator:
        return f"{cardinal(numerator)} over {cardinal(denominator)}"
    one, many = FRACTIONS.get(denominator, (ordinal(denominator), ordinal(denominator) + "s"))
    return f"{cardinal(numerator)} {one if numerator == 1 else many}"


def plural(words: str) -> str:
    """ "nineteen eighties", "fifty twos", "sixes"."""
    return f"{words[:-1]}ies" if words.endswith("y") else f"{words}es" if words.endswith("x") else f"{words}s"


def roman(text: str) -> int | None:
    """Value of a Roman numeral in capitals; ``None`` if it is not written as one."""
    if not text or not re.fullmatch("M{0,3}(CM|CD|D?C{0,3})(XC|XL|L?X{0,3})(IX|IV|V?I{0,3})", text):
        return None
    values = [_ROMAN[one] for one in text]
    return sum(-one if one < after else one for one, after in zip(values, [*values[1:], 0], strict=True))
