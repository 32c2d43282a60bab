"""Words that users teach: respelling and IPA, the file, and settings and profiles that carry them."""

import pytest

import paretone
from paretone.errors import TextError
from paretone.front_end.pronunciations import HowToRead, lexicon_file, phonemes
from paretone.front_end.reading import NaturalReader
from paretone.models.catalogue import entry
from paretone.setting.setting import Setting
from tests.engine.command_line import Console


@pytest.mark.parametrize(
    ("said", "sounds"),
    [
        ("PAIR-uh-tone", "pˈɛɹətOn"),
        ("win", "wˈɪn"),
        ("shuh-VAWN", "ʃəvˈɔn"),
        ("kee-OH-tee", "kiˈOti"),
        ("/ˈpɛɹətoʊn/", "pˈɛɹətOn"),
        ("/ʃɪˈvɔːn/", "ʃɪvˈɔn"),
        ("/dʒeɪ/", "ʤˈA"),
    ],
)
def test_respellings_and_ipa(said: str, sounds: str) -> None:
    assert phonemes(said) == sounds


@pytest.mark.parametrize(
    ("word", "said", "sentence"),
    [
        ("two words", "x", "give one word of letters"),
        ("Foo", "f8", "'8' in the pronunciation 'f8' cannot be read"),
        ("Foo", " ", "There is no pronunciation"),
        ("Foo", "/ktk/", "has no vowel"),
    ],
)
def test_what_cannot_be_taught(word: str, said: str, sentence: str) -> None:
    with pytest.raises(TextError, match=sentence):
        paretone.teach(word, said)
    assert not lexicon_file().exists()


def test_a_taught_word_is_said_by_new_settings_and_kept_by_old_ones() -> None:
    before = Setting("f5-mini", entry("f5-mini").options_with(steps=4))
    assert paretone.teach("Zorblax", "zor-BLAKS") == "zɔɹblˈæks"
    assert dict(paretone.lexicon()) == {"Zorblax": "zor-BLAKS"}
    taught = Setting("f5-mini", entry("f5-mini").options_with(steps=4))
    assert taught.fingerprint != before.fingerprint and "pronunciations" not in list(before.options)
    paretone.forget("zorblax")
    assert Setting("f5-mini", entry("f5-mini").options_with(steps=4)) == before
    reader = NaturalReader()
    said = [reader.pieces("The ZORBLAX's here.", HowToRead.of(one.options))[0][0].phonemes for one in (before, taught)]
    assert "zɔɹblˈæks" not in said[0][0] and "zɔɹblˈæks" in said[1][0]


def test_a_damaged_lexicon_is_named_and_one_that_cannot_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    lexicon_file().parent.mkdir(parents=True, exist_ok=True)
    for content in ("{", "[]", '{"schema": 1, "words": {"a b": "x"}}', '{"schema": 1, "words": {"Foo": 7}}'):
        lexicon_file().write_text(content)
        with pytest.raises(TextError, match=r"Your lexicon .*lexicon\.json"):
            paretone.say("Hello.")
    monkeypatch.setenv("PARETONE_DATA", str(lexicon_file() / "data"))
    with pytest.raises(TextError, match=r"lexicon\.json could not be written: its folder is a file"):
        paretone.teach("Foo", "FOO")


def test_the_command_prints_what_is_read(console: Console) -> None:
    assert console("say", "Due 7/4, $5-10.").out == "Due July fourth, five to ten dollars.\n"
    assert console("say", "--phones", "Due 7/4.").out == "dˈu ʤəlˈI fˈɔɹθ.\n"
