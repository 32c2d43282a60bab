"""Knobs for free text check their values."""

from __future__ import annotations

import pytest

from engine.errors import SettingError
from engine.setting.knobs import Text

INSTRUCTION = Text("instruction", "Instruction", "How to speak.", default="", longest=12)


def test_words_are_kept_on_one_line() -> None:
    assert INSTRUCTION.check(" Speak \n low. ") == "Speak low."
    assert INSTRUCTION.check("") == ""


@pytest.mark.parametrize(("value", "said"), [(3, "must be text, not 3"), ("a" * 13, "has 13 characters, but 12")])
def test_what_is_no_text_or_too_long_is_refused(value: object, said: str) -> None:
    with pytest.raises(SettingError, match=said):
        INSTRUCTION.check(value)
