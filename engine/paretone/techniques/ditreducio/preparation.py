"""Preparing DiTReducio with a loaded model: sentences in, a calibration out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from paretone.models.base import Script, SpeechModel, Utterance, flow_model
from paretone.observer import Observer
from paretone.sampling.calibration_target import CalibrationTarget
from paretone.setting.knobs import Values, checked
from paretone.setting.setting import Setting
from paretone.techniques import ditreducio, resolve
from paretone.techniques.ditreducio.calibration import calibrate, check_together
from paretone.techniques.ditreducio.end_calibration import calibrate_end
from paretone.techniques.ditreducio.record import CalibrationRecord, Sentence


def calibrate_model(
    model: SpeechModel,
    utterances: Sequence[Utterance],
    setting: Setting,
    observer: Observer,
    combine: str = "worst",
) -> CalibrationRecord:
    """Calibrate on the first passage of every utterance, all of them together, under the knobs in ``setting``.

    ``combine`` is one of :data:`paretone.techniques.ditreducio.COMBINATIONS`; a calibration for the end of the
    trajectory has the sentences' mean in any case. Raises :class:`SettingError` if ``setting`` rules DiTReducio out,
    and :class:`paretone.errors.Cancelled`."""
    return calibrate_scripts(model, scripts_of(model, utterances, setting), setting, observer, combine)


def calibrate_scripts(
    model: SpeechModel,
    scripts: Sequence[Script],
    setting: Setting,
    observer: Observer,
    combine: str = "worst",
) -> CalibrationRecord:
    """The same for utterances that are read already."""
    knobs = knobs_of(setting)
    targets, sentences = prepared(model, scripts)
    with torch.inference_mode():
        if knobs["objective"] == ditreducio.END:
            check_together(targets)
            counts = flow_model(model, "Calibrating").operations(scripts[0])
            record = calibrate_end(targets, counts, knobs, observer)
        else:
            record = calibrate(targets, knobs, observer, combine)
    return replace(record, sentences=sentences, seed=setting.seed)


def knobs_of(setting: Setting) -> Values:
    """DiTReducio's knobs under ``setting``, at their defaults where it says nothing. Raises :class:`SettingError`."""
    ditreducio.require_euler(setting.options)
    used = setting.technique(ditreducio.TECHNIQUE.name)
    return checked(ditreducio.TECHNIQUE.knobs, used.knobs if used else {}, ditreducio.TECHNIQUE.title)


def scripts_of(model: SpeechModel, utterances: Sequence[Utterance], setting: Setting) -> list[Script]:
    """The ``utterances``, read, to be calibrated on under ``setting``. Raises :class:`SettingError` if that rules
    DiTReducio out."""
    knobs_of(setting)
    plan = resolve(model.info, setting, prepared=False)
    return [model.script(one.text, one.voice, plan) for one in utterances]


def prepared(model: SpeechModel, scripts: Sequence[Script]) -> tuple[list[CalibrationTarget], tuple[Sentence, ...]]:
    """The first passage of each: ready to be worked on, and for the record."""
    flow, targets, sentences = flow_model(model, "Calibrating"), [], []
    for one in scripts:
        target = flow.calibration_target(one)
        frames = target.noise.shape[1] - target.prompt_frames
        targets.append(target)
        sentences.append(Sentence(one.passages[0].text, one.voice.id, frames, target.prompt_frames))
    return targets, tuple(sentences)
