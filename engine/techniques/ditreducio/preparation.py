"""Preparing DiTReducio with a loaded model: sentences in, a calibration out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from engine.errors import SettingError
from engine.models.base import CalibrationObserver, SpeechModel, Utterance
from engine.setting.knobs import Values, checked
from engine.setting.setting import Setting
from engine.techniques import ditreducio
from engine.techniques.ditreducio.calibration import calibrate
from engine.techniques.ditreducio.record import CalibrationRecord, Sentence
from engine.techniques.ditreducio.subject import Subject


def calibrate_model(
    model: SpeechModel,
    utterances: Sequence[Utterance],
    setting: Setting,
    observer: CalibrationObserver,
    combine: str = "worst",
) -> CalibrationRecord:
    """Calibrate on the first passage of every utterance, all of them together, under the knobs in ``setting``.

    ``combine`` is one of :data:`engine.techniques.ditreducio.COMBINATIONS`. Raises :class:`SettingError` where
    ``setting`` rules DiTReducio out, and :class:`engine.errors.Cancelled`.
    """
    knobs = knobs_of(setting)
    subjects, sentences = prepared(model, utterances, setting)
    with torch.inference_mode():
        record = calibrate(subjects, knobs, observer, combine)
    return replace(record, sentences=sentences, seed=setting.seed)


def knobs_of(setting: Setting) -> Values:
    """DiTReducio's knobs under ``setting``, at their defaults where it says nothing. Raises :class:`SettingError`."""
    reason = ditreducio.conflict(setting)
    if reason:
        raise SettingError(reason)
    engaged = setting.engaged(ditreducio.TECHNIQUE.name)
    return checked(ditreducio.TECHNIQUE.knobs, engaged.knobs if engaged else {}, ditreducio.TECHNIQUE.title)


def prepared(
    model: SpeechModel, utterances: Sequence[Utterance], setting: Setting
) -> tuple[list[Subject], tuple[Sentence, ...]]:
    """The first passage of every utterance: ready to be worked on, and for the record."""
    subjects, sentences = [], []
    for one in utterances:
        subject, spoken = model.subject(one.text, one.voice, setting)
        frames = subject.noise.shape[1] - subject.prompt_frames
        subjects.append(subject)
        sentences.append(Sentence(spoken, one.voice.id, frames, subject.prompt_frames))
    return subjects, tuple(sentences)
