from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from paretone.errors import Cancelled, TrainingError
from paretone.training import natural_corpus
from paretone.training.natural_corpus import CorpusOptions, make_corpus, open_corpus, planned
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
    assert utterances == planned(FEW)
    assert len(utterances) == FEW.utterances == 14
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
    again = Hummer()
    reported: list[int] = []
    broken = make_corpus(tmp_path / "broken", FEW, lambda: again, lambda done, total: reported.append(done))
    assert len(again.spoken) == 9  # The first shard was complete.
    assert reported[-1] == 14
    whole = make_corpus(tmp_path / "whole", FEW, Hummer)
    assert (len(whole.training), len(whole.held_out)) == (12, 2)
    for ours, theirs in zip(broken.training + broken.held_out, whole.training + whole.held_out, strict=True):
        assert (ours.voice, ours.text, ours.formant, ours.phones) == (
            theirs.voice,
            theirs.text,
            theirs.formant,
            theirs.phones,
        )
        np.testing.assert_array_equal(ours.mel, theirs.mel)
        np.testing.assert_array_equal(ours.latents, theirs.latents)


def test_what_is_there_is_not_made_again_and_needs_no_teacher(tmp_path: Path):
    made = make_corpus(tmp_path, FEW, Hummer)

    def nobody() -> Hummer:
        raise AssertionError("nobody is needed")

    again = make_corpus(tmp_path, FEW, nobody)
    opened = open_corpus(tmp_path)
    assert [one.text for one in made.training] == [one.text for one in again.training]
    assert [one.text for one in made.training] == [one.text for one in opened.training]
    assert opened.source == "hibari-tts"
    clip = opened.training[0]
    assert clip.mel.dtype == clip.latents.dtype == np.float16
    assert clip.mel.shape == (clip.frames, 100)
    assert clip.phones[-1][2] == pytest.approx(len(clip.latents) * 0.0125)
    assert opened.seconds == pytest.approx(sum(one.frames for one in opened.training) * 256 / 24000)


def test_a_folder_of_other_options_is_refused(tmp_path: Path):
    make_corpus(tmp_path, FEW, Hummer)
    with pytest.raises(TrainingError, match="describes another corpus"):
        make_corpus(tmp_path, CorpusOptions(voices=2, sentences=4), Hummer)


def test_a_shard_with_other_sentences_is_made_again(tmp_path: Path):
    make_corpus(tmp_path, FEW, Hummer)
    path = tmp_path / "000005.json"
    index = json.loads(path.read_text(encoding="utf-8"))
    index["utterances"][0][1] = "Something else."
    path.write_text(json.dumps(index), encoding="utf-8")
    hummer = Hummer()
    corpus = make_corpus(tmp_path, FEW, lambda: hummer)
    assert len(hummer.spoken) == 5
    assert "Something else." not in [one.text for one in corpus.training]


def test_a_folder_without_a_corpus_is_said(tmp_path: Path):
    with pytest.raises(TrainingError, match="paretone train voice-corpus"):
        open_corpus(tmp_path)
