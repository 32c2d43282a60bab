"""Word errors, naturalness, voice similarity and pitch range of the test sentences: spoken by the voice's original
speaker, copied by the vocoder, and spoken by a model.

The first two are the judges' floors: systems cannot be distinguished beyond them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from paretone.audio.mel import MelFrontEnd
from paretone.measure.evaluation.judging import JUDGED_FIGURES, judged_figures
from paretone.measure.fidelity import log_mel_distance
from paretone.measure.intelligibility import Judge, WordErrors
from paretone.measure.metrics import estimate, metric
from paretone.models.base import SpeechModel, Synthesis, Voice
from paretone.models.f5.config import HOP, SAMPLE_RATE
from paretone.models.loading import Vocoder
from paretone.models.voices import shown_name
from paretone.setting.setting import Artefact, Setting
from paretone.speaking import synthesise
from paretone.training.natural_teacher import original_speech
from paretone.wording import Share

ORIGINAL = "original speech"
VOCODER_ONLY = "vocoder only"
TOKENIZER_ONLY = "tokenizer only"


@dataclass(frozen=True)
class Way:
    title: str
    setting: Setting
    artefacts: tuple[Artefact, ...] = ()


@dataclass(frozen=True)
class VoiceVerdict:
    """The judges' results for one way of speaking in one voice."""

    voice: str
    speech: str
    """``ORIGINAL``, ``VOCODER_ONLY``, ``TOKENIZER_ONLY`` or the title of a :class:`Way`."""
    errors: WordErrors
    syntheses: tuple[Synthesis, ...] = field(default=(), repr=False)
    """The judged syntheses, one per sentence, if the model spoke."""
    mels: tuple[np.ndarray, ...] = field(default=(), repr=False)
    """Log mel (frames, bands) of each sentence of the original speech."""
    figures: tuple[Mapping[str, float], ...] = ()
    """Figures of each recording by installed judges other than of words: see
    :func:`paretone.measure.evaluation.judging.judged_figures`."""


def each_distance(reference: Sequence[VoiceVerdict], other: Sequence[VoiceVerdict]) -> np.ndarray:
    """Log-mel distance of every take from its counterpart in ``reference``."""
    pairs = (
        (one, two)
        for first, second in zip(reference, other, strict=True)
        for one, two in zip(first.syntheses, second.syntheses, strict=True)
    )
    return np.array([log_mel_distance(one.trace.drawn_mel, two.trace.drawn_mel) for one, two in pairs])


def counted_errors(heard: Sequence[VoiceVerdict]) -> dict[str, float]:
    """Word errors and :func:`judged_means` over all voices, as columns of a report."""
    edits = sum(sum(one.errors.edits) for one in heard)
    words = sum(sum(one.errors.words) for one in heard)
    return {"word error rate": Share(edits / words), "errors": edits, "words": words, **judged_means(heard)}


def judged_means(heard: Sequence[VoiceVerdict]) -> dict[str, float]:
    """Means of the other judges' figures over all voices, as columns of a report, each followed by half of its 95 %
    bootstrap interval over the sentences. A figure is left out if a sentence has it in no voice."""
    found: dict[str, float] = {}
    for name in JUDGED_FIGURES:
        columns = [[one.get(name, np.nan) for one in verdict.figures] for verdict in heard]
        if not columns or not columns[0]:
            continue
        values = np.array(columns)
        there = ~np.isnan(values)
        if not there.any(0).all():
            continue
        mean = estimate(name, (np.where(there, values, 0.0).sum(0) / there.sum(0)).tolist())
        title = metric(name).title.lower()
        found |= {title: mean.value, f"{title} ±": (mean.high - mean.low) / 2}
    return found


def verdicts(
    sentences: Sequence[str],
    voices: Sequence[Voice],
    vocoder: Vocoder | None,
    model: SpeechModel | None = None,
    ways: Sequence[Way] = (),
    say: Callable[[str], None] = lambda line: None,
    tokenizer: Callable[[np.ndarray, Voice], np.ndarray] | None = None,
    judge: Judge | None = None,
) -> Iterator[VoiceVerdict]:
    """Yield verdicts voice by voice: the original, its copies by ``vocoder`` and ``tokenizer`` if given, then ``model``
    in all its ``ways``. ``voices`` are bundled ones; ``say`` receives status lines. ``judge``: a judge of words that
    knows more than these sentences.

    Raises :class:`paretone.errors.PlainError` if the voices' speaker, pocketsphinx or jiwer is missing.
    """
    words = judge or Judge(sentences)

    def heard(speech: str, recordings: Sequence[tuple[np.ndarray, int]], **more: Any) -> VoiceVerdict:
        figures = tuple(judged_figures(samples, rate, voice.audio) for samples, rate in recordings)
        return VoiceVerdict(voice.id, speech, words.word_errors(sentences, recordings), figures=figures, **more)

    def at_usual_rate(recordings: Sequence[np.ndarray]) -> list[tuple[np.ndarray, int]]:
        return [(np.asarray(samples, np.float32), SAMPLE_RATE) for samples in recordings]

    for voice in voices:
        say(f"{shown_name(voice.id)}: {ORIGINAL}{' and its copy' if vocoder else ''} …")
        originals = [original_speech(sentence, voice) for sentence in sentences]
        yield heard(ORIGINAL, at_usual_rate(originals), mels=tuple(map(_mel, originals)))
        if vocoder is not None:
            yield heard(VOCODER_ONLY, at_usual_rate([copied(vocoder, samples) for samples in originals]))
        if tokenizer is not None:
            copies = [tokenizer(np.asarray(samples, np.float32), voice) for samples in originals]
            yield heard(TOKENIZER_ONLY, at_usual_rate(copies))
        if model is None:
            continue
        for way in ways:
            say(f"{shown_name(voice.id)}: {way.title}, {len(sentences)} sentences …")
            spoken = tuple(synthesise(model, sentence, voice, way.setting, way.artefacts) for sentence in sentences)
            yield heard(way.title, [(one.samples, one.sample_rate) for one in spoken], syntheses=spoken)


@torch.inference_mode()
def copied(vocoder: Vocoder, samples: np.ndarray) -> np.ndarray:
    """Copy of ``samples`` (n,) at 24 kHz by ``vocoder`` through their mel: (m,) float32."""
    return vocoder.decode(MelFrontEnd()(torch.from_numpy(np.asarray(samples, np.float32))).transpose(1, 2))[0].numpy()


def _mel(samples: np.ndarray) -> np.ndarray:
    """Log mel (frames, bands) of the frames filled by ``samples``."""
    return MelFrontEnd()(torch.from_numpy(samples))[0, : len(samples) // HOP].numpy()
