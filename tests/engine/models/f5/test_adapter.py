"""The bundled model as the engine uses it: speech, skipping, calibration, attention, and what it refuses."""

from __future__ import annotations

import pickle
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from paretone.audio.resampling import resample
from paretone.errors import AudioError, Cancelled, PlainError, ProfileError, SettingError, TextError
from paretone.models import load_model
from paretone.models.base import SpeechModel, Synthesis, Utterance, Voice
from paretone.models.catalogue import entry, voice, voices
from paretone.sampling.actions import SkipAction
from paretone.setting.knobs import NO_VALUES, Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import scripted, stream
from paretone.techniques import compatibility_of
from paretone.techniques.ditreducio.preparation import calibrate_model
from paretone.techniques.ditreducio.table import StrategyTable
from tests.engine.techniques.ditreducio.observing import Recorder
from tests.prompts import short_prompts  # noqa: F401
from tests.workload import workload

pytestmark = pytest.mark.usefixtures("short_prompts")

SENTENCE = workload("Rice is often served in round bowls.", "Rice is served.")


@pytest.fixture(scope="module")
def model() -> SpeechModel:
    return load_model("f5-mini", device="cpu")


def setting(**changes: object) -> Setting:
    return Setting("f5-mini", entry("f5-mini").options_with(steps=4, spacing="uniform", **changes), seed=7)


def quick(**changes: object) -> Setting:
    """A setting for tests that do not look at what is said."""
    return replace(setting(), options=setting(**changes).options.replace(steps=1))


def skipping(model: SpeechModel, of: Setting, action: SkipAction = SkipAction.TS) -> tuple[Setting, StrategyTable]:
    """A setting in which every other step of the upper layers takes ``action``."""
    row = tuple(action if step % 2 else SkipAction.NONE for step in range(int(of.options["steps"])))
    plain = (SkipAction.NONE,) * len(row)
    rows = tuple(row if layer > 3 else plain for layer in range(model.info.layers))
    table = StrategyTable(compatibility_of(model.info, of), rows)
    return of.with_technique(UsedTechnique("ditreducio", NO_VALUES, table.fingerprint)), table


def speak(model: SpeechModel, text: str, of: Setting, *tables: StrategyTable, who: Voice | None = None, observer=None):
    """All pieces, and the synthesis."""
    pieces = []
    speech = stream(model, text, who or voice(), of, tables, observer or Recorder())
    while True:
        try:
            pieces.append(next(speech).samples)
        except StopIteration as end:
            return pieces, end.value


def test_pieces_put_together_are_the_synthesis(model: SpeechModel) -> None:
    text = "The boy was there when the sun rose. A rod is used to catch pink salmon. Kick the ball straight."
    recorder = Recorder()
    pieces, whole = speak(model, text, setting(), observer=recorder)
    assert len(pieces) > 1
    assert np.array_equal(np.concatenate(pieces), whole.samples)
    assert whole.samples.dtype == np.float32
    assert len(whole.trace.chunk_texts) == len(pieces)
    assert " ".join(whole.trace.chunk_texts) == text
    assert whole.measurements.evaluations == 4 * len(pieces)
    assert [report.chunk for report in recorder.steps] == sorted(list(range(len(pieces))) * 4)
    assert whole.measurements.first_audio_seconds < whole.measurements.seconds
    assert len(whole.trace.step_seconds[0]) == 4


def test_a_seed_is_a_take(model: SpeechModel) -> None:
    first, again = (speak(model, SENTENCE, quick())[1].samples for _ in range(2))
    other = speak(model, SENTENCE, replace(quick(), seed=8))[1].samples
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("action", [SkipAction.TS, SkipAction.BS])
def test_skipping_changes_the_audio_but_not_its_length(model: SpeechModel, action: SkipAction) -> None:
    _, baseline = speak(model, SENTENCE, setting())
    accelerated, table = skipping(model, setting(), action)
    _, faster = speak(model, SENTENCE, accelerated, table)
    assert len(faster.samples) == len(baseline.samples)
    assert not np.array_equal(faster.samples, baseline.samples)
    assert baseline.measurements.ops_ratio == 1.0
    operations = model.operations(scripted(model, SENTENCE, voice(), setting(), prepared=False))
    assert faster.measurements.ops_ratio == pytest.approx(table.ops_ratio(operations))
    assert faster.measurements.ops_ratio < 0.9


def test_a_table_that_skips_nothing_changes_nothing(model: SpeechModel) -> None:
    _, baseline = speak(model, SENTENCE, setting())
    table = StrategyTable.computing(compatibility_of(model.info, setting()), model.info.layers)
    used = setting().with_technique(UsedTechnique("ditreducio", NO_VALUES, table.fingerprint))
    assert np.array_equal(speak(model, SENTENCE, used, table)[1].samples, baseline.samples)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"steps": 8}, "number of steps"),
        ({"sway": 0.0}, "sway"),
        ({"guidance": 3.0}, "guidance"),
        ({"steps": 7, "spacing": "epss"}, "number of steps"),
    ],
)
def test_a_table_of_another_grid_is_refused(model: SpeechModel, change: dict, words: str) -> None:
    used, table = skipping(model, setting())
    other = replace(used, options=used.options.replace(**change))
    with pytest.raises(ProfileError, match=words):
        speak(model, SENTENCE, other, table)


def test_an_used_technique_without_its_table_is_refused(model: SpeechModel) -> None:
    used, _ = skipping(model, setting())
    with pytest.raises(SettingError, match="calibrate first"):
        speak(model, SENTENCE, used)


def test_midpoint_and_ditreducio_exclude_each_other(model: SpeechModel) -> None:
    used, table = skipping(model, setting())
    with pytest.raises(SettingError, match="Euler"):
        speak(model, SENTENCE, replace(used, options=used.options.replace(solver="midpoint")), table)
    with pytest.raises(SettingError, match="Euler"):
        calibrate_model(model, [Utterance(SENTENCE, voice())], setting(solver="midpoint"), Recorder())


def test_without_guidance_one_branch_runs(model: SpeechModel) -> None:
    of = setting(guidance=0.0)
    assert model.operations(scripted(model, SENTENCE, voice(), of, prepared=False)).branches == 1
    assert len(speak(model, SENTENCE, of)[1].samples) > 0


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


@pytest.mark.slow
def test_calibration_gives_a_table_that_uses(model: SpeechModel) -> None:
    of = setting().with_technique(UsedTechnique("ditreducio", Values(threshold=0.3)))
    recorder = Recorder()
    record = calibrate_model(model, [Utterance(SENTENCE, voice())], of, recorder)
    assert record.table.count(SkipAction.NONE) < record.table.layers * record.table.steps
    assert [(one.text, one.voice) for one in record.sentences] == [(SENTENCE, voice().id)] and record.seed == 7
    assert tuple(recorder.trials) == record.trials
    used = setting().with_technique(UsedTechnique("ditreducio", Values(threshold=0.3), record.table.fingerprint))
    assert speak(model, SENTENCE, used, record.table)[1].measurements.ops_ratio < 1


def test_captured_attention_is_attention(model: SpeechModel) -> None:
    used, table = skipping(model, setting())
    capture = model.capture_attention(scripted(model, SENTENCE, voice(), used, (table,)), 5, 3, Recorder())
    assert capture.maps.shape[0] == 2
    assert capture.maps.shape[1] == capture.maps.shape[2] <= 512
    assert np.allclose(capture.maps.sum(-1), 1, atol=1e-4)
    assert 0 < capture.prompt_frames < capture.frames
    assert all(0 < one <= 1 for one in capture.similarities)
    with pytest.raises(SettingError, match="no layer 9"):
        model.capture_attention(scripted(model, SENTENCE, voice(), setting()), 8, 0, Recorder())


@pytest.mark.parametrize("text", ["", "   \n", "🙂🎉", "，。", "你好"])
def test_text_that_cannot_be_spoken_is_refused(model: SpeechModel, text: str) -> None:
    with pytest.raises(TextError):
        speak(model, text, setting())


def test_dropped_characters_are_named(model: SpeechModel) -> None:
    _, whole = speak(model, "Hello 你好 there.", setting())
    assert any("你" in note for note in whole.notes)


class CancelledAtStep(Recorder):
    """Cancels once that many steps are done, however often reading the text has asked."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self._most = steps

    def check(self) -> None:
        super().check()
        if len(self.steps) >= self._most:
            raise Cancelled


def test_twenty_thousand_characters_are_cut_into_passages(model: SpeechModel) -> None:
    text = ("The swan dive was far short of perfect. " * 600)[:20_000]
    recorder = CancelledAtStep(2)
    with pytest.raises(Cancelled):
        speak(model, text, setting(), observer=recorder)
    assert recorder.steps[0].chunks > 100
    with pytest.raises(TextError, match="50,000"):
        speak(model, text * 3, setting())


def test_cancel_takes_effect_within_one_step(model: SpeechModel) -> None:
    recorder = CancelledAtStep(1)
    with pytest.raises(Cancelled):
        speak(model, SENTENCE, setting(), observer=recorder)
    assert len(recorder.steps) == 1


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


def test_a_telephone_recording_speaks_and_says_that_it_is_one(model: SpeechModel, tmp_path: Path) -> None:
    samples, rate = soundfile.read(voices()[0].audio, dtype="float32")
    path = tmp_path / "telephone.wav"
    soundfile.write(path, resample(samples, rate, 8000), 8000)
    own = Voice("own", "My voice", str(path), voices()[0].transcript)
    _, whole = speak(model, SENTENCE, quick(), who=own)
    assert any("8 kHz" in note for note in whole.notes)
    assert np.sqrt(np.mean(whole.samples**2)) > 0.003, "not silence"


def test_estimated_phone_times_are_said(model: SpeechModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = replace(voices()[0], id="own", phones=())
    monkeypatch.setitem(sys.modules, "pocketsphinx", None)
    notes = speak(model, SENTENCE, quick(), who=own)[1].notes
    assert [note for note in notes if "estimated" in note]
    assert not speak(model, SENTENCE, quick())[1].notes, "measured times are not worth a word"


@pytest.mark.parametrize("seconds", [0.1, 600.0])
def test_prompts_of_impossible_length_are_refused(model: SpeechModel, tmp_path: Path, seconds: float) -> None:
    path = tmp_path / "prompt.wav"
    soundfile.write(path, np.random.default_rng(0).normal(0, 0.1, int(8000 * seconds)), 8000)
    with pytest.raises(AudioError, match=path.name):
        speak(model, SENTENCE, setting(), who=Voice("own", "", str(path), "A transcript."))


def test_weights_that_are_not_numbers_are_a_sentence() -> None:
    broken = load_model("f5-mini", device="cpu")
    broken._backbone.proj_out.bias.data[0] = float("nan")
    with pytest.raises(PlainError, match="not numbers"):
        speak(broken, SENTENCE, quick())


def test_option_values_are_checked(model: SpeechModel) -> None:
    with pytest.raises(SettingError, match="Steps"):
        speak(model, SENTENCE, Setting("f5-mini", Values(steps=0)))
    with pytest.raises(SettingError, match="no knob"):
        speak(model, SENTENCE, Setting("f5-mini", Values(stepz=4)))


def test_synthesis_is_a_message(model: SpeechModel) -> None:
    whole: Synthesis = speak(model, SENTENCE, quick())[1]
    again = pickle.loads(pickle.dumps(whole))
    assert np.array_equal(again.samples, whole.samples)
    assert again.measurements == whole.measurements


def test_numbers_too_small_to_be_heard_are_flushed(model: SpeechModel) -> None:
    assert torch.tensor([1e-39]).mul(0.5).item() == 0.0, "denormal arithmetic makes late steps three times as slow"
