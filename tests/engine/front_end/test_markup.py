from __future__ import annotations

import pytest

from paretone.front_end.markup import markup_notes
from paretone.models import load_model
from paretone.models.catalogue import entry, voice
from paretone.setting.setting import Setting
from paretone.speaking import synthesise


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('<speak>Hello <break time="1s"/> there.</speak>', '<speak>, <break time="1s"/>, </speak>'),
        ("<p>One.</p><p>Two.</p><b>x</b><i>y</i>", "<p>, </p>, <b> and 3 more"),
        ("Fish &amp; chips, it&#8217;s &#x41;", "&amp;, &#8217;, &#x41;"),
        ("<!-- a note --> Hello.", "<!--"),
        ("<?xml version='1.0'?> Hello.", "<?xml"),
        (f'<say-as interpret-as="{"x" * 999}">1</say-as>', '<say-as interpret-as="xxxxxxx…, </say-as>'),
        ("<prosody\nrate = slow>Hello.</prosody>", "</prosody>"),
    ],
)
def test_markup_is_named(text: str, named: str) -> None:
    (note,) = markup_notes(text)
    assert named in note
    assert "spoken as words" in note


@pytest.mark.parametrize(
    "text",
    [
        "One is < two, and three > two.",
        "If a <b and c> d.",
        "I <3 you; Q&A; R&D & more.",
        "x<y",
        "See <https://example.org>.",
        "Write to <me@example.org>.",
    ],
)
def test_signs_of_less_and_more_are_no_markup(text: str) -> None:
    assert markup_notes(text) == ()


def test_what_a_model_understands_is_none() -> None:
    assert markup_notes("This is <strong>very</strong> good.", ("strong",)) == ()
    assert markup_notes("This is <strong>very</strong> <b>good</b>.", ("strong",))


def test_a_text_of_brackets_takes_no_time() -> None:
    assert markup_notes("<a b=c" * 8000 + " x=y" * 4000) == ()


@pytest.mark.parametrize("model", ["f5-mini", "lm-mini"])
def test_a_take_carries_the_note(model: str) -> None:
    speech = load_model(model, device="cpu")
    few = {"steps": 2} if model == "f5-mini" else {}
    setting = Setting(model, entry(model).options_with(**few), seed=1)
    made = synthesise(speech, "Hello <b>there</b>.", voice("", model), setting)
    assert any("The text has markup (<b>, </b>)" in note for note in made.notes)
