"""The bundled model as the engine uses it: speech, voices, and what it refuses.

Techniques are tested in ``families/test_flow.py`` and ``session/test_bundled.py``."""

import itertools
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from paretone.errors import AudioError, TextError
from paretone.models import load_model
from paretone.models.base import SpeechModel, Voice
from paretone.models.catalogue import voice, voices
from paretone.setting.setting import Setting
from paretone.speaking import scripted
from paretone.techniques.ditreducio.table import StrategyTable
from tests.engine.models import official
from tests.engine.recorder import collected
from tests.engine.speaking import stream
from tests.engine.techniques.ditreducio.observing import Recorder
from tests.workload import workload

pytestmark = pytest.mark.usefixtures("short_prompts")

SENTENCE = workload("Rice is often served in round bowls.", "Rice is served.")


@pytest.fixture(scope="module")
def model() -> SpeechModel:
    return load_model("f5-mini", device="cpu")


setting = partial(official.setting, "f5-mini", seed=7, steps=2, spacing="uniform")


def quick(**changes: object) -> Setting:
    """A setting for tests that do not look at what is said."""
    return replace(setting(), options=setting(**changes).options.replace(steps=1))


def speak(model: SpeechModel, text: str, of: Setting, *tables: StrategyTable, who: Voice | None = None, observer=None):
    pieces, whole = collected(stream(model, text, who or voice(), of, tables, observer or Recorder()))
    return [one.samples for one in pieces], whole


def test_pieces_put_together_are_the_synthesis(model: SpeechModel) -> None:
    text = "The boy was there when the sun rose. A rod is used to catch pink salmon. Kick the ball straight."
    recorder = Recorder()
    pieces, whole = speak(model, text, setting(), observer=recorder)
    assert len(pieces) > 1
    assert np.array_equal(np.concatenate(pieces), whole.samples)
    assert whole.samples.dtype == np.float32
    assert len(whole.trace.chunk_texts) == len(pieces)
    assert " ".join(whole.trace.chunk_texts) == text
    names, starts, ends = zip(*whole.trace.phones, strict=True)
    assert "ʃ" not in names[:2] and {"b", "ˈY", "k"} <= set(names)
    # Pieces fade into each other, so the next begins before the last pause is over.
    assert sum(later < earlier for earlier, later in itertools.pairwise(starts)) < len(pieces)
    assert max(ends) == pytest.approx(len(whole.samples) / whole.sample_rate, abs=0.2)
    assert whole.measurements.evaluations == 2 * len(pieces)
    assert [report.chunk for report in recorder.steps] == sorted(list(range(len(pieces))) * 2)
    assert whole.measurements.first_audio_seconds < whole.measurements.seconds
    assert len(whole.trace.step_seconds[0]) == 2


def test_speed_scales_the_duration(model: SpeechModel) -> None:
    lengths = [len(speak(model, SENTENCE, quick(speed=speed))[1].samples) for speed in (0.5, 1.0, 2.0)]
    assert lengths[0] / lengths[1] == pytest.approx(2, rel=0.1)
    assert lengths[1] / lengths[2] == pytest.approx(2, rel=0.1)


def test_quick_start_shortens_the_first_passage_only(model: SpeechModel) -> None:
    text = "The boy was there when the sun rose. A rod is used to catch pink salmon. Kick the ball straight."
    quick, patient = (
        model.operations(scripted(model, text, voice(), setting(quick_start=on), prepared=False))
        for on in (True, False)
    )
    assert quick.feed_forward < patient.feed_forward


@pytest.mark.parametrize("text", ["", "🙂🎉", "The swan dive was far short of perfect. " * 1500])
def test_text_that_cannot_be_spoken_is_refused(model: SpeechModel, text: str) -> None:
    with pytest.raises(TextError, match="50,000" if len(text) > 50_000 else ""):
        speak(model, text, setting())


def test_a_voice_of_the_users_own_needs_a_transcript_that_fits(model: SpeechModel, tmp_path: Path) -> None:
    samples, rate = soundfile.read(voices()[0].audio, dtype="float32")
    path = tmp_path / "mine.wav"
    soundfile.write(path, np.stack([samples, samples], 1), rate, subtype="PCM_24")
    own = Voice("own", "My voice", str(path), voices()[0].transcript)
    _, whole = speak(model, SENTENCE, quick(), who=own)
    assert any("channels" in note for note in whole.notes)
    with pytest.raises(TextError, match="transcript"):
        speak(model, SENTENCE, setting(), who=replace(own, transcript=" "))
    with pytest.raises(AudioError, match="transcript"):
        speak(model, SENTENCE, setting(), who=replace(own, transcript="Short. " * 60))


def test_estimated_phone_times_are_said(model: SpeechModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = replace(voices()[0], id="own", phones=())
    monkeypatch.setitem(sys.modules, "pocketsphinx", None)
    notes = speak(model, SENTENCE, quick(), who=own)[1].notes
    assert [note for note in notes if "estimated" in note]
    assert not speak(model, SENTENCE, quick())[1].notes, "measured times are not worth a word"


def test_numbers_too_small_to_be_heard_are_flushed(model: SpeechModel) -> None:
    assert torch.tensor([1e-39]).mul(0.5).item() == 0.0, "denormal arithmetic makes late steps three times as slow"
