from __future__ import annotations

import pytest

from paretone.errors import TextError
from paretone.front_end.language import CHINESE, ENGLISH, language_of
from paretone.paths import resource

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
