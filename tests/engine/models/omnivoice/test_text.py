"""OmniVoice's text front end beyond the fixtures: sentences, descriptions, hints, durations of unusual texts."""

from __future__ import annotations

import pytest

from paretone.errors import SettingError
from paretone.models.omnivoice import text
from paretone.models.omnivoice.text import is_spoken, sentences


def test_sentences_of_several_scripts() -> None:
    assert sentences("One here. Two there! Dr. Smith came.") == ["One here.", "Two there!", "Dr. Smith came."]
    assert sentences("你好。今天天气很好！“走吧。”他说。") == ["你好。", "今天天气很好！", "“走吧。”他说。"]
    assert sentences("こんにちは。元気ですか？はい。") == ["こんにちは。", "元気ですか？", "はい。"]


def test_what_can_be_heard() -> None:
    assert is_spoken("7")
    assert is_spoken("[laughter]")
    assert not is_spoken("… —!")


def test_languages_by_name_and_id_and_hints_for_others() -> None:
    assert text.language(" German ") == ("de", ())
    assert text.language("") == text.language("None") == (None, ())
    found, (note,) = text.language("Germn")
    assert found is None
    assert "Did you mean german" in note


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("loud", "it knows american accent"),
        ("male, 女", "cannot be both"),
        ("四川话, british accent", "四川话 is a dialect of Chinese, but british accent is of English"),
        ("high pitch, low pitch", "'high pitch' and 'low pitch'"),
    ],
)
def test_descriptions_that_cannot_be(said: str, words: str) -> None:
    with pytest.raises(SettingError, match=words):
        text.instruct(said, chinese=False)


def test_durations_never_vanish() -> None:
    assert text.expected_frames("", "", 0) == 1
    assert text.expected_frames("a") < text.expected_frames("a much longer text than that")
    # A reference that says nothing has no pace.
    assert text.expected_frames("Some words.", "\u0301", 40) == text.expected_frames("Some words.")
    assert text.expected_frames("Some words.", speed=2.0) == pytest.approx(
        text.expected_frames("Some words.") / 2, abs=1
    )
