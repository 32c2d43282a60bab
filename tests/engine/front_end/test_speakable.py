from __future__ import annotations

import subprocess
import sys

import pytest

from paretone.errors import TextError
from paretone.front_end.phonemiser import NaturalPhonemiser
from paretone.front_end.speakable import CHINESE, ENGLISH, MOST_CHARACTERS, language_of, markup_notes
from paretone.models import load_model
from paretone.models.catalogue import entry, voice
from paretone.paths import resource
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


def test_a_take_carries_the_note() -> None:
    setting = Setting("f5-mini", entry("f5-mini").options_with(steps=1), seed=1)
    made = synthesise(load_model("f5-mini", device="cpu"), "Hello <b>there</b>.", voice("", "f5-mini"), setting)
    assert any("The text has markup (<b>, </b>)" in note for note in made.notes)


ABLE = "it speaks only this"


@pytest.mark.parametrize(
    ("sentence", "language"),
    [
        ("Hello there, how are you today?", ENGLISH),
        ("Jabberwocky gyred and gimbled in the wabe.", ENGLISH),
        ("El Niño and die Mannschaft won in the end.", ENGLISH),
        ("Los Angeles, Las Vegas, El Paso: go!", ENGLISH),
        ("Ursula von der Leyen spoke yesterday.", ENGLISH),
        ("No, no, no, I said no!", ENGLISH),
        ("Come, children, come inside now.", ENGLISH),
        ("Do as good Romans do always.", ENGLISH),
        ("Schadenfreude", ENGLISH),
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
        ("Guten Tag, wie geht es Ihnen?", "looks like German"),
        ("Le renard brun saute par-dessus le chien et il court dans la forêt.", "looks like French"),
        ("El zorro salta sobre el perro y corre hacia el bosque.", "looks like Spanish"),
        ("Oggi parliamo di una cosa che non è molto importante per la città.", "looks like Italian"),
        ("Hoje vamos falar de uma coisa muito importante para a nossa cidade.", "looks like Portuguese"),
        ("De snelle vos springt over een luie hond en rent het bos in.", "looks like Dutch"),
        ("Быстрая лиса прыгает.", "Cyrillic script"),
        ("今日はとてもいい天気ですね。", "Hiragana script"),
        ("안녕하세요 여러분", "Hangul script"),
        ("مرحبا بكم", "Arabic script"),
    ],
)
def test_other_languages_are_refused_with_what_is_spoken(sentence: str, named: str) -> None:
    with pytest.raises(TextError, match=f"{named}, but {ABLE}; type another text"):
        language_of(sentence, ABLE)


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
