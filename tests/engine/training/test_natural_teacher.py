from __future__ import annotations

import sys

import numpy as np
import pytest
import torch

from paretone.errors import PlainError
from paretone.front_end.phones import (
    BLANK,
    CONSONANTS,
    EDGE,
    PHONES,
    PUNCTUATION,
    STRESSES,
    VOWELS,
    timed_phones,
)
from paretone.front_end.reading import LEAD, LONGER, TAIL
from paretone.models.files.checkpoints import read_weights
from paretone.models.minis.natural_decoder import HOP, LATENT, PITCH, PITCH_SCALE, VOICING
from paretone.paths import resource
from paretone.training.everyday import everyday_sentences
from paretone.training.natural_corpus import Manner
from paretone.training.natural_teacher import NaturalTeacher

TEXT = "The birch canoe slid on the smooth planks."


@pytest.fixture(scope="module")
def teacher() -> NaturalTeacher:
    for package in ("hibari", "onnx", "onnxruntime"):
        pytest.importorskip(package)
    return NaturalTeacher()


def log_pitch(latents: np.ndarray) -> np.ndarray:
    """Natural logarithms of the voiced frames' pitch, less a constant."""
    return latents[latents[:, VOICING] > 0, PITCH] * PITCH_SCALE


def test_symbols_latents_and_samples_cover_each_other(teacher: NaturalTeacher):
    (spoken,) = teacher.speak(TEXT)
    assert spoken.latents.shape == (sum(spoken.lengths), LATENT)
    assert len(spoken.samples) == len(spoken.latents) * HOP
    assert (spoken.symbols[0], spoken.symbols[-1]) == (EDGE, EDGE)
    assert spoken.lengths[0] <= LEAD
    assert spoken.lengths[-1] <= TAIL
    phones = timed_phones(spoken.symbols, spoken.lengths, HOP / 24000)
    assert {name for name, _, _ in phones} <= set(PHONES)
    assert sum(name == BLANK for name, _, _ in phones) == 7


def test_every_symbol_of_everyday_text_is_a_phone(teacher: NaturalTeacher):
    symbols = {one for text in everyday_sentences(300) for sentence in teacher.phonemes(text) for one in sentence}
    known = {BLANK, EDGE, *STRESSES, *VOWELS, *CONSONANTS, *PUNCTUATION}
    assert symbols - {" "} <= known
    assert len(symbols) > 50


def test_the_latents_decode_to_nearly_what_was_spoken(teacher: NaturalTeacher):
    """As envelopes, hop by hop: the fine structure of 34 numbers is another."""
    (spoken,) = teacher.speak(TEXT)
    again = teacher._decoder.decode(torch.from_numpy(spoken.latents)).numpy()
    ours, theirs = (np.log(one.reshape(-1, HOP).std(1) + 1e-3) for one in (again, spoken.samples))
    assert np.corrcoef(ours, theirs)[0, 1] > 0.97


def test_every_text_is_spoken_the_same_again(teacher: NaturalTeacher):
    delivery = Manner(0.9, 0.95, 1.3, 1.1, 0.5, 0.8, seed=4)
    first, second = teacher.speak(TEXT, delivery), teacher.speak(TEXT, delivery)
    np.testing.assert_array_equal(first[0].samples, second[0].samples)
    assert len(teacher.speak("Sorry, I missed your call. I was on the train.")) == 2


def test_pitch_range_tempo_and_formants_are_as_asked(teacher: NaturalTeacher):
    (plain,) = teacher.speak(TEXT)
    (low,) = teacher.speak(TEXT, Manner(pitch=0.8))
    assert log_pitch(low.latents).mean() - log_pitch(plain.latents).mean() == pytest.approx(np.log(0.8), abs=1e-3)
    (wide,) = teacher.speak(TEXT, Manner(pitch_range=1.5))
    assert log_pitch(wide.latents).std() == pytest.approx(1.5 * log_pitch(plain.latents).std(), rel=0.05)
    (slow,) = teacher.speak(TEXT, Manner(tempo=0.85))
    assert len(slow.latents) > 1.05 * len(plain.latents)
    (longer_tract,) = teacher.speak(TEXT, Manner(formant=0.9))
    np.testing.assert_array_equal(longer_tract.latents, plain.latents)
    bright, dark = (np.abs(np.fft.rfft(one.samples)) for one in (plain, longer_tract))
    centres = [float((one * np.arange(len(one))).sum() / one.sum()) for one in (bright, dark)]
    assert centres[1] < 0.97 * centres[0]


def test_emphasis_makes_one_word_longer_and_higher(teacher: NaturalTeacher):
    (plain,) = teacher.speak(TEXT)
    (stressed,) = teacher.speak(TEXT, Manner(emphasis=0.3, strength=1.0))  # the third of eight: canoe
    longer = np.flatnonzero(np.array(stressed.lengths) != np.array(plain.lengths))
    blanks = [place for place, symbol in enumerate(plain.symbols) if symbol == " "]
    assert blanks[1] < longer[0]
    assert longer[-1] < blanks[2]
    word = slice(blanks[1] + 1, blanks[2])
    assert sum(stressed.lengths[word]) == round(sum(plain.lengths[word]) * (1 + LONGER))
    first = sum(plain.lengths[: word.start])
    before, after = (log_pitch(one.latents[first : first + sum(one.lengths[word])]).mean() for one in (plain, stressed))
    assert after > before + 0.05


def test_text_without_a_word_has_nothing_to_emphasise(teacher: NaturalTeacher):
    for text in ("...", "?"):
        for spoken in teacher.speak(text, Manner(emphasis=0.9, strength=1.0)):
            assert len(spoken.samples) == len(spoken.latents) * HOP


def test_the_resource_holds_the_weights_of_the_wheel(teacher: NaturalTeacher):
    from paretone.training.recipes.natural_decoder import decoder_weights, latent_space

    shipped = read_weights(resource("models", "natural-decoder", "model.safetensors"))
    for name, value in decoder_weights().items():
        assert shipped[name].dtype == value.dtype
        assert torch.equal(shipped[name], value), name
    few = latent_space(teacher, 12)
    assert set(few) == {name for name in shipped if name.startswith("space.")}
    overlap = few["space.directions"][:8] @ shipped["space.directions"].T
    assert float(overlap.square().sum(1).min()) > 0.8


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "hibari", None)
    with pytest.raises(PlainError, match=r"paretone\[voice\]"):
        NaturalTeacher()
