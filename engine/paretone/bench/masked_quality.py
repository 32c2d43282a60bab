"""Quality cost of techniques for a masked model: words, timbre and codes, against plain synthesis.

Timbre is measured against the original speech of the same sentence, in the voice itself and, as a ruler, in the other
shipped voices (:mod:`paretone.measure.timbre`); learned judges are asked as far as they are installed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from paretone.audio.spectrogram import drawn_or_heard
from paretone.bench import bundled
from paretone.measure.timbre import timbre_distance
from paretone.measure.verdicts import ORIGINAL, VoiceVerdict, Way, judged_means, verdicts
from paretone.models.base import Synthesis, Voice
from paretone.models.families.masked import MaskedSpeech
from paretone.setting.setting import Setting


@dataclass
class _Judged:
    """One way of speaking, all voices and sentences."""

    edits: int = 0
    words: int = 0
    mels: dict[str, Sequence[np.ndarray]] = field(default_factory=dict)
    """By voice, one of each sentence."""
    codes: dict[str, list[np.ndarray]] = field(default_factory=dict)
    """The same; passages one after the other."""
    verdicts: list[VoiceVerdict] = field(default_factory=list)


@dataclass(frozen=True)
class JudgedSpeech:
    """What was heard of one way of speaking, or of the original speech."""

    word_error_rate: float
    columns: Mapping[str, object]
    """Columns of a report, the word error rate among them."""


def judged(
    model: MaskedSpeech, ways: Mapping[str, Setting], sentences: Sequence[str], voices: Sequence[Voice]
) -> dict[str, JudgedSpeech]:
    """What was heard of every one of ``ways``, of which the first is what the others are compared with, and of the
    original speech. The judge listens to ``sentences`` in each of ``voices``. Nothing if there are none.

    Raises :class:`paretone.errors.PlainError` if hibari-tts, pocketsphinx or jiwer is missing.
    """
    if not sentences:
        return {}
    found: dict[str, _Judged] = {}
    spoken = [Way(title, setting) for title, setting in ways.items()]
    for verdict in verdicts(sentences, voices, None, model, spoken, bundled.say):
        one = found.setdefault(verdict.speech, _Judged())
        one.verdicts.append(verdict)
        one.edits += sum(verdict.errors.edits)
        one.words += sum(verdict.errors.words)
        one.mels[verdict.voice] = verdict.mels or [_mel(take) for take in verdict.syntheses]
        one.codes[verdict.voice] = [_codes(take) for take in verdict.syntheses]
    plain = found[next(iter(ways))]
    return {
        title: JudgedSpeech(one.edits / one.words, _columns(one, found[ORIGINAL], plain))
        for title, one in found.items()
    }


def _columns(one: _Judged, original: _Judged, plain: _Judged) -> dict[str, object]:
    columns: dict[str, object] = {"word error rate": one.edits / one.words, "errors": f"{one.edits} of {one.words}"}
    columns |= judged_means(one.verdicts)
    if one is not original:
        columns["timbre to the voice (dB)"] = _apart(one, original, same=True)
        columns["timbre to the plain run (dB)"] = _apart(one, plain, same=True)
        equal = [
            mine == theirs
            for voice in plain.codes
            for mine, theirs in zip(one.codes[voice], plain.codes[voice], strict=True)
        ]
        columns["codes equal"] = float(np.mean(np.concatenate([cells.flatten() for cells in equal])))
        columns["first codes equal"] = float(np.mean(np.concatenate([cells[0] for cells in equal])))
    columns["timbre to other voices (dB)"] = _apart(one, original, same=False)
    return columns


def _apart(one: _Judged, other: _Judged, *, same: bool) -> float:
    """Mean timbre distance over all sentences, of every voice to the same or to each other one."""
    pairs = [(mine, theirs) for mine in one.mels for theirs in other.mels if (mine == theirs) == same]
    distances = [
        timbre_distance(*mels)
        for mine, theirs in pairs
        for mels in zip(one.mels[mine], other.mels[theirs], strict=True)
    ]
    return float(np.mean(distances))


def _mel(take: Synthesis) -> np.ndarray:
    return drawn_or_heard(take.trace.mel, take.samples, take.sample_rate)


def _codes(take: Synthesis) -> np.ndarray:
    trace = take.trace.demasking
    if trace is None:
        raise ValueError("The model fills in no canvas.")
    return np.concatenate([one.codes for one in trace.passages], axis=1)
