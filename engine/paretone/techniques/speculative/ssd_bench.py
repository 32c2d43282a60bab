"""Speech speculative decoding against plain decoding: speed-up, and equality of the tokens.

The baseline is the engine's own optimised loop on the same weights. At tolerance 0 the speech has the target's own
distribution, which greedy decoding must show token by token; at the requested tolerance it may drift, which the judge
measures. The speed-up is also predicted from acceptance and times of passes: E / (1 + K·c), and E / (v + K·c) with v,
the cost of a pass over several tokens relative to one over a single token.

A default run ends within five minutes on two cores and hears as many sentences as fit into that. For figures to quote,
give it time for all of them: ``--minutes 15``, and with ``--groups`` ``--minutes 45``.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np

from paretone.bench import bundled
from paretone.bench import language as common
from paretone.bench.budget import Budget, Turns
from paretone.bench.bundled import used
from paretone.bench.language import (
    AGAIN,
    DecodingTimes,
    baseline,
    clean,
    heard_beside,
    judged,
    listened,
    loaded,
    timed_decoding,
)
from paretone.bench.report import Report
from paretone.commands.arguments import at_least, finite, positive
from paretone.errors import PlainError
from paretone.measure.pitch import diversity, log_pitch
from paretone.measure.verdicts import VoiceVerdict
from paretone.models.base import SpeechModel, TrainedWeights, Voice
from paretone.models.catalogue import harvard_sentences
from paretone.models.families.language import LanguageSpeech
from paretone.observer import Observer
from paretone.sampling.autoregressive import decode
from paretone.sampling.draft_length import ENOUGH, AdaptiveLength, predicted_speed_up
from paretone.sampling.speculative import speculation
from paretone.sampling.tokens import Greedy, Uniforms
from paretone.setting.knobs import Values
from paretone.setting.setting import Artefact, Setting, UsedTechnique
from paretone.speaking import scripted, synthesise
from paretone.studies.hooks import preparer
from paretone.techniques import knobs_of, speculative
from paretone.techniques.speculative import DRAFT_BY_STUDENT, random_bench
from paretone.techniques.speculative.decoding import rule_of
from paretone.wording import Share

GROUPS = {
    "SSD, groups of up to 8": used("token_groups"),
    "SSD, groups of up to 4": used("token_groups", largest=4),
    "SSD, groups of up to 16": used("token_groups", cosine=0.4, largest=16),
    "SSD, groups of up to 8, as published": used("token_groups", within=False),
}
"""Acceptance in groups, with different least similarities and sizes; the first is the headline. The second accepts
about as many drafted tokens as a tolerance of 0.2, the third as one of 0.4."""
TOLERANCES = (0.0, 0.2, 0.4)
GROUPS_DEFINITION = (
    "Backbone CPU seconds per token of the engine's optimised autoregressive loop over those of speculative decoding "
    "with drafts accepted as in the first of the other ways, prompt reading included; median of paired, interleaved "
    "rounds on different sentences."
)


@dataclass(frozen=True)
class Accepting:
    """Ways of acceptance by title, with their artefacts."""

    ways: Mapping[str, Setting]
    artefacts: tuple[Artefact, ...]
    headline: str


def tolerance_title(tolerance: float) -> str:
    return f"SSD, β = {tolerance:g}"


def accepting(model: SpeechModel, plain: Setting, knobs: Values) -> Accepting:
    """Token by token at every tolerance, guarded and as published, and :data:`GROUPS` at β = 0; ``knobs`` are the
    drafting technique's. Raises :class:`paretone.errors.PlainError`."""
    by_token = knobs.replace(verification=speculative.BY_TOKEN)
    ways = {}
    for tolerance in TOLERANCES:
        drafted = UsedTechnique(speculative.NAME, by_token.replace(tolerance=tolerance))
        ways[tolerance_title(tolerance)] = plain.with_technique(drafted)
    last = by_token.replace(tolerance=TOLERANCES[-1], tolerated=speculative.PUBLISHED)
    published = plain.with_technique(UsedTechnique(speculative.NAME, last))
    ways[f"{tolerance_title(TOLERANCES[-1])}, as published"] = published
    exact, artefacts = ways[tolerance_title(0.0)], []
    for title, grouped in GROUPS.items():
        bundled.say(f"{title}: preparing …")
        artefact = preparer(grouped.technique)(model, (), exact.with_technique(grouped), Observer())
        artefacts.append(artefact)
        ways[title] = exact.with_technique(replace(grouped, artefact=artefact.fingerprint))
    return Accepting(ways, tuple(artefacts), next(iter(GROUPS)))


def diversities(
    model: SpeechModel,
    accepted: Accepting,
    plain: Mapping[str, Setting],
    voice: Voice,
    texts: Sequence[str],
    seeds: int,
    turns: Turns,
) -> Mapping[str, float | None]:
    """Mean diversity of each way over ``texts``, each spoken with ``seeds`` seeds, while ``turns`` allow; ``None`` if
    too little is voiced, empty without texts."""
    found: dict[str, list[float]] = {}
    for at, text in enumerate(texts):
        if not turns.another():
            break
        bundled.say(f"sentence {at + 1} of {len(texts)}: {seeds} takes of each way …")
        for title, setting in {**plain, **accepted.ways}.items():
            settings = [replace(setting, seed=seed) for seed in range(seeds)]
            takes = [synthesise(model, text, voice, one, accepted.artefacts) for one in settings]
            one = diversity([log_pitch(take.samples, take.sample_rate) for take in takes])
            found.setdefault(title, []).extend([] if one is None else [one])
    return {title: float(np.mean(known)) if known else None for title, known in found.items()}


def equal_tolerance(speed_up: float, tolerated: Mapping[float, float]) -> float | str:
    """Tolerance as fast as ``speed_up``, interpolated from ``tolerated``; a phrase outside their range."""
    betas = sorted(tolerated)
    speeds = np.maximum.accumulate([tolerated[one] for one in betas])
    if speed_up < speeds[0]:
        return f"below {betas[0]:g}"
    if speed_up > speeds[-1]:
        return f"above {betas[-1]:g}"
    return float(np.interp(speed_up, speeds, betas))


NAME = "ssd"
PLAIN = "autoregressive"
GREEDY_TOKENS = 300
DEFINITION = (
    "Backbone CPU seconds per token of the engine's optimised autoregressive loop over those of speculative decoding "
    "at this tolerance, prompt reading included; median of paired, interleaved rounds on different sentences."
)


def add_arguments(parser: ArgumentParser) -> None:
    common.add_arguments(parser)
    parser.add_argument("--tolerance", type=finite, default=0.4, metavar="β", help="headline (default: %(default)s)")
    parser.add_argument(
        "--draft-length",
        type=positive,
        metavar="K",
        help="tokens that are always drafted (default: as many as pay, found while decoding; with --random 2, 4 and 6)",
    )
    parser.add_argument("--all-drafts", action="store_true", help="also every other draft, in separate rows")
    parser.add_argument("--student", action="store_true", help="also a shallower student as draft, in separate rows")
    parser.add_argument(
        "--random",
        action="store_true",
        help="instead measure passes of the released sizes of --model cosyvoice2 or llasa with random weights, and the "
        "speed-up that each acceptance would have there",
    )
    parser.add_argument(
        "--groups",
        action="store_true",
        help="instead compare drafts accepted in groups of tokens that sound alike with the tolerances 0, 0.2 and 0.4",
    )
    parser.add_argument(
        "--seeds",
        type=at_least(2),
        default=3,
        help="with --groups: takes of each sentence for diversity (default: %(default)s)",
    )


def run(arguments: Namespace) -> Report:
    """Check equality, time all ways in the same rounds, then run the judge."""
    if arguments.random:
        return random_bench.run(arguments)
    within = Budget(arguments.minutes, arguments.rounds)
    model = loaded(arguments)
    usual, *others = speculative.fitting_drafts(model.info, knobs_of(UsedTechnique(speculative.NAME))) or (None,)
    if usual is None:
        raise PlainError(f"{model.info.title} has no draft; train one (paretone train draft), then run this again.")
    plain = baseline(arguments)
    if arguments.groups:
        return _grouped(model, plain, arguments, within)
    ways = {PLAIN: plain, **dict(_ways(plain, others if arguments.all_drafts else (), arguments))}
    voice = bundled.speaker(arguments)
    equal, compared = _greedy_equality(model, ways[tolerance_title(0.0)], voice)
    times = timed_decoding(model, ways, voice, arguments.rounds, bundled.say)
    said = judged(model, ways, arguments, Turns(within, least=1))
    rows = clean(said, "way")
    rows += _rows(ways, times, said)
    rows.append({"way": "verifying passes of all ways", **_passes(times)})
    rows.append({"way": AGAIN, **times.speed_up[AGAIN].columns()})
    rows.append({"way": f"greedy at β = 0: {equal} of {compared} tokens equal"})
    top = times.speed_up[tolerance_title(arguments.tolerance)]
    return Report.of(NAME, top, DEFINITION + listened(said, arguments), rows)


def _grouped(model: LanguageSpeech, plain: Setting, arguments: Namespace, within: Budget) -> Report:
    """Like :func:`run`, with other ways of acceptance and their diversity."""
    accepted = accepting(model, plain, _knobs(arguments))
    ways, voice = {PLAIN: plain, **accepted.ways}, bundled.speaker(arguments)
    times = timed_decoding(model, ways, voice, arguments.rounds, bundled.say, accepted.artefacts)
    # A quarter of the remaining time is for takes with different seeds.
    said = judged(model, ways, arguments, Turns(within, least=1, share=0.75), accepted.artefacts)
    texts = bundled.heard_sentences(arguments)[: len(said[PLAIN][0].errors.words)] if said else []
    varied = diversities(model, accepted, {PLAIN: plain}, voice, texts, arguments.seeds, Turns(within, least=1))
    tolerated = {one: times.speed_up[tolerance_title(one)].median for one in TOLERANCES}
    rows = clean(said, "way")
    for row in _rows(ways, times, said):
        name = str(row["way"])
        if name in times.speed_up:
            row["as fast as β"] = equal_tolerance(times.speed_up[name].median, tolerated)
        if varied.get(name) is not None:
            row["diversity"] = varied[name]
        rows.append(row)
    rows.append({"way": AGAIN, **times.speed_up[AGAIN].columns()})
    return Report.of(NAME, times.speed_up[accepted.headline], GROUPS_DEFINITION + listened(said, arguments), rows)


def _knobs(arguments: Namespace) -> Values:
    fixed = arguments.draft_length
    return Values(adaptive=True) if fixed is None else Values(draft_length=fixed, adaptive=False)


def _ways(plain: Setting, others: Sequence[TrainedWeights], arguments: Namespace) -> Iterator[tuple[str, Setting]]:
    knobs = _knobs(arguments)
    drafts = [("", knobs, "")]
    drafts += [(f", {Path(one.path).stem} drafts", knobs, one.fingerprint) for one in others]
    if arguments.student:
        drafts.append((", student drafts", knobs.replace(draft=DRAFT_BY_STUDENT), ""))
    for which, values, artefact in drafts:
        for tolerance in sorted({0.0, arguments.tolerance}):
            used = UsedTechnique(speculative.NAME, values.replace(tolerance=tolerance), artefact)
            yield f"{tolerance_title(tolerance)}{which}", plain.with_technique(used)
    published = UsedTechnique(speculative.NAME, knobs.replace(tolerance=0.0, verification=speculative.BY_TOKEN))
    yield f"{tolerance_title(0.0)}, token by token", plain.with_technique(published)


def _greedy_equality(model: LanguageSpeech, setting: Setting, voice: Voice) -> tuple[int, int]:
    """Number of tokens of ``setting``, with drafts, that equal plain decoding, and of all: both greedy, up to
    :data:`GREEDY_TOKENS` of three sentences."""
    equal = compared = 0
    for text in harvard_sentences()[:3]:
        works = model.internals(scripted(model, text, voice, setting))
        target, draft, drafting = works.networks.target, works.networks.draft, works.plan.decoding
        if draft is None or drafting is None:
            raise PlainError("The setting drafts nothing, so there is nothing to compare with plain decoding.")
        way = dict(drafting.arguments)
        request = replace(works.request, maximum=min(works.request.maximum, GREEDY_TOKENS))
        length = AdaptiveLength(way["draft_length"]) if way["adaptive"] else way["draft_length"]
        plain = decode(target.tokens, request, Greedy(), Uniforms(0))
        drafted = speculation(
            target.tokens,
            draft.tokens,
            request,
            Greedy(),
            Uniforms(0),
            rule_of(target.tokens.codes, 0.0, block=way["block"]),
            length,
            draft_request=works.draft_request,
        )
        one, two = ([token for cycle in decoding for token in cycle.tokens] for decoding in (plain, drafted))
        equal += sum(mine == theirs for mine, theirs in zip(one, two, strict=False))
        compared += max(len(one), len(two))
    return equal, compared


def _passes(times: DecodingTimes) -> dict[str, float]:
    """v by the number of tokens of a pass, where passes over as many were measured."""
    plain = times.decoded[PLAIN].target_seconds
    found: dict[str, float] = {}
    for tokens in (2, 4, 6, 8):
        cycles = (one for way in times.decoded.values() for one in way.cycles)
        spent = [one.target_seconds for one in cycles if len(one.drafted) == tokens - 1]
        if len(spent) >= ENOUGH:
            found[f"v({tokens})"] = median(spent) / plain
    return found


def _rows(ways: Iterable[str], times: DecodingTimes, said: Mapping[str, list[VoiceVerdict]]) -> Iterator[dict]:
    single = times.decoded[PLAIN].target_seconds
    for name in ways:
        found = times.decoded[name]
        row: dict[str, object] = {"way": name, "LM real-time factor": found.real_time_factor}
        row |= times.speed_up[name].columns() if name in times.speed_up else {"speed-up": 1.0}
        row["tokens per pass"] = found.tokens_per_pass
        if found.acceptance is not None:
            cost, growth = found.draft_seconds / single, found.target_seconds / single
            tokens, length = found.tokens_per_pass, found.draft_length
            row |= {
                "acceptance": Share(found.acceptance),
                "c": cost,
                "v": growth,
                "predicted, v = 1": predicted_speed_up(tokens, length, cost),
                "predicted": predicted_speed_up(tokens, length, cost, growth),
            }
        yield row | heard_beside(said, name, PLAIN)
