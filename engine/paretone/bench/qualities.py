"""Qualities that a speed-up must preserve: words, naturalness, variety, pitch range and similarity to the prompt.

A model in one step speaks an average reading: clear words and natural sound, but all seeds are alike. Passing therefore
also requires the spread over seeds and the pitch range. Limits are judged by intervals over the sentences
(:mod:`paretone.measure.estimates`): with too few sentences the verdict is undecided.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from paretone.bench import budget, bundled
from paretone.bench.budget import Budget, Turns
from paretone.bench.voices import Heard, Panel
from paretone.commands.arguments import at_least
from paretone.measure.estimates import FAILS, PASSES, UNDECIDED, Margins, margin
from paretone.measure.fidelity import log_mel_distance
from paretone.measure.pitch import diversity
from paretone.measure.timing import Interval
from paretone.measure.verdicts import Way
from paretone.models.base import SpeechModel, Voice
from paretone.speaking import synthesise
from paretone.wording import Share, percent, times

ERRORS, NATURALNESS, LIKENESS = "word error rate", "naturalness", "similarity"
SPREAD, RANGE = "spread over seeds", "pitch range"
MAY_LOSE = {ERRORS: 0.01, NATURALNESS: 0.15, LIKENESS: 0.02}
"""Allowed loss of word error rate, predicted naturalness and similarity to the prompt …"""
MUST_KEEP = {SPREAD: 0.85, RANGE: 0.9}
"""… and shares to keep of the spread over seeds and of the pitch range."""
LIMITS = (
    f"word error rate within {percent(MAY_LOSE[ERRORS])}, predicted naturalness within {MAY_LOSE[NATURALNESS]}, at "
    f"least {percent(MUST_KEEP[SPREAD])} of the spread of log f0 over seeds, {percent(MUST_KEEP[RANGE])} of the pitch "
    f"range, similarity to the prompt within {MAY_LOSE[LIKENESS]}, each with its whole 95 % interval over the sentences"
)
LEAST_SEEDS, MOST_SEEDS = 4, 16
"""Takes per sentence: fewer give an uncertain spread, more add little."""


@dataclass(frozen=True)
class Spoken:
    """One way of speaking, by sentence and seed."""

    heard: dict[tuple[int, int], Heard] = field(default_factory=dict)
    mels: dict[tuple[int, int], np.ndarray] = field(default_factory=dict)
    """Mels drawn by the model, (frames, bands)."""
    shares: list[float] = field(default_factory=list)
    """Ops ratio of every take."""

    @property
    def ops_ratio(self) -> float:
        return float(np.mean(self.shares))

    @property
    def sentences(self) -> int:
        return len({sentence for sentence, _ in self.heard})

    @property
    def figures(self) -> dict[str, float | None]:
        """Means over the sentences; ``None`` if measured in none of them."""
        columns = self.by_sentence()
        errors = columns.pop(ERRORS)
        means = {name: None if np.isnan(one).all() else float(np.nanmean(one)) for name, one in columns.items()}
        return {ERRORS: Share(errors.real.sum() / errors.imag.sum()), **means}

    def by_sentence(self, takes: Collection[tuple[int, int]] | None = None) -> dict[str, np.ndarray]:
        """Figures of every sentence of ``takes`` (default: all), (sentences,) each: means over its takes, and the
        spread over them; NaN if unknown. Word errors are complex: errors + 1j · words."""
        chosen = sorted(self.heard if takes is None else takes)
        groups = [
            [self.heard[take] for take in chosen if take[0] == at] for at in dict.fromkeys(at for at, _ in chosen)
        ]
        ranges = [[one.spread for one in group if not np.isnan(one.spread)] for group in groups]
        spreads = [diversity([one.curve for one in group]) for group in groups]
        return {
            ERRORS: np.array([sum(complex(one.edits, one.words) for one in group) for group in groups]),
            NATURALNESS: np.array([np.mean([one.naturalness for one in group]) for group in groups]),
            SPREAD: np.array([np.nan if one is None else one for one in spreads]),
            RANGE: np.array([np.mean(one) if one else np.nan for one in ranges]),
            LIKENESS: np.array([np.mean([one.own for one in group]) for group in groups]),
        }


def add_arguments(parser: argparse.ArgumentParser, sentences: int) -> None:
    """Add the options of benches with these judgements; default: ``sentences`` in five voices in turn."""
    bundled.add_listening_arguments(parser, sentences, least=2, spoken="in the voices in turn")
    parser.set_defaults(voices=5)
    parser.add_argument(
        "--seeds",
        type=at_least(LEAST_SEEDS),
        default=LEAST_SEEDS,
        help=f"takes of each sentence, {LEAST_SEEDS} at least, because few steps lose their spread; more, up to "
        f"{MOST_SEEDS}, while there is time and nothing but the spread is undecided (default: %(default)s)",
    )
    budget.add_arguments(parser)


def heard(arguments: argparse.Namespace, prepared_on: Sequence[str] = ()) -> tuple[list[str], list[Voice]]:
    """Sentences and voices for a panel, without sentences in ``prepared_on``."""
    return bundled.heard_sentences(arguments, prepared_on), bundled.heard_voices(arguments)


def spoken(ways: Sequence[Way], model: SpeechModel, panel: Panel, seeds: int, within: Budget) -> dict[str, Spoken]:
    """Speak the panel's sentences in all ways, the first being the baseline, and judge them: sentence by sentence while
    the budget lasts, each with this number of seeds from the setting's on. In the remaining time, ways with only the
    spread undecided get further seeds, together with the baseline."""
    found = {way.title: Spoken() for way in ways}
    turns = Turns(within, 2)
    for at in range(len(panel.texts)):
        if not turns.another():
            return found
        bundled.say(f"sentence {at + 1} of {len(panel.texts)}: {len(ways)} ways, {seeds} takes of each …")
        _speak(ways, model, panel, found, at, range(seeds))
    baseline, *others = ways
    turns = Turns(within, 0)
    for seed in range(seeds, MOST_SEEDS):
        verdicts = [(one, judged(found[one.title], found[baseline.title])) for one in others]
        short = [one for one, said in verdicts if said.verdict == UNDECIDED and said.by(UNDECIDED) == (SPREAD,)]
        if short:
            bundled.say(f"take {seed + 1} of each sentence: the spread of {len(short)} ways is undecided …")
        for at in range(len(panel.texts) if short else 0):
            if not turns.another():
                return found
            _speak([baseline, *short], model, panel, found, at, [seed])
    return found


def _speak(
    ways: Sequence[Way], model: SpeechModel, panel: Panel, found: dict[str, Spoken], at: int, seeds: Iterable[int]
) -> None:
    for way in ways:
        one = found[way.title]
        for seed in seeds:
            chosen = replace(way.setting, seed=way.setting.seed + seed)
            take = synthesise(model, panel.texts[at], panel.voice(at), chosen, way.artefacts)
            one.heard[at, seed] = panel.hear(at, way.title, take.samples, take.sample_rate, seed)
            one.mels[at, seed] = take.trace.drawn_mel
            one.shares.append(take.measurements.ops_ratio)


def listened(takes: Mapping[str, Spoken], panel: Panel) -> str:
    """Sentence on the number of judged sentences, for a report."""
    first = next(iter(takes.values()))
    speakers = min(first.sentences, len(panel.speakers))
    voices = f"in {speakers} voices in turn" if speakers > 1 else "in one voice"
    numbers = [len(one.heard) // first.sentences for one in takes.values()]
    return budget.heard(first.sentences, len(panel.texts), voices, min(numbers), max(numbers))


def judged(one: Spoken, baseline: Spoken) -> Margins:
    """Margins of ``one`` relative to the ``baseline``, by their common takes."""
    both = one.heard.keys() & baseline.heard.keys()
    mine, theirs = one.by_sentence(both), baseline.by_sentence(both)
    errors = margin(mine[ERRORS], theirs[ERRORS], MAY_LOSE[ERRORS], above=True, statistic="rate")
    losses = {name: margin(mine[name], theirs[name], -MAY_LOSE[name]) for name in (NATURALNESS, LIKENESS)}
    shares = {name: margin(mine[name], theirs[name], least, share=True) for name, least in MUST_KEEP.items()}
    return Margins({ERRORS: errors, **losses, **shares})


def compared(one: Spoken, baseline: Spoken) -> dict[str, object]:
    """Report columns on ``one`` relative to the ``baseline`` from the same noise."""
    found = judged(one, baseline)
    both = one.heard.keys() & baseline.heard.keys()
    pairs = [log_mel_distance(baseline.mels[take], one.mels[take]) for take in sorted(both)]
    whole, kept = np.nanmean(baseline.by_sentence(both)[SPREAD]), found.margins[SPREAD]
    shares = [Share(MUST_KEEP[SPREAD] + part / whole) for part in (kept.value, kept.low, kept.high)]
    return {
        "distance": float(np.mean(pairs)),
        "spread kept": [one if math.isfinite(one) else None for one in shares],
        "verdict": found.verdict,
        "by": ", ".join(found.by(found.verdict)) if found.verdict != PASSES else "",
        "more sentences": found.more,
    }


def headline(ways: Sequence[tuple[Interval, Margins]]) -> tuple[Interval, str]:
    """Speed-up of the fastest way that passes, else of the fastest undecided, else of the fastest; and its verdict."""
    speed, found = max(ways, key=lambda one: ((PASSES, UNDECIDED, FAILS)[::-1].index(one[1].verdict), one[0].median))
    return speed, found.words


def target(found: Interval, verdict: str, aim: float, where: str) -> str:
    """Sentence on whether ``aim`` is met; ``where``: by what."""
    if verdict == PASSES:
        return f"{times(found.median)} {'meets' if found.median >= aim else 'is below'} the target of {aim:g}× {where}."
    said = verdict if verdict.startswith(FAILS) else f"is {verdict}"
    return f"The target of {aim:g}× {where} is not met: {times(found.median)} {said}."
