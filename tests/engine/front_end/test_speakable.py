from __future__ import annotations

import subprocess
import sys

import pytest

from paretone.errors import TextError
from paretone.front_end.natural.phonemiser import NaturalPhonemiser
from paretone.front_end.speakable import MOST_CHARACTERS
from paretone.paths import resource


@pytest.fixture(scope="module")
def phonemise() -> NaturalPhonemiser:
    return NaturalPhonemiser()


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
def test_text_that_cannot_be_spoken(phonemise: NaturalPhonemiser, text: str, sentence: str) -> None:
    with pytest.raises(TextError, match=sentence):
        phonemise(text)


def test_the_front_end_needs_no_torch() -> None:
    program = (
        "import sys, paretone.front_end.speakable, paretone.front_end.chunking, "
        "paretone.measure.loudness, paretone.measure.fidelity; "
        "sys.exit('torch' in sys.modules or 'scipy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False, cwd=resource().parent).returncode == 0
