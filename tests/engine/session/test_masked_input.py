"""Every mistake in a request to a masked model ends as a sentence in an event."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

from paretone.models import load_model
from paretone.models.base import SpeechModel, Voice
from paretone.models.catalogue import voice
from paretone.session.commands import LoadModel, ShutDown, Synthesise
from paretone.session.engine_thread import EngineThread
from paretone.session.events import JobFailed, JobFinished, TakeReady
from paretone.setting.setting import Setting
from paretone.setting.take import Take
from tests.engine.models.omnivoice.small_release import TEXT, setting, used, write_release
from tests.engine.recorder import PATIENCE_SECONDS, Recorder

RATE = 24000


def load(*given: object, **named: object) -> SpeechModel:
    """The release, on a device that does not say that it lacks CUDA graphs."""
    model = load_model(*given, **named)
    model.info = replace(model.info, lacking=())
    return model


class Asked:
    """An engine with the small release, asked one thing after another."""

    def __init__(self, root: Path) -> None:
        self.recorder = Recorder()
        self.engine = EngineThread(self.recorder.post, load)
        self._job = 1
        self.engine.start()
        self.engine.submit(LoadModel(1, "OmniVoice", str(root), device="cpu"))
        assert isinstance(self.recorder.end_of(1), JobFinished)

    def take(self, chosen: Setting, text: str = TEXT, by: Voice | None = None) -> Take:
        """The take that comes of it."""
        end = self._ended(chosen, text, by)
        assert isinstance(end, JobFinished), getattr(end, "sentence", end)
        return self.recorder.of(self._job, TakeReady)[0].take

    def refusal(self, chosen: Setting, text: str = TEXT, by: Voice | None = None) -> str:
        """The sentence that it is refused with, which leaves nothing for the log."""
        end = self._ended(chosen, text, by)
        assert isinstance(end, JobFailed) and end.details == ""
        assert not self.recorder.of(self._job, TakeReady)
        return end.sentence

    def _ended(self, chosen: Setting, text: str, by: Voice | None) -> object:
        self._job += 1
        self.engine.submit(Synthesise(self._job, text, by or voice("", "omni-mini"), chosen))
        return self.recorder.end_of(self._job)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    made = Asked(write_release(tmp_path_factory.mktemp("input") / "model"))
    yield made
    made.engine.submit(ShutDown(9999))
    assert made.engine.join(PATIENCE_SECONDS)


@pytest.fixture(autouse=True)
def _own_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path / "own"))


def recorded(path: Path, seconds: float, transcript: str = "Some words here.", level: float = 0.2) -> Voice:
    """Words of 0.35 s with pauses between."""
    times = np.arange(round(seconds * RATE)) / RATE
    samples = level * np.sin(2770 * times) * (times % 0.6 < 0.35)
    soundfile.write(path, samples.astype(np.float32), RATE)
    return Voice(f"own:{path}", path.name, str(path), transcript)


def said(take: Take, words: str) -> str:
    """The one note with these words."""
    (note,) = (one for one in take.notes if words in one)
    return note


def test_an_unknown_language_is_not_told(asked: Asked) -> None:
    note = said(asked.take(setting(language="Klingon")), "Klingon")
    assert note.startswith("OmniVoice does not know the language 'Klingon', so no language was set.")
    assert not any("language" in one for one in asked.take(setting(language="de")).notes)


def test_an_empty_text_is_refused(asked: Asked) -> None:
    assert asked.refusal(setting(), "… !") == "There is nothing to speak in this text; type a sentence."


def test_a_silent_reference_is_refused(asked: Asked, tmp_path: Path) -> None:
    silent = recorded(tmp_path / "silent.wav", 3.0, level=0.0)
    assert "silent.wav is silent; choose a recording of speech" in asked.refusal(setting(clone=True), by=silent)


def test_a_long_reference_without_a_transcript_says_where_to_cut_it(asked: Asked, tmp_path: Path) -> None:
    long, short = (recorded(tmp_path / f"{seconds}.wav", seconds, transcript="") for seconds in (24.0, 6.0))
    sentence = asked.refusal(setting(clone=True), by=long)
    assert "has no transcript; write down what the recording says. It lasts 24.0 s" in sentence
    assert "cut it at a pause, such as at 15.0 s, and transcribe the rest" in sentence
    assert asked.refusal(setting(clone=True), by=short).endswith("write down what the recording says.")


def test_a_long_reference_and_a_transcript_that_does_not_fit_are_used_with_warnings(
    asked: Asked, tmp_path: Path
) -> None:
    pytest.importorskip("transformers")
    slow = recorded(tmp_path / "slow.wav", 24.0, "Word.")
    take = asked.take(setting(clone=True, prepare=False, steps=2), by=slow)
    assert "slow.wav: 24.0 s are long" in said(take, "long for a reference")
    assert "too short for its 24.0 s: so much text usually takes about 1.1 s" in said(take, "usually takes")


def test_no_duration_is_the_texts_own_and_ten_minutes_are_too_long(asked: Asked) -> None:
    own = asked.take(setting(post_process=False))
    told = asked.take(setting(post_process=False, duration=0.0))
    assert np.array_equal(own.samples, told.samples)
    sentence = asked.refusal(setting(duration=600.0))
    assert sentence.startswith("A duration of 600 s is too far from what this text usually takes (")
    assert sentence.endswith("or 0 for the usual.")
    assert "between 0 and 600 s, not at 601" in asked.refusal(setting(duration=601.0))


def test_a_precision_that_the_device_lacks_is_replaced(asked: Asked) -> None:
    narrow = used("precision", precision="float16")
    plain, fallen_back = asked.take(setting()), asked.take(setting(narrow))
    assert "does not gain from float16 for OmniVoice, which uses float32 instead" in said(fallen_back, "float16")
    assert np.array_equal(plain.samples, fallen_back.samples)
