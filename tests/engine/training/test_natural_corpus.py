"""Natural speech to learn from: the teacher, its corpus, alignments, and what errors sound like."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from paretone.errors import Cancelled, PlainError, TrainingError
from paretone.front_end.phones import BLANK, EDGE, timed_phones
from paretone.front_end.phones import PHONES as NATURAL_TEACHER_PHONES
from paretone.front_end.reading import LEAD, TAIL
from paretone.models.minis.natural_decoder import HOP, LATENT, PITCH, PITCH_SCALE, VOICING, NaturalDecoder
from paretone.training import natural_corpus
from paretone.training.natural_corpus import CorpusOptions, Manner, make_corpus, open_corpus, planned
from paretone.training.natural_teacher import NaturalTeacher
from tests.engine.training.toy_natural import Hummer

FEW = CorpusOptions(voices=3, sentences=4, held_out_voices=2, held_out_sentences=1)


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(natural_corpus, "SHARD", 5)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pipes in folders")
def test_what_is_no_corpus_is_said_without_waiting(tmp_path: Path):
    with pytest.raises(TrainingError, match=r"no complete corpus \(plan\.json: No such file or directory\); make it"):
        open_corpus(tmp_path)
    os.mkfifo(tmp_path / "plan.json")
    with pytest.raises(TrainingError, match=r"no complete corpus \(plan\.json: it is a pipe\); make it"):
        open_corpus(tmp_path)


def test_voices_are_drawn_once_and_deliveries_for_every_utterance():
    utterances = planned(FEW)
    assert utterances == planned(FEW) and len(utterances) == FEW.utterances == 14
    assert [one.held_out for one in utterances] == [False] * 12 + [True] * 2
    assert len({one.text for one in utterances}) == 14
    first = [one.delivery for one in utterances if one.voice == "v000"]
    assert len({one.formant for one in first}) == 1
    assert len({one.tempo for one in first}) == len({one.pitch_range for one in first}) == 4
    assert len({one.delivery.formant for one in utterances}) == 5
    assert np.std([np.log(one.pitch) for one in first]) < 0.06


def test_an_interrupted_corpus_goes_on_where_it_stopped(tmp_path: Path):
    def stop(done: int, total: int) -> None:
        assert total == 14
        if done == 8:
            raise Cancelled

    hummer = Hummer()
    with pytest.raises(Cancelled):
        make_corpus(tmp_path / "broken", FEW, lambda: hummer, stop)
    with pytest.raises(TrainingError, match="no complete corpus"):
        open_corpus(tmp_path / "broken")
    again, reported = Hummer(), []
    broken = make_corpus(tmp_path / "broken", FEW, lambda: again, lambda done, total: reported.append(done))
    assert len(again.spoken) == 9  # The first shard was complete.
    assert (reported[0], reported[-1]) == (5, 14), "the estimate begins there"
    whole = make_corpus(tmp_path / "whole", FEW, Hummer)
    assert (len(whole.training), len(whole.held_out)) == (12, 2)
    for ours, theirs in zip(broken.training + broken.held_out, whole.training + whole.held_out, strict=True):
        for name in ("voice", "text", "formant", "phones", "mel", "latents"):
            np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))


def test_what_is_there_is_not_made_again_and_needs_no_teacher(tmp_path: Path):
    made = make_corpus(tmp_path, FEW, Hummer)
    again = make_corpus(tmp_path, FEW, lambda: pytest.fail("nobody is needed"))
    opened = open_corpus(tmp_path)
    assert [one.text for one in made.training] == [one.text for one in again.training]
    assert [one.text for one in made.training] == [one.text for one in opened.training]
    assert opened.source == "hibari-tts"
    clip = opened.training[0]
    assert clip.mel.dtype == clip.latents.dtype == np.float16 and clip.mel.shape == (clip.frames, 100)
    assert clip.phones[-1][2] == pytest.approx(len(clip.latents) * 0.0125)
    assert opened.seconds == pytest.approx(sum(one.frames for one in opened.training) * 256 / 24000)
    with pytest.raises(TrainingError, match="describes another corpus"):
        make_corpus(tmp_path, CorpusOptions(voices=2, sentences=4), Hummer)
    path = tmp_path / "000005.json"
    index = json.loads(path.read_text(encoding="utf-8"))
    index["utterances"][0][1] = "Something else."
    path.write_text(json.dumps(index), encoding="utf-8")
    (tmp_path / "000010.latents.npy").write_bytes(b"")  # Such as after a power cut.
    hummer = Hummer()
    corpus = make_corpus(tmp_path, FEW, lambda: hummer)
    assert len(hummer.spoken) == 9
    assert "Something else." not in [one.text for one in corpus.training]
    (tmp_path / "plan.json").write_bytes(b"\xff")
    with pytest.raises(TrainingError, match="describes another corpus"):
        make_corpus(tmp_path, FEW, Hummer)


# --- The teacher ------------------------------------------------------------------------------------------------------
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
    assert {name for name, _, _ in phones} <= set(NATURAL_TEACHER_PHONES)
    assert sum(name == BLANK for name, _, _ in phones) == 7
    # As envelopes, hop by hop: the fine structure of 34 numbers is another.
    again = NaturalDecoder.load().decode(torch.from_numpy(spoken.latents)).numpy()
    ours, theirs = (np.log(one.reshape(-1, HOP).std(1) + 1e-3) for one in (again, spoken.samples))
    assert np.corrcoef(ours, theirs)[0, 1] > 0.97


def test_pitch_tempo_and_formants_are_as_asked(teacher: NaturalTeacher):
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


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "hibari", None)
    with pytest.raises(PlainError, match=r"paretone\[voice\]"):
        NaturalTeacher()
