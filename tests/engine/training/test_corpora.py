from __future__ import annotations

import json
import shutil
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from engine.errors import PlainError
from engine.front_end.frame_phones import labels
from engine.front_end.phones import PAUSE
from engine.training import corpora
from engine.training.corpora import HOP, LEVEL, SAMPLE_RATE, prepare_corpus, speak
from tests.engine.front_end.arctic import VOCABULARY

needs_flite = pytest.mark.skipif(shutil.which("flite") is None, reason="flite is not installed")


@needs_flite
@pytest.mark.parametrize("voice", corpora.VOICES)
def test_a_clip_and_its_phones_cover_each_other(voice: str):
    clip = speak("It is easy to tell the depth of a well, said Sam.", voice)
    assert len(clip.samples) == clip.frames * HOP
    assert clip.mel.shape == (clip.frames, 100)
    assert np.sqrt(np.mean(clip.samples**2)) == pytest.approx(LEVEL, rel=0.02)
    assert clip.phones[0] == (PAUSE, 0.0, 0.02)
    assert clip.phones[-1][0] == PAUSE
    assert clip.phones[-1][2] == pytest.approx(clip.frames * HOP / SAMPLE_RATE, abs=1e-3)
    for (_, _, end), (_, start, _) in zip(clip.phones, clip.phones[1:], strict=False):
        assert end == start
    assert all(end > start for _, start, end in clip.phones)


@needs_flite
def test_phone_times_are_those_of_the_sound():
    """The hiss of *s* is where it is said to be, and so is the silence of the comma."""
    clip = speak("Some saws, seven soups.", "slt")
    mel = clip.mel.astype(np.float32)
    phones = np.array(VOCABULARY.phones)[labels(clip.phones, clip.frames, VOCABULARY)]
    hiss, voiced = mel[phones == "s"], mel[np.isin(phones, ("aa", "ao", "ah", "uw"))]
    brightness = hiss[:, 60:75].mean() - hiss[:, :20].mean()
    assert brightness > 3 + voiced[:, 60:75].mean() - voiced[:, :20].mean()
    inner_pause = np.flatnonzero(phones == PAUSE)
    inner_pause = inner_pause[(inner_pause > 5) & (inner_pause < clip.frames - 10)]
    assert len(inner_pause) > 3
    assert mel[inner_pause].mean() < mel[phones != PAUSE].mean() - 2


@needs_flite
def test_nothing_lies_above_the_eight_kilohertz_of_the_source():
    mel = speak("She sells sea shells.", "rms").mel.astype(np.float32)
    assert np.median(mel[:, 90:]) < -11


@needs_flite
def test_an_interrupted_corpus_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(corpora, "SHARD", 3)
    monkeypatch.setattr(corpora, "HELD_OUT", 2)
    corpus = prepare_corpus(tmp_path, sentences_per_voice=5)
    assert [clip.voice for clip in corpus.training] == ["slt"] * 5 + ["rms"] * 5
    assert len(corpus.held_out) == 4
    assert len({clip.text for clip in corpus.training + corpus.held_out}) == 14

    kept, lost = tmp_path / "slt-00000.json", tmp_path / "rms-00003.json"
    kept_since = kept.stat().st_mtime_ns
    lost.unlink()
    told = []
    again = prepare_corpus(tmp_path, sentences_per_voice=5, progress=lambda done, total: told.append((done, total)))
    assert kept.stat().st_mtime_ns == kept_since
    assert told == [(14, 14)]
    for before, after in zip(corpus.training, again.training, strict=True):
        assert before.text == after.text
        np.testing.assert_array_equal(before.mel, after.mel)


@needs_flite
def test_a_shard_with_other_sentences_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(corpora, "HELD_OUT", 1)
    prepare_corpus(tmp_path, sentences_per_voice=1, voices=("slt",))
    index = tmp_path / "slt-00000.json"
    entries = json.loads(index.read_text(encoding="utf-8"))
    entries[0]["text"] = "Something else."
    index.write_text(json.dumps(entries), encoding="utf-8")
    corpus = prepare_corpus(tmp_path, sentences_per_voice=1, voices=("slt",))
    assert corpus.held_out[0].text != "Something else."


@needs_flite
def test_two_trainings_at_once_make_a_corpus_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(corpora, "HELD_OUT", 1)
    spoken, began = Counter(), threading.Barrier(2)

    def counted(sentence: str, voice: str) -> corpora.Clip:
        spoken[sentence] += 1
        return speak(sentence, voice)

    monkeypatch.setattr(corpora, "speak", counted)

    def prepared(_: int) -> corpora.Corpus:
        began.wait()
        return prepare_corpus(tmp_path, sentences_per_voice=3)

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(prepared, range(2))
    assert set(spoken.values()) == {1}
    assert [one.text for one in first.training] == [one.text for one in second.training]


def test_a_missing_flite_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(PlainError, match="apt install flite"):
        speak("Hello.", "slt")


@needs_flite
def test_an_unknown_voice_is_refused(tmp_path: Path):
    with pytest.raises(PlainError):
        speak("Hello there.", str(tmp_path / "nobody.flitevox"))
