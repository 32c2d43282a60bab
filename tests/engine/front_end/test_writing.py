"""Text in plain words, with capitals and punctuation."""

from __future__ import annotations

import re
import string
import unicodedata

import numpy as np
import pytest

from paretone.front_end.numbers import cardinal, decimal, ordinal, year
from paretone.front_end.writing import write_out

PLAIN = re.compile(r"[^\W\d_]*(?:[^\W\d_]|[ .,;:?!'\"–—…“”()\[\]{}/&@#+-])*")
"""Letters and the marks that stay."""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It costs $3.50, not £2.", "It costs three dollars and fifty cents, not two pounds."),
        ("See you at 6:45 p.m. on 3 March.", "See you at six forty-five P.M. on the third of March."),
        ("On March 21, 2024, at 9:05", "On March twenty-first, twenty twenty four, at nine oh five"),
        (
            "3,500 of 3500, 4200 and 1900",
            "three thousand five hundred of thirty five hundred, forty two hundred and nineteen hundred",
        ),
        ("2 1/2 cups and 3/4", "two and a half cups and three quarters"),
        ("Due 7/4, open 24/7.", "Due July fourth, open twenty four seven."),
        ("Dr. Li and Mrs. Day, 48 Main St.", "Doctor Li and Mrs Day, forty eight Main Street."),
        ("Use herbs, e.g. thyme, etc.", "Use herbs, E.G. thyme, etc."),
        ("Visit www.a-b.org or me@x.com.", "Visit WWW dot a dash b dot org or me at x dot com."),
        ("Henry V and Louis XIV, Part V.", "Henry the fifth and Louis the fourteenth, Part five."),
        ("I am 6'2\" or 6 ft 2 in tall", "I am six foot two or six feet two inches tall"),
        ("AT&T, Q&A", "AT and T, Q and A"),
        ("No. 5, nos. 3, pp. 4-6", "Number five, nos. three, pages four to six"),
        ("500 USD, EUR 20, 5¢", "five hundred dollars, twenty euros, five cents"),
        ("“Hi” — she’s (very) tired…", "“Hi” — she's (very) tired…"),
        ("#fun, #3", "hashtag fun, number three"),
        (
            "BS.1534-3, 4..12, 0.1..0.5",
            "BS fifteen thirty four three, four to twelve, zero point one to zero point five",
        ),
        ("F5-TTS, a 3-year-old, --half, .yaml", "F five TTS, a three year old, half, dot yaml"),
        ("Sun et al., 2024", "Sun et al, twenty twenty four"),
        ("naïve café", "naïve café"),
        ("Mr. and Mrs. Lee vs. Prof. Ng", "Mister and Mrs Lee versus Professor Ng"),
        ("Dr. Jones lives on Main St. in St. Paul.", "Doctor Jones lives on Main Street in Saint Paul."),
        ("Lake Dr. It is nice.", "Lake Drive. It is nice."),
        ("Acme Inc. makes it.", "Acme Incorporated makes it."),
        ("He left the U.S. They met.", "He left the U.S. They met."),
        ("file_name.py", "file name dot py"),
        ("The δ and the Ω", "The delta and the omega"),
        ("5 ≤ 6 ± 1", "five at most six plus or minus one"),
        ("C++ and/or C#", "C plus plus and or C sharp"),
        ("a -5°C night", "a minus five degrees celsius night"),
    ],
)
def test_what_people_type_is_written_out(text: str, words: str) -> None:
    assert write_out(text).text == words


def test_what_has_no_sound_is_reported():
    assert write_out("So 🙂 what 漢?").dropped == ("🙂", "漢")


def test_any_mixture_of_characters_ends_in_plain_words() -> None:
    random = np.random.default_rng(3)
    pool = string.printable + "éßøδΩ½²€£–—…“”’°×→ﬁⅣ１😀你д\u0301\u200d"
    for _ in range(400):
        text = "".join(random.choice(list(pool), size=60))
        assert PLAIN.fullmatch(write_out(text).text), ascii(text)


def test_every_assigned_character_of_the_basic_plane_is_spoken_or_dropped() -> None:
    text = "".join(chr(code) for code in range(0xD800) if unicodedata.category(chr(code)) != "Cn")
    for start in range(0, len(text), 200):
        assert PLAIN.fullmatch(write_out(text[start : start + 200]).text), start


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "zero"),
        (13, "thirteen"),
        (40, "forty"),
        (99, "ninety nine"),
        (100, "one hundred"),
        (2045, "two thousand forty five"),
        (1_000_001, "one million one"),
        (900_000_000_000_090, "nine hundred trillion ninety"),
        (12_000_000_345, "twelve billion three hundred forty five"),
        (-7, "minus seven"),
        (10**15, "one zero zero, zero zero zero, zero zero zero, zero zero zero, zero zero zero, zero"),
    ],
)  # fmt: skip
def test_cardinals(number: int, words: str) -> None:
    assert cardinal(number) == words


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (1, "first"),
        (12, "twelfth"),
        (20, "twentieth"),
        (21, "twenty first"),
        (100, "one hundredth"),
        (1003, "one thousand third"),
    ],
)
def test_ordinals(number: int, words: str) -> None:
    assert ordinal(number) == words


@pytest.mark.parametrize(
    ("number", "words"),
    [(1066, "ten sixty six"), (1900, "nineteen hundred"), (1905, "nineteen oh five"), (2000, "two thousand"),
     (2007, "two thousand seven"), (2026, "twenty twenty six"), (800, "eight hundred")],
)  # fmt: skip
def test_years(number: int, words: str) -> None:
    assert year(number) == words


def test_decimals_keep_every_digit_after_the_point_and_leading_zeros() -> None:
    assert decimal("3.140") == "three point one four zero"
    assert decimal("1,234.5") == "one thousand two hundred thirty four point five"
    assert decimal("007") == "zero zero seven"


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        # money
        ("$3.50", "three dollars and fifty cents"),
        ("$1", "one dollar"),
        ("$0.99", "ninety nine cents"),
        ("£1.01", "one pound and one penny"),
        ("€1,250", "one thousand two hundred fifty euros"),
        ("-$5", "minus five dollars"),
        ("$1.5 million", "one point five million dollars"),
        ("£20K", "twenty thousand pounds"),
        ("$5-$10", "five dollars to ten dollars"),
        # dates
        ("3/4/2025", "march fourth, twenty twenty five"),
        ("25/12/2024", "december twenty-fifth, twenty twenty four"),
        ("2024-12-31", "december thirty-first, twenty twenty four"),
        ("Jan. 5, 2024", "January fifth, twenty twenty four"),
        ("4 March 1999", "the fourth of March nineteen ninety nine"),
        ("July 4", "July fourth"),
        ("the 1990s", "the nineteen nineties"),
        ("the '80s", "the eighties"),
        ("in 1905", "in nineteen oh five"),
        ("1914-18", "nineteen fourteen to eighteen"),
        # times
        ("14:05", "fourteen oh five"),
        ("3:30 p.m. today", "three thirty P.M. today"),
        ("3pm today", "three P.M. today"),
        ("12:00", "twelve o'clock"),
        ("23:59:01", "twenty-three fifty-nine and one second"),
        # shares, fractions, ranges, signs
        ("20%", "twenty percent"),
        ("5–10 %", "five to ten percent"),
        ("1/2", "one half"),
        ("3/4", "three quarters"),
        ("2 1/3", "two and one third"),
        ("1½", "one and a half"),
        ("7/16", "seven sixteenths"),
        ("24/7", "twenty four seven"),
        ("3-7", "three to seven"),
        ("-2.5", "minus two point five"),
        ("5 - 3", "five minus three"),
        ("16:9", "sixteen to nine"),
        # units
        ("1 km", "one kilometer"),
        ("100 km/h", "one hundred kilometers per hour"),
        ("3 m²", "three square meters"),
        ("24 kHz", "twenty four kilohertz"),
        ("16GB", "sixteen gigabytes"),
        ("-5°C", "minus five degrees celsius"),
        ("45°", "forty five degrees"),
        ("2x", "two times"),
        # strings of digits
        ("555-1234", "five five five, one two three four"),
        ("(212) 555-0199", "two one two, five five five, zero one nine nine"),
        ("v2.0.1", "version two point zero point one"),
        ("1st, 2nd, 3rd, 21st", "first, second, third, twenty first"),
        ("#1", "number one"),
        ("World War II", "World War two"),
        ("Henry VIII", "Henry the eighth"),
        ("1080p", "ten eighty p"),
        ("50+50=100", "fifty plus fifty equals one hundred"),
        ("x^2", "x squared"),
        ("5 > 3", "five is greater than three"),
        ("１２", "twelve"),
    ],
)  # fmt: skip
def test_numbers_in_text(text: str, spoken: str) -> None:
    assert write_out(text).text == spoken


@pytest.mark.parametrize(
    "text", ["99/99/9999", "1/0", "0/0", "25:99", "3/4/5/6", "1.2.3.4.5", "$", "$.", "1,2,3", ".5.", "-", "--5", "٣"]
)
def test_odd_numbers_leave_no_digit_behind(text: str) -> None:
    spoken = write_out(text).text
    assert not any(character.isdigit() for character in spoken)
