"""Common parts of benches of speech language models: options, and timing of decoding.

Sampled speech varies in length, so decoding variants are compared by seconds per token: within rounds of one sentence
and one seed, in a changing order, the baseline twice (A/A). Only the backbone is timed, with the prompt.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import median

from paretone.bench import budget, bundled
from paretone.bench.budget import Turns, heard_in_turns
from paretone.measure.timing import Interval, interval, ratios, running_order, stopwatch
from paretone.measure.verdicts import ORIGINAL, VOCODER_ONLY, VoiceVerdict, Way, counted_errors
from paretone.models.base import Voice
from paretone.models.catalogue import entry, harvard_sentences
from paretone.models.families.language import LanguageSpeech
from paretone.models.loading import load_vocoder
from paretone.sampling.autoregressive import Cycle
from paretone.setting.setting import Artefact, Setting
from paretone.speaking import make_ready, scripted

AGAIN = "autoregressive, again (A/A)"
WORD_ERRORS = 0.02
"""Allowed increase of the word error rate over the baseline's."""


def add_arguments(parser: argparse.ArgumentParser, rounds: int = 15) -> None:
    bundled.add_family_arguments(parser, "lm-mini", rounds)
    bundled.add_listening_arguments(parser, sentences=30)
    budget.add_arguments(parser)


loaded: Callable[[argparse.Namespace], LanguageSpeech] = partial(
    bundled.loaded_as, LanguageSpeech, "a speech language model"
)


def baseline(arguments: argparse.Namespace) -> Setting:
    """Plain decoding with the model's default sampler."""
    return Setting(arguments.model, entry(arguments.model).options_with(), seed=arguments.seed)


@dataclass
class Decoded:
    """Times and results of one decoding variant, over all rounds."""

    seconds_per_token: list[float] = field(default_factory=list)
    cycles: list[Cycle] = field(default_factory=list)
    token_rate: float = 0.0

    @property
    def tokens(self) -> int:
        return sum(len(one.tokens) for one in self.cycles)

    @property
    def tokens_per_pass(self) -> float:
        """E: tokens per cycle."""
        return self.tokens / len(self.cycles)

    @property
    def acceptance(self) -> float | None:
        """Accepted share of verified tokens; ``None`` without drafts."""
        checked = sum(len(one.acceptance) for one in self.cycles)
        return sum(one.accepted for one in self.cycles) / checked if checked else None

    @property
    def draft_length(self) -> float:
        """K: drafted tokens per cycle."""
        return sum(len(one.drafted) for one in self.cycles) / len(self.cycles)

    @property
    def draft_seconds(self) -> float:
        """Seconds of one draft pass, median over cycles."""
        return median(one.draft_seconds / len(one.drafted) for one in self.cycles if one.drafted)

    @property
    def target_seconds(self) -> float:
        """Seconds of one target pass, median over cycles."""
        return median(one.target_seconds for one in self.cycles)

    @property
    def real_time_factor(self) -> float:
        """Backbone seconds per second of speech, median over rounds."""
        return median(self.seconds_per_token) * self.token_rate


@dataclass(frozen=True)
class DecodingTimes:
    decoded: Mapping[str, Decoded]
    speed_up: Mapping[str, Interval]
    """The first's seconds per token over those of every other variant; :data:`AGAIN` is the first once more."""


def timed_decoding(
    model: LanguageSpeech,
    ways: Mapping[str, Setting],
    voice: Voice,
    rounds: int,
    say: Callable[[str], None],
    artefacts: Sequence[Artefact] = (),
) -> DecodingTimes:
    """Time ``ways`` in interleaved rounds, each on the next Harvard sentence with a new seed; ``artefacts``: theirs."""
    first = next(iter(ways))
    every = {**ways, AGAIN: ways[first]}
    for setting in every.values():
        make_ready(model, setting, voice)
    decoded = {name: Decoded(token_rate=model.token_rate) for name in every}
    sentences, device = harvard_sentences(), model.own.tokens.device.type
    for number in range(-1, rounds):  # The first is for warm-up.
        text = sentences[number % len(sentences)]
        for name in running_order(tuple(every), number):
            setting = replace(every[name], seed=every[name].seed + number + 1)
            decodings = list(model.decodings(scripted(model, text, voice, setting, artefacts)))
            with stopwatch(device) as watch:
                cycles = [cycle for _, decoding in decodings for cycle in decoding]
            if number >= 0:
                found = decoded[name]
                found.cycles += cycles
                tokens = sum(len(cycle.tokens) for cycle in cycles)
                found.seconds_per_token.append(watch.seconds / max(tokens, 1))
        if number >= 0:
            say(f"round {number + 1} of {rounds}")
    base = decoded[first].seconds_per_token
    others = {name: found.seconds_per_token for name, found in decoded.items() if name != first}
    return DecodingTimes(decoded, {name: interval(ratios(base, found)) for name, found in others.items()})


def judged(
    model: LanguageSpeech,
    ways: Mapping[str, Setting],
    arguments: argparse.Namespace,
    turns: Turns,
    artefacts: Sequence[Artefact] = (),
    prepared_on: Collection[str] = (),
) -> dict[str, list[VoiceVerdict]]:
    """Word errors of ``ways`` per voice, and of the original speech, on as many sentences as ``turns`` allow, without
    those in ``prepared_on``; empty if no sentences are requested."""
    sentences = bundled.heard_sentences(arguments, prepared_on)
    if not sentences:
        return {}
    # The judge has no vocoder copies for released models: their floor is the original speech.
    model_entry = entry(arguments.model)
    vocoder = load_vocoder(model_entry.vocoder_folder) if model_entry.bundled else None
    spoken = [Way(name, setting, tuple(artefacts)) for name, setting in ways.items()]
    return heard_in_turns(sentences, bundled.heard_voices(arguments), vocoder, model, spoken, turns, bundled.say)


def listened(said: Mapping[str, Sequence[VoiceVerdict]], arguments: argparse.Namespace) -> str:
    """Sentence on the number of judged sentences, for a definition; ``""`` if none."""
    if not said:
        return ""
    one = next(iter(said.values()))
    of = len(bundled.heard_sentences(arguments))
    return f" {budget.heard(len(one[0].errors.words), of, f'in each of {len(one)} voices')}"


def clean(said: Mapping[str, Sequence[VoiceVerdict]], column: str) -> list[dict[str, object]]:
    """Rows of the original speech and of its copy by the vocoder, named in ``column``."""
    return [{column: name, **heard(said[name])} for name in (ORIGINAL, VOCODER_ONLY) if name in said]


def heard_beside(said: Mapping[str, Sequence[VoiceVerdict]], name: str, plain: str) -> dict[str, object]:
    """Columns of the way ``name``, if it was heard, compared with ``plain``."""
    if name not in said:
        return {}
    found = heard(said[name])
    near = plain in said and found["word error rate"] - heard(said[plain])["word error rate"] <= WORD_ERRORS
    return {**found, "within 2 points": "yes" if near else "no"}


def heard(said: Sequence[VoiceVerdict]) -> dict[str, float]:
    """Word errors over all voices, and the number of runaway utterances."""
    traces = [synthesis.trace.decoding for one in said for synthesis in one.syntheses]
    row = counted_errors(said)
    if traces:
        row["runaways"] = sum(any(trace.run_away) for trace in traces if trace is not None)
    return row
