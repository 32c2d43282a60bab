"""Preparing DiTReducio with a loaded model: sentences in, a calibration out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from paretone.models.base import SpeechModel, Utterance, flow_model
from paretone.sampling.calibration_target import CalibrationTarget
from paretone.setting.knobs import Values, checked
from paretone.setting.setting import Setting
from paretone.techniques import ditreducio
from paretone.techniques.ditreducio.calibration import calibrate, check_together
from paretone.techniques.ditreducio.end_calibration import calibrate_end
from paretone.techniques.ditreducio.observer import CalibrationObserver
from paretone.techniques.ditreducio.record import CalibrationRecord, Sentence


def calibrate_model(
    model: SpeechModel,
    utterances: Sequence[Utterance],
    setting: Setting,
    observer: CalibrationObserver,
    combine: str = "worst",
) -> CalibrationRecord:
    """Calibrate on the first passage of every utterance, all of them together, under the knobs in ``setting``.

    ``combine`` is one of :data:`paretone.techniques.ditreducio.COMBINATIONS`; a calibration for the end of the
    trajectory has the sentences' mean in any case. Raises :class:`SettingError` if ``setting`` rules DiTReducio out,
    and :class:`paretone.errors.Cancelled`."""
    knobs = knobs_of(setting)
    targets, sentences = prepared(model, utterances, setting)
    with torch.inference_mode():
        if knobs["objective"] == ditreducio.END:
            check_together(targets)
            first = utterances[0]
            counts = flow_model(model, "Calibrating").operations(first.text, first.voice, setting)
            record = calibrate_end(targets, counts, knobs, observer)
        else:
            record = calibrate(targets, knobs, observer, combine)
    return replace(record, sentences=sentences, seed=setting.seed)


def knobs_of(setting: Setting) -> Values:
    """DiTReducio's knobs under ``setting``, at their defaults where it says nothing. Raises :class:`SettingError`."""
    ditreducio.require_euler(setting.options)
    used = setting.technique(ditreducio.TECHNIQUE.name)
    return checked(ditreducio.TECHNIQUE.knobs, used.knobs if used else {}, ditreducio.TECHNIQUE.title)


def prepared(
    model: SpeechModel, utterances: Sequence[Utterance], setting: Setting
) -> tuple[list[CalibrationTarget], tuple[Sentence, ...]]:
    """The first passage of every utterance: ready to be worked on, and for the record."""
    targets, sentences = [], []
    for one in utterances:
        target, spoken = flow_model(model, "Calibrating").calibration_target(one.text, one.voice, setting)
        frames = target.noise.shape[1] - target.prompt_frames
        targets.append(target)
        sentences.append(Sentence(spoken, one.voice.id, frames, target.prompt_frames))
    return targets, tuple(sentences)
