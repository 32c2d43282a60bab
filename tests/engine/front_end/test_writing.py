"""Text in plain words, with capitals and punctuation."""

from __future__ import annotations

import re
import string
import unicodedata

import numpy as np
import pytest

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


def test_joiners_and_variation_selectors_are_not_reported() -> None:
    assert write_out("hi ❤\ufe0f").dropped == ("❤",)


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
