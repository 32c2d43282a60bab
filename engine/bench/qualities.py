"""What a faster way of speaking must keep: words, naturalness, variety, pitch range and the likeness to the prompt.

A model in one step speaks the average reading: its words are clear and it sounds natural, but every seed sounds alike.
So what passes has to keep the spread over seeds and the pitch range as well.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from engine.bench import bundled
from engine.bench.voices import Heard, Panel
from engine.commands.arguments import at_least
from engine.measure.fidelity import log_mel_distance
from engine.measure.melody import diversity
from engine.measure.verdicts import Way
from engine.models.base import SpeechModel, Voice, run_to_completion
from engine.models.silent_observer import SilentObserver

WORDS, NATURALNESS, SPREAD, RANGE, LIKENESS = 0.01, 0.15, 0.85, 0.9, 0.02
"""What may be lost: word error rate, predicted naturalness, similarity to the prompt; and the shares that are to be
kept of the spread over seeds and of the pitch range."""
LIMITS = (
    f"word error rate within {WORDS:.0%}, predicted naturalness within {NATURALNESS}, at least {SPREAD:.0%} of the "
    f"spread of log f0 over seeds, {RANGE:.0%} of the pitch range, similarity to the prompt within {LIKENESS}"
)
"""The same in words."""


@dataclass(frozen=True)
class Spoken:
    """One way of speaking, by sentence and seed."""

    heard: Mapping[tuple[int, int], Heard]
    mels: Mapping[tuple[int, int], np.ndarray]
    """What the model drew, (frames, bands)."""
    ops_ratio: float = 1.0
    """Mean over the takes."""

    @property
    def figures(self) -> dict[str, float | None]:
        """Means over the takes; the spread is one over the seeds of each sentence, ``None`` with one seed."""
        takes = list(self.heard.values())
        sentences = sorted({sentence for sentence, _ in self.heard})
        curves = [[one.curve for (other, _), one in self.heard.items() if other == at] for at in sentences]
        spreads = [found for some in curves if (found := diversity(some)) is not None]
        return {
            "word error rate": sum(one.edits for one in takes) / sum(one.words for one in takes),
            "naturalness": float(np.mean([one.naturalness for one in takes])),
            "spread over seeds": float(np.mean(spreads)) if spreads else None,
            "pitch range": float(np.nanmean([one.spread for one in takes])),
            "similarity": float(np.mean([one.own for one in takes])),
        }


def add_arguments(parser: argparse.ArgumentParser, sentences: int, seeds: int) -> None:
    """The options of benches that judge by this; defaults are ``sentences`` in five voices in turn."""
    bundled.add_listening_arguments(parser, sentences, least=2, spoken="in the voices in turn")
    parser.set_defaults(voices=5)
    parser.add_argument(
        "--seeds",
        type=at_least(2),
        default=seeds,
        help="takes of each sentence, two at least, because few steps lose their spread (default: %(default)s)",
    )


def heard(arguments: argparse.Namespace) -> tuple[list[str], list[Voice]]:
    """Sentences and voices for a panel."""
    return bundled.heard_sentences(arguments), bundled.heard_voices(arguments)


def spoken(way: Way, model: SpeechModel, panel: Panel, seeds: int) -> Spoken:
    """Speak the panel's sentences, each with that number of seeds from the setting's on, and let the judges listen."""
    bundled.say(f"{way.title}: {len(panel.texts)} sentences, {seeds} takes of each …")
    takes, mels, shares = {}, {}, []
    for at, text in enumerate(panel.texts):
        for seed in range(seeds):
            chosen = replace(way.setting, seed=way.setting.seed + seed)
            take = run_to_completion(model.synthesise(text, panel.voice(at), chosen, way.artefacts, SilentObserver()))
            takes[at, seed] = panel.hear(at, way.title, take.samples, take.sample_rate, seed)
            mels[at, seed] = take.trace.drawn_mel
            shares.append(take.measurements.ops_ratio)
    return Spoken(takes, mels, float(np.mean(shares)))


def compared(one: Spoken, baseline: Spoken) -> dict[str, object]:
    """Columns of a report on ``one`` against the ``baseline`` from the same noise."""
    failed = failing(one.figures, baseline.figures)
    pairs = [log_mel_distance(baseline.mels[take], one.mels[take]) for take in one.mels]
    return {"distance": float(np.mean(pairs)), "passes": not failed, "fails by": ", ".join(failed)}


def failing(figures: Mapping[str, float | None], baseline: Mapping[str, float | None]) -> tuple[str, ...]:
    """The names of the figures that are worse than those of the ``baseline`` by more than the limits allow."""
    floors = {
        "naturalness": _of(baseline, "naturalness") - NATURALNESS,
        "spread over seeds": SPREAD * _of(baseline, "spread over seeds"),
        "pitch range": RANGE * _of(baseline, "pitch range"),
        "similarity": _of(baseline, "similarity") - LIKENESS,
    }
    failed = [name for name, floor in floors.items() if not _of(figures, name) >= floor]
    if not _of(figures, "word error rate") <= _of(baseline, "word error rate") + WORDS:
        failed.insert(0, "word error rate")
    return tuple(failed)


def _of(figures: Mapping[str, float | None], name: str) -> float:
    """A figure; NaN, with which nothing passes, if it was not measured."""
    value = figures[name]
    return float("nan") if value is None else value
