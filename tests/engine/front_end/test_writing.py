"""Text in plain words, with capitals and punctuation; what cannot be spoken."""

import re
import string
import subprocess
import sys
import unicodedata

import numpy as np
import pytest

from paretone.errors import TextError
from paretone.front_end import MOST_CHARACTERS
from paretone.front_end.numbers import cardinal, decimal, ordinal, year
from paretone.front_end.phonemiser import default_phonemiser
from paretone.front_end.speakable import CHINESE, ENGLISH, language_of, markup_notes
from paretone.front_end.writing import spell_numbers, write_out
from paretone.models import load_model
from paretone.models.catalogue import entry, voice
from paretone.paths import resource
from paretone.setting.setting import Setting
from paretone.speaking import synthesise
from tests.engine.front_end.references import heard, written


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('<speak>Hello <break time="1s"/> there.</speak>', '<speak>, <break time="1s"/>, </speak>'),
        ("<p>One.</p><p>Two.</p><b>x</b><i>y</i>", "<p>, </p>, <b> and 3 more"),
        (f'<say-as interpret-as="{"x" * 999}">1</say-as>', '<say-as interpret-as="xxxxxxx…, </say-as>'),
        ("<prosody\nrate = slow>Hello.</prosody>", "</prosody>"),
    ],
)
def test_markup_is_named(text: str, named: str) -> None:
    (note,) = markup_notes(text)
    assert named in note and "spoken as words" in note


@pytest.mark.parametrize(
    "text",
    ["One is < two, and three > two.", "If a <b and c> d.", "I <3 you; Q&A; R&D & more.", "See <https://example.org>."],
)
def test_signs_of_less_and_more_are_no_markup(text: str) -> None:
    assert markup_notes(text) == ()


def test_a_take_carries_the_note() -> None:
    setting = Setting("f5-mini", entry("f5-mini").options_with(steps=1), seed=1)
    made = synthesise(load_model("f5-mini", device="cpu"), "Hello <b>there</b>.", voice("", "f5-mini"), setting)
    assert any("The text has markup (<b>, </b>)" in note for note in made.notes)


ABLE = "it speaks only this"


@pytest.mark.parametrize(
    ("sentence", "language"),
    [
        ("Hello there, how are you today?", ENGLISH),
        ("El Niño and die Mannschaft won in the end.", ENGLISH),
        ("Ursula von der Leyen spoke yesterday.", ENGLISH),
        ("Come, children, come inside now.", ENGLISH),
        ("", ENGLISH),
        ("今天天气很好。", CHINESE),
        ("我们用 MegaTTS 3 的 diffusion transformer 来做语音合成。", CHINESE),
        ("The angle α is small.", ENGLISH),
    ],
)
def test_english_and_chinese_are_told_apart(sentence: str, language: str) -> None:
    assert language_of(sentence, ABLE) == language


@pytest.mark.parametrize("file", ["demo.txt", "harvard.txt", "unseen.txt"])
def test_bundled_sentences_are_english(file: str) -> None:
    for sentence in resource("sentences", file).read_text(encoding="utf-8").splitlines():
        assert language_of(sentence, ABLE) == ENGLISH


@pytest.mark.parametrize(
    ("sentence", "named"),
    [
        ("Der schnelle braune Fuchs springt über den faulen Hund und läuft dann in den Wald.", "looks like German"),
        ("Le renard brun saute par-dessus le chien et il court dans la forêt.", "looks like French"),
        ("El zorro salta sobre el perro y corre hacia el bosque.", "looks like Spanish"),
        ("Быстрая лиса прыгает.", "Cyrillic script"),
        ("今日はとてもいい天気ですね。", "Hiragana script"),
    ],
)
def test_other_languages_are_refused_with_what_is_spoken(sentence: str, named: str) -> None:
    with pytest.raises(TextError, match=f"{named}, but {ABLE}; type another text"):
        language_of(sentence, ABLE)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "no text to speak"),
        (" \n\t", "no text to speak"),
        ("😀😀", r"😀 \(grinning face\)"),
        ("你好世界", "你 好 世 界"),
        ("...?!", "only punctuation"),
        ("x" * (MOST_CHARACTERS + 1), "50,001 characters, and 50,000 is the limit"),
    ],
)
def test_text_that_cannot_be_spoken(text: str, sentence: str) -> None:
    with pytest.raises(TextError, match=sentence):
        default_phonemiser()(text)


def test_the_front_end_needs_no_torch() -> None:
    modules = "paretone.front_end.speakable, paretone.measure.loudness, paretone.measure.fidelity"
    program = f"import sys, {modules}; sys.exit('torch' in sys.modules or 'scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False, cwd=resource().parent).returncode == 0


PLAIN = re.compile(r"[^\W\d_]*(?:[^\W\d_]|[ .,;:?!'\"–—…“”()\[\]{}/&@#+-])*")
"""Letters and the marks that stay."""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("See you at 6:45 p.m. on 3 March.", "See you at six forty-five P.M. on the third of March."),
        ("On March 21, 2024, at 9:05", "On March twenty-first, twenty twenty four, at nine oh five"),
        (
            "3,500 of 3500, 4200 and 1900",
            "three thousand five hundred of thirty five hundred, forty two hundred and nineteen hundred",
        ),
        ("2 1/2 cups and 3/4", "two and a half cups and three quarters"),
        ("Due 7/4, open 24/7.", "Due July fourth, open twenty four seven."),
        ("Dr. Li and Mrs. Day, 48 Main St.", "Doctor Li and Mrs Day, forty eight Main Street."),
        ("Visit www.a-b.org or me@x.com.", "Visit WWW dot a dash b dot org or me at x dot com."),
        ("Henry V and Louis XIV, Part V.", "Henry the fifth and Louis the fourteenth, Part five."),
        ("No. 5, nos. 3, pp. 4-6", "Number five, numbers three, pages four to six"),
        ("“Hi” — she’s (very) tired…", "“Hi” — she's (very) tired…"),
        (
            "BS.1534-3, 4..12, 0.1..0.5",
            "B.S. fifteen thirty four three, four to twelve, zero point one to zero point five",
        ),
        ("Sun et al., 2024", "Sun et al, twenty twenty four"),
        ("Mr. and Mrs. Lee vs. Prof. Ng", "Mister and Mrs Lee versus Professor Ng"),
        ("Dr. Jones lives on Main St. in St. Paul.", "Doctor Jones lives on Main Street in Saint Paul."),
        ("Lake Dr. It is nice.", "Lake Drive. It is nice."),
        ("He left the U.S. They met.", "He left the U.S. They met."),
        ("C++ and/or C#", "C plus plus and or C sharp"),
        ("a -5°C night", "a minus five degrees celsius night"),
    ],
)
def test_what_people_type_is_written_out(text: str, words: str) -> None:
    assert write_out(text).text == words


def test_every_written_form_is_read_rightly() -> None:
    read = [(text, heard([one.text for one in write_out(text).sentences]), words) for _, text, words in written()]
    assert len(read) >= 2300
    assert [(text, found) for text, found, words in read if found != words] == []


def test_british_dates_have_the_day_first() -> None:
    said = write_out("on 3/4/2025 and by 05.06.").text
    assert said == "on March fourth, twenty twenty five and by zero five point zero six."
    said = write_out("On 3/4/2025, due 13/12.", british=True).text
    assert said == "On April third, twenty twenty five, due December thirteenth."


def test_what_has_no_sound_is_reported():
    assert write_out("So 🙂 what 漢?").dropped == ("🙂", "漢")


def test_any_mixture_of_characters_ends_in_plain_words() -> None:
    random = np.random.default_rng(3)
    pool = string.printable + "éßøδΩ½²€£–—…“”’°×→ﬁⅣ１😀你д\u0301\u200d\ud800\udc80\u202e\x1b"
    for _ in range(400):
        text = "".join(random.choice(list(pool), size=60))
        assert PLAIN.fullmatch(write_out(text).text), ascii(text)


@pytest.mark.parametrize("unit", ["f(", "√(", "1/", "a/b/", "<b>", "**a", "½ ", ".[1]", "| a ", "*a ", "\n" + " " * 99])
def test_long_texts_of_one_kind_end_in_plain_words(unit: str) -> None:
    assert PLAIN.fullmatch(write_out((unit * 9000)[:9000]).text), "minutes, were the time quadratic"


def test_halves_of_pairs_of_utf_16_are_reported() -> None:
    written = write_out("So \ud83d\ude42 what \ud83d 5 km?")
    assert (written.text, written.dropped) == ("So what five kilometers?", ("🙂", "\ufffd"))


def test_any_two_halves_of_sentences_end_in_plain_words() -> None:
    random = np.random.default_rng(4)
    texts = [text for _, text, _ in written()]
    for _ in range(800):
        one, other = random.choice(texts, 2)
        text = one[: random.integers(len(one) + 1)] + other[random.integers(len(other) + 1) :]
        assert PLAIN.fullmatch(write_out(text).text), text
        spell_numbers(text)


def test_every_assigned_character_of_the_basic_plane_is_spoken_or_dropped() -> None:
    text = "".join(chr(code) for code in range(0xD800) if unicodedata.category(chr(code)) != "Cn")
    for start in range(0, len(text), 200):
        assert PLAIN.fullmatch(write_out(text[start : start + 200]).text), start


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "zero"),
        (13, "thirteen"),
        (99, "ninety nine"),
        (1_000_001, "one million one"),
        (900_000_000_000_090, "nine hundred trillion ninety"),
        (10**15, "one zero zero, zero zero zero, zero zero zero, zero zero zero, zero zero zero, zero"),
    ],
)  # fmt: skip
def test_cardinals(number: int, words: str) -> None:
    assert cardinal(number) == words


@pytest.mark.parametrize(
    ("number", "words"), [(1, "first"), (21, "twenty first"), (100, "one hundredth"), (1003, "one thousand third")]
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
        ("$1 1/2 million", "one and a half million dollars"),
        ("$5-$10", "five dollars to ten dollars"),
        # dates
        ("3/4/2025", "March fourth, twenty twenty five"),
        ("4 March 1999", "the fourth of March nineteen ninety nine"),
        # times
        ("23:59:01", "twenty-three fifty-nine and one second"),
        # strings of digits
        ("(212) 555-0199", "two one two, five five five, zero one nine nine"),
    ],
)  # fmt: skip
def test_numbers_in_text(text: str, spoken: str) -> None:
    assert write_out(text).text == spoken


@pytest.mark.parametrize(
    "text", ["99/99/9999", "1/0", "0/0", "25:99", "3/4/5/6", "1.2.3.4.5", "$", "$.", "1,2,3", ".5.", "-", "--5", "٣"]
)
def test_odd_numbers_leave_no_digit_behind(text: str) -> None:
    assert not any(character.isdigit() for character in write_out(text).text)
