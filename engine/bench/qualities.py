"""What a faster way of speaking must keep: words, naturalness, variety, pitch range and the likeness to the prompt.

A model in one step speaks the average reading: its words are clear and it sounds natural, but every seed sounds alike.
So what passes has to keep the spread over seeds and the pitch range as well.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from engine.bench import budget, bundled
from engine.bench.budget import Budget, Turns
from engine.bench.voices import Heard, Panel
from engine.commands.arguments import at_least
from engine.measure.fidelity import log_mel_distance
from engine.measure.melody import diversity
from engine.measure.verdicts import Way
from engine.models.base import SpeechModel, Voice, run_to_completion
from engine.models.silent_observer import SilentObserver
from engine.wording import percent

WORDS, NATURALNESS, SPREAD, RANGE, LIKENESS = 0.01, 0.15, 0.85, 0.9, 0.02
"""What may be lost: word error rate, predicted naturalness, similarity to the prompt; and the shares that are to be
kept of the spread over seeds and of the pitch range."""
LIMITS = (
    f"word error rate within {percent(WORDS)}, predicted naturalness within {NATURALNESS}, at least {percent(SPREAD)} "
    f"of the spread of log f0 over seeds, {percent(RANGE)} of the pitch range, "
    f"similarity to the prompt within {LIKENESS}"
)
"""The same in words."""
LEAST_SENTENCES = 2


@dataclass(frozen=True)
class Spoken:
    """One way of speaking, by sentence and seed."""

    heard: dict[tuple[int, int], Heard] = field(default_factory=dict)
    mels: dict[tuple[int, int], np.ndarray] = field(default_factory=dict)
    """What the model drew, (frames, bands)."""
    shares: list[float] = field(default_factory=list)
    """The ops ratio of every take."""

    @property
    def ops_ratio(self) -> float:
        """Mean over the takes."""
        return float(np.mean(self.shares))

    @property
    def sentences(self) -> int:
        """How many were spoken."""
        return len({sentence for sentence, _ in self.heard})

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
    budget.add_arguments(parser)


def heard(arguments: argparse.Namespace, prepared_on: Sequence[str] = ()) -> tuple[list[str], list[Voice]]:
    """Sentences and voices for a panel; none of the sentences that something was ``prepared_on``."""
    return bundled.heard_sentences(arguments, prepared_on), bundled.heard_voices(arguments)


def spoken(ways: Sequence[Way], model: SpeechModel, panel: Panel, seeds: int, within: Budget) -> dict[str, Spoken]:
    """Speak the panel's sentences in all ways and let the judges listen: sentence by sentence, as many as fit into
    what is left of the budget, each with that number of seeds from the setting's on."""
    found = {way.title: Spoken() for way in ways}
    turns = Turns(within, LEAST_SENTENCES)
    for at, text in enumerate(panel.texts):
        if not turns.another():
            break
        bundled.say(f"sentence {at + 1} of {len(panel.texts)}: {len(ways)} ways, {seeds} takes of each …")
        for way in ways:
            for seed in range(seeds):
                chosen, one = replace(way.setting, seed=way.setting.seed + seed), found[way.title]
                speech = model.synthesise(text, panel.voice(at), chosen, way.artefacts, SilentObserver())
                take = run_to_completion(speech)
                one.heard[at, seed] = panel.hear(at, way.title, take.samples, take.sample_rate, seed)
                one.mels[at, seed] = take.trace.drawn_mel
                one.shares.append(take.measurements.ops_ratio)
    return found


def listened(takes: Mapping[str, Spoken], panel: Panel, seeds: int) -> str:
    """How much the judges have heard, as a sentence for a report."""
    count = next(iter(takes.values())).sentences
    speakers = min(count, len(panel.speakers))
    voices = f"in {speakers} voices in turn" if speakers > 1 else "in one voice"
    return budget.heard(count, len(panel.texts), voices, seeds)


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
