"""MegaTTS 3 as the engine uses it, by both front ends: speech, skipping, calibration, attention, and what it refuses.

The models are small and have random weights: what they say is noise, but every step on the way is the real one.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from paretone.errors import AudioError, ProfileError, SettingError, TextError
from paretone.measure.loudness import integrated_loudness
from paretone.models.base import Synthesis, Utterance, Voice
from paretone.models.catalogue import voice, voices
from paretone.models.megatts3.adapter import MegaSpeech
from paretone.models.minis.natural_decoder import HOP, NaturalDecoder
from paretone.models.minis.natural_vocoder import GROUP, GROUP_HOP, MARGIN
from paretone.observer import Observer
from paretone.sampling.actions import SkipAction
from paretone.setting.knobs import NO_VALUES, defaults
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import scripted
from paretone.techniques import compatibility_of, ditreducio, resolve, technique
from paretone.techniques.ditreducio.preparation import calibrate_model
from paretone.techniques.ditreducio.table import StrategyTable
from tests.engine.models import official
from tests.engine.models.minis.small_megatts3_mini import LAYERS, write_bundled
from tests.engine.recorder import collected
from tests.engine.speaking import stream
from tests.engine.techniques.ditreducio.observing import Recorder

MINI = "megatts3-mini"
SENTENCE = "Rice is often served in round bowls."
STEPS = 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("models") / MINI
    write_bundled(root)
    return root


@pytest.fixture(scope="module")
def model(folder: Path) -> MegaSpeech:
    return official.load(MINI, folder)


setting = partial(official.setting, MINI, seed=7, steps=STEPS)


def speak(
    model: MegaSpeech,
    text: str = SENTENCE,
    of: Setting | None = None,
    tables: Sequence[StrategyTable] = (),
    who: Voice | None = None,
    observer: Observer | None = None,
) -> tuple[list[np.ndarray], Synthesis]:
    speech = stream(model, text, who or voice("", MINI), of or setting(), tuple(tables), observer or Recorder())
    pieces, whole = collected(speech)
    return [one.samples for one in pieces], whole


def skipping(model: MegaSpeech, of: Setting, action: SkipAction) -> tuple[Setting, StrategyTable]:
    """A setting in which every other step of the upper layers takes ``action``."""
    row = tuple(action if step % 2 else SkipAction.NONE for step in range(STEPS))
    table = StrategyTable(compatibility_of(model.info, of), ((SkipAction.NONE,) * STEPS, *[row] * (LAYERS - 1)))
    return of.with_technique(UsedTechnique("ditreducio", NO_VALUES, table.fingerprint)), table


# --- Speaking ---------------------------------------------------------------------------------------------------------


def test_a_sentence_is_as_long_as_its_phones_and_as_loud_as_the_prompt(model: MegaSpeech) -> None:
    _, said = speak(model)
    assert said.sample_rate == 24000
    assert 1.5 < len(said.samples) / 24000 < 4
    assert said.trace.mel.shape[1] == 100
    assert len(said.trace.mel) * 256 == pytest.approx(len(said.samples), abs=256)
    recording, _ = soundfile.read(voice("", MINI).audio, dtype="float32")
    if np.abs(said.samples).max() < 0.94:  # Otherwise it is quieter, so as not to clip.
        own = integrated_loudness(recording, 24000).lufs
        assert integrated_loudness(said.samples, 24000).lufs == pytest.approx(own, abs=0.5)
    assert np.abs(said.samples).max() <= 0.9501
    measured = said.measurements
    assert (measured.evaluations, measured.ops_ratio) == (STEPS, 1.0)
    assert len(said.trace.step_seconds[0]) == STEPS


def test_equal_settings_give_equal_samples_and_other_seeds_others(model: MegaSpeech) -> None:
    first, second, other = (speak(model, of=setting(seed=seed))[1].samples for seed in (7, 7, 8))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)


def test_every_option_of_the_sampler_matters(model: MegaSpeech) -> None:
    usual = speak(model)[1].trace.mel
    for option in ("intelligibility", "similarity", "overshoot"):
        changed = speak(model, of=setting(**{option: 0.5}))[1].trace.mel
        assert usual.shape == changed.shape and not np.allclose(usual, changed, atol=1e-3), option


def test_speed_scales_the_durations(model: MegaSpeech) -> None:
    usual, fast = (speak(model, of=setting(speed=speed))[1].measurements.audio_seconds for speed in (1.0, 2.0))
    assert fast == pytest.approx(usual / 2, abs=0.1)


def test_without_amplified_guidance_one_branch_runs(model: MegaSpeech) -> None:
    plain = setting(intelligibility=1.0, similarity=1.0)
    three, one = (
        model.operations(scripted(model, SENTENCE, voice("", MINI), of, prepared=False)) for of in (setting(), plain)
    )
    assert (three.branches, one.branches) == (3, 1) and one.evaluation < three.evaluation
    assert speak(model, of=plain)[1].measurements.ops_ratio == 1.0
    assert [resolve(model.info, one).branches for one in (setting(), plain)] == [3, 1]


def test_long_text_comes_in_pieces_that_fade_into_each_other(model: MegaSpeech) -> None:
    pieces, said = speak(model, " ".join([SENTENCE] * 4))
    assert len(pieces) >= 2
    assert np.array_equal(np.concatenate(pieces), said.samples)
    assert len(said.trace.chunk_texts) == len(pieces)
    fades = (len(pieces) - 1) * int(0.16 * 24000)
    assert len(said.samples) == pytest.approx(sum(said.trace.chunk_seconds) * 24000 - fades, abs=len(pieces))


def test_the_prompt_is_not_decoded(model: MegaSpeech, monkeypatch: pytest.MonkeyPatch) -> None:
    decode, decoded = NaturalDecoder.decode, []

    def counting(self: NaturalDecoder, frames: torch.Tensor) -> torch.Tensor:
        decoded.append(len(frames))
        return decode(self, frames)

    monkeypatch.setattr(NaturalDecoder, "decode", counting)
    _, said = speak(model)
    assert decoded == [len(said.samples) // HOP + GROUP * MARGIN]


# --- Techniques -------------------------------------------------------------------------------------------------------
def test_an_accelerated_take_differs_by_the_technique_only(model: MegaSpeech) -> None:
    _, baseline = speak(model)
    computing = StrategyTable.computing(compatibility_of(model.info, setting()), LAYERS)
    used = UsedTechnique("ditreducio", NO_VALUES, computing.fingerprint)
    # Its noise is replayed: a table that skips nothing gives the very samples of the baseline.
    _, same = speak(model, of=setting().with_technique(used), tables=(computing,))
    np.testing.assert_allclose(same.samples, baseline.samples, atol=1e-5)

    of, table = skipping(model, setting(), SkipAction.BS)
    _, accelerated = speak(model, of=of, tables=(table,))
    assert accelerated.samples.shape == baseline.samples.shape
    assert not np.allclose(accelerated.trace.mel, baseline.trace.mel, atol=1e-3)
    operations = model.operations(scripted(model, SENTENCE, voice("", MINI), setting(), prepared=False))
    assert operations.branches == 3
    assert accelerated.measurements.ops_ratio == pytest.approx(table.ops_ratio(operations))
    both = operations.attention + operations.feed_forward
    skipped = (LAYERS - 1) * (STEPS // 2) * both * 2
    assert 1 - accelerated.measurements.ops_ratio == pytest.approx(skipped / (STEPS * operations.evaluation))


def test_calibration_follows_the_sampler_and_its_table_speaks(model: MegaSpeech) -> None:
    knobs = defaults(ditreducio.TECHNIQUE.knobs).replace(threshold=0.5)
    of = setting().with_technique(UsedTechnique("ditreducio", knobs))
    record = calibrate_model(model, (Utterance(SENTENCE, voice("", MINI)),), of, Recorder())
    assert (record.table.layers, record.table.steps) == (LAYERS, STEPS)
    assert record.table.skipped_share > 0
    assert set(record.table.compatibility.sampling) >= {"intelligibility", "similarity", "overshoot", "steps"}
    used = setting().with_technique(UsedTechnique("ditreducio", NO_VALUES, record.table.fingerprint))
    _, said = speak(model, of=used, tables=(record.table,))
    assert said.measurements.ops_ratio < 1


@pytest.mark.parametrize(
    ("name", "knobs"),
    [
        ("guidance_interval", {"steps": 2}),
        ("first_block", {"threshold": 5.0}),
        ("dual_block_cache", {"residual_diff_threshold": 1.0, "max_warmup_steps": 1}),
    ],
)
def test_other_techniques_work_on_three_branches(model: MegaSpeech, name: str, knobs: dict[str, object]) -> None:
    declared = technique(name)
    assert model.info.family in declared.families
    of = setting().with_technique(UsedTechnique(name, defaults(declared.knobs).replace(**knobs)))
    _, baseline = speak(model)
    _, accelerated = speak(model, of=of)
    assert accelerated.samples.shape == baseline.samples.shape
    assert not np.array_equal(accelerated.samples, baseline.samples)
    if name == "guidance_interval":  # One branch of three at half of the steps.
        assert accelerated.measurements.ops_ratio == pytest.approx(2 / 3, abs=0.01)
    else:
        assert accelerated.measurements.ops_ratio < 1


def test_cfg_free_weights_are_for_other_models(model: MegaSpeech) -> None:
    of = setting().with_technique(UsedTechnique("guidance_free", defaults(technique("guidance_free").knobs)))
    with pytest.raises(SettingError, match="guided differently from F5-TTS"):
        speak(model, of=of)


def test_a_table_of_other_guidance_is_refused(model: MegaSpeech) -> None:
    of, table = skipping(model, setting(), SkipAction.TS)
    other = replace(of, options=of.options.replace(similarity=3.0))
    with pytest.raises(ProfileError, match="similarity"):
        speak(model, of=other, tables=(table,))


def test_attention_of_all_three_branches_can_be_looked_at(model: MegaSpeech) -> None:
    seen = model.capture_attention(scripted(model, SENTENCE, voice("", MINI), setting()), LAYERS - 1, 2, Recorder())
    assert seen.maps.shape[0] == len(seen.similarities) == 3
    np.testing.assert_allclose(seen.maps.sum(axis=2), 1.0, atol=1e-3)
    assert 0 < seen.prompt_frames < seen.frames
    assert seen.frame_seconds == pytest.approx(GROUP_HOP / 24000)
    with pytest.raises(SettingError, match="no layer 9"):
        model.capture_attention(scripted(model, SENTENCE, voice("", MINI), setting()), 8, 0, Recorder())


# --- Voices and texts -------------------------------------------------------------------------------------------------
@pytest.fixture
def own(tmp_path: Path) -> Voice:
    """A recording of the user's own, quieter and at another rate."""
    samples, _ = soundfile.read(voices(MINI)[1].audio, dtype="float32")
    path = tmp_path / "own.wav"
    soundfile.write(path, 0.5 * samples, 22050, subtype="FLOAT")
    return Voice("own", "Own", str(path), voices(MINI)[1].transcript)


def test_any_recording_with_its_words_can_be_used(model: MegaSpeech, own: Voice) -> None:
    _, said = speak(model, who=own)
    assert np.abs(said.samples).max() > 0


def test_a_recording_without_its_words_is_refused(model: MegaSpeech, own: Voice) -> None:
    with pytest.raises(TextError, match="has no transcript; write down what the recording says"):
        speak(model, who=replace(own, transcript=" "))
    with pytest.raises(AudioError, match="check that the transcript has exactly the words"):
        speak(model, who=replace(own, transcript="No."))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Wie geht es dir heute, und was ist das für ein Buch?", "looks like German, but the bundled model speaks"),
        ("Как дела сегодня?", "written in Cyrillic script"),
    ],
)
def test_what_it_cannot_say_is_refused(model: MegaSpeech, text: str, words: str) -> None:
    with pytest.raises(TextError, match=words):
        speak(model, text)
