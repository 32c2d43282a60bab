from __future__ import annotations

import re
import string
import unicodedata

import numpy as np
import pytest

from paretone.front_end.lexicon import default_lexicon
from paretone.front_end.normalisation import normalise


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("Mr. and Mrs. Lee vs. Prof. Ng", "mister and missus lee versus professor ng"),
        ("Dr. Jones lives on Main St. in St. Paul.", "doctor jones lives on main street in saint paul."),
        ("Lake Dr. It is nice.", "lake drive. it is nice."),
        ("fruit, e.g. apples, etc. Also nuts.", "fruit, for example, apples, et cetera. also nuts."),
        ("No. 5 is, i.e. was, good.", "number five is, that is, was, good."),
        ("Acme Inc. makes it.", "acme incorporated makes it."),
        ("The GPU runs TTS.", "the G P U runs T T S."),
        ("F5-TTS and GPT-4", "F five T T S and G P T four"),
        ("NASA and the US sent AI.", "nasa and the U S sent A I."),
        ("He left the U.S. They met.", "he left the U S. they met."),
        ("I AM NOT SHOUTING AT US!", "i am not shouting at us!"),
        ("OpenAI and iPhone", "open A I and iphone"),
        ("plan A, vitamin A. A dog.", "plan A, vitamin A. a dog."),
        ("jane.doe@mail.com", "jane dot doe at mail dot com"),
        ("https://www.example.com/a-b", "W W W dot example dot com slash a dash b"),
        ("file_name.py", "file name dot py"),
        ("rock & roll", "rock and roll"),
        ("It’s “naïve” — isn’t it?", "it's naive, isn't it?"),
        ("Café, façade, Łódź, Straße", "cafe, facade, lodz, strasse"),
        ("The δ and the Ω", "the delta and the omega"),
        ("5 ≤ 6 ± 1", "five at most six plus or minus one"),
        ("C++ and/or C#", "C plus plus and or C"),
        ("He said (quietly) - then left...", "he said, quietly, then left."),
        ("the dogs' bowls, 'tis so", "the dogs bowls, 'tis so"),
    ],
)
def test_text_as_it_is_read_aloud(text: str, spoken: str) -> None:
    assert normalise(text, default_lexicon()).text == spoken


def test_what_has_no_sound_is_reported_once_and_in_order() -> None:
    normalised = normalise("Hello 😀 мир, 😀 world!", default_lexicon())
    assert normalised.text == "hello, world!"
    assert normalised.dropped == ("😀", "м", "и", "р")


def test_joiners_and_variation_selectors_are_not_reported() -> None:
    assert normalise("hi ❤\ufe0f", default_lexicon()).dropped == ("❤",)


def test_any_mixture_of_characters_ends_in_plain_words() -> None:
    random = np.random.default_rng(3)
    pool = string.printable + "éßøδΩ½²€£–—…“”’°×→ﬁⅣ１😀你д\u0301\u200d"
    for _ in range(400):
        text = "".join(random.choice(list(pool), size=60))
        assert re.fullmatch(r"[a-zA-Z' ,.?!]*", normalise(text, default_lexicon()).text), ascii(text)


def test_every_assigned_character_of_the_basic_plane_is_spoken_or_dropped() -> None:
    text = "".join(chr(code) for code in range(0xD800) if unicodedata.category(chr(code)) != "Cn")
    for start in range(0, len(text), 200):
        assert re.fullmatch(r"[a-zA-Z' ,.?!]*", normalise(text[start : start + 200], default_lexicon()).text)
