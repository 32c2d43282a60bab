"""Speculative sampling: exact without tolerance, what tolerance touches, and how much is drafted.

Exactness is tested on what is decoded: given all before it, every token must be distributed as the target alone draws
it. Ordering the ids by how much the draft prefers them, a random place within a token's own share of the target's
distribution is uniform then; acceptances that favour the draft push it down.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from paretone.models.families.language_network import TokenModel
from paretone.sampling import tokens as tokens_module
from paretone.sampling.autoregressive import Cycle, Request, decode, within_length
from paretone.sampling.draft_length import LONGEST, AdaptiveLength, predicted_speed_up
from paretone.sampling.speculative import speculation
from paretone.sampling.tokens import Greedy, Nucleus, RepetitionAware, TokenSampler, Uniforms
from paretone.sampling.verification import Rule, by_block, by_token
from tests.engine.models.small_causal import small_model
from tests.engine.sampling.test_autoregressive import ALWAYS, NEVER, request_of, tokens_of
from tests.workload import crossed, workload

MANY = 400
CRITICAL = 1.95
"""Kolmogorov's distance times √n, which chance exceeds once in a thousand times."""
SAMPLED = [
    (Nucleus(), 3),
    (Nucleus(0.8, 8), 1),
    (RepetitionAware(window=4, threshold=0.25), 6),
    (RepetitionAware("2025"), 3),
]
BLOCK = pytest.mark.parametrize("block", [False, True], ids=["by token", "by block"])


def rule_of(target: TokenModel, block: bool) -> Rule:
    """Without tolerance."""
    return by_block if block else by_token(0.0, target.codes)


def pair(stop_score: float = NEVER) -> tuple[TokenModel, TokenModel]:
    """A target, and three of its four layers, which agree with it more often than not."""
    model = small_model(stop_score=stop_score).optimised()
    return model, model.kept([0, 1, 3])


@torch.inference_mode()
def distributions(target: TokenModel, draft: TokenModel, request: Request, sampler: TokenSampler, tokens: list[int]):
    """What the target and the draft draw each of ``tokens`` from, and what follows them: (places, ids) each."""
    positions = torch.cat([request.positions, request.first_position + torch.arange(len(tokens))])
    found = []
    for model in (target, draft):
        embedded = torch.cat([request.embedded, model.embed([tokens])], dim=1)
        hidden = model.transformer(embedded, positions=positions)
        logits = model.logits(hidden[0, request.embedded.shape[1] - 1 :]).float()
        found.append(sampler.probabilities(within_length(logits, model, request, len(tokens)), tokens))
    return found


def places_of(
    target: TokenModel, draft: TokenModel, request: Request, sampler: TokenSampler, cycles: Sequence[Cycle], seed=5
) -> list[float]:
    """Place of each committed token, and of the stop, in the target's distribution; ``seed``: within shares."""
    tokens = tokens_of(list(cycles))
    stopped = cycles[-1].stopped
    chance, found = random.Random(seed), []
    for place, (q, p) in enumerate(zip(*distributions(target, draft, request, sampler, tokens), strict=True)):
        if place == len(tokens) and not stopped:
            break
        order = (p - q).argsort(descending=True)
        shares = q[order]
        # Which stop id it was is not recorded: here there is only one.
        rank = int((order == (tokens[place] if place < len(tokens) else target.codes)).nonzero())
        found.append(float(shares[:rank].sum()) + chance.random() * float(shares[rank]))
    return found


def distance(places: Sequence[float]) -> float:
    """Kolmogorov's, between ``places`` and a uniform distribution, times √n."""
    ordered = sorted(places)
    count = len(ordered)
    gaps = (max((index + 1) / count - one, one - index / count) for index, one in enumerate(ordered))
    return max(gaps) * math.sqrt(count)


@pytest.mark.parametrize(("sampled", "block"), crossed(SAMPLED, [False, True]))
def test_without_tolerance_tokens_are_the_targets(sampled: tuple[TokenSampler, int], block: bool) -> None:
    (sampler, length), (target, draft) = sampled, pair()
    request = request_of(target, maximum=workload(MANY, MANY // 2))
    cycles = list(speculation(target, draft, request, sampler, Uniforms(11), rule_of(target, block), length))
    # All three outcomes are among them, or nothing would be tested.
    assert {"resampled", "bonus"} <= {cycle.outcome for cycle in cycles}
    assert 0 < sum(cycle.accepted for cycle in cycles) < sum(len(cycle.drafted) for cycle in cycles)
    assert distance(places_of(target, draft, request, sampler, cycles)) < CRITICAL


def test_a_draft_that_reads_less_of_the_prompt_changes_nothing() -> None:
    target, draft = pair()
    request = request_of(target, maximum=workload(MANY, MANY // 2))
    # The end of the prompt, as if its beginning had never been.
    less = replace(request, embedded=request.embedded[:, 2:], positions=request.positions[2:])
    cycles = list(speculation(target, draft, request, Nucleus(), Uniforms(11), draft_request=less))
    assert cycles != list(speculation(target, draft, request, Nucleus(), Uniforms(11)))
    assert distance(places_of(target, draft, request, Nucleus(), cycles)) < CRITICAL
    request, less = replace(request, maximum=60), replace(less, maximum=60)
    expected = tokens_of(list(decode(target, request, Greedy(), Uniforms(0))))
    found = list(speculation(target, draft, request, Greedy(), Uniforms(0), draft_request=less))
    assert tokens_of(found) == expected and len(found) < len(expected)


@BLOCK
def test_stops_are_the_targets_too(block: bool) -> None:
    """Many short requests, with a least length before which no stop can come."""
    model = small_model(stops=1, stop_score=2.5).optimised()
    draft, sampler = model.kept([0, 1, 3]), Nucleus()
    request, places, ends = request_of(model, minimum=2, maximum=9), [], 0
    for seed in range(30):
        cycles = list(speculation(model, draft, request, sampler, Uniforms(1000 + seed), rule_of(model, block)))
        places += places_of(model, draft, request, sampler, cycles, seed=seed)
        ends += cycles[-1].stopped
        assert len(tokens_of(cycles)) >= 2 and not any(cycle.stopped for cycle in cycles[:-1])
    assert 10 < ends < 30
    assert distance(places) < CRITICAL


@pytest.mark.parametrize("rule", [None, 0.4, 1.0], ids=str)
def test_speech_of_a_known_length_stops_after_it(rule: float | None) -> None:
    """A draft cannot run on either, under any tolerance."""
    target, draft = pair()
    request = request_of(target, maximum=12, length=10)
    chosen = rule_of(target, False) if rule is None else by_token(rule, target.codes)
    for seed in range(3):
        cycles = list(speculation(target, draft, request, Nucleus(), Uniforms(seed), chosen))
        assert len(tokens_of(cycles)) == 10 and cycles[-1].stopped


@pytest.mark.parametrize(("length", "block"), crossed([1, 8, "adaptive"], [False, True]))
def test_greedy_decoding_is_repeated_token_for_token(length: int | str, block: bool) -> None:
    target, draft = pair()
    request = request_of(target, maximum=60)
    expected = tokens_of(list(decode(target, request, Greedy(), Uniforms(0))))
    chosen = AdaptiveLength() if length == "adaptive" else length
    cycles = list(speculation(target, draft, request, Greedy(), Uniforms(0), rule_of(target, block), chosen))
    assert tokens_of(cycles) == expected and len(cycles) < len(expected)


def test_a_draft_that_stops_is_tolerated_only_as_published() -> None:
    """A draft that always stops, under full tolerance: the target's own will decides."""
    target = small_model(stop_score=-8.0).optimised()
    draft = small_model(stop_score=ALWAYS).optimised()
    request = request_of(target, maximum=40)
    cycles = list(speculation(target, draft, request, Nucleus(), Uniforms(3), by_token(1.0, target.codes)))
    assert len(tokens_of(cycles)) == 40 and not any(cycle.stopped for cycle in cycles)
    # A drafted stop ends drafting.
    assert all(len(cycle.drafted) == 1 and cycle.accepted == 0 for cycle in cycles[:-1])
    # And cut speech short: what guards the tolerance guards against.
    rule = by_token(1.0, target.codes, guarded=False)
    (cycle,) = speculation(target, draft, request_of(target, maximum=40), Nucleus(), Uniforms(3), rule)
    assert cycle.stopped and cycle.outcome == "accepted" and not cycle.tokens


def test_a_drafted_stop_can_be_accepted() -> None:
    target, draft = pair(stop_score=ALWAYS)
    cycles = list(speculation(target, draft, request_of(target, minimum=5), Nucleus(), Uniforms(0)))
    last = cycles[-1]
    assert len(tokens_of(cycles)) == 5
    assert last.stopped and last.outcome == "accepted" and last.drafted[-1] >= target.codes
    assert last.tokens == last.drafted[:-1] and last.accepted == len(last.drafted)


@BLOCK
def test_cycles_say_what_happened(block: bool) -> None:
    target, draft = pair()
    request = request_of(target, maximum=60)
    for cycle in speculation(target, draft, request, Nucleus(), Uniforms(2), rule_of(target, block), 4):
        assert cycle.tokens[: cycle.accepted] == cycle.drafted[: cycle.accepted]
        if cycle.outcome == "resampled":
            assert len(cycle.acceptance) == cycle.accepted + 1 == len(cycle.tokens) and cycle.acceptance[-1] < 1
        else:
            assert len(cycle.acceptance) == cycle.accepted == len(cycle.drafted) == len(cycle.tokens) - 1
        assert cycle.outcome == ("decoded" if not cycle.drafted else cycle.outcome) and cycle.target_seconds > 0


def test_a_draft_of_other_ids_is_refused() -> None:
    target, _ = pair()
    with pytest.raises(ValueError, match="A draft of 21 ids cannot draft for a target of 22"):
        next(speculation(target, small_model(stops=1), request_of(target), Nucleus(), Uniforms(0)))


class Reads(TorchDispatchMode):
    """Counts how often a single number is read from a tensor: on a graphics card, everything waits for each."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: object, types: object, args: tuple = (), kwargs: dict | None = None) -> object:
        aten = torch.ops.aten
        self.count += func in (aten.item.default, aten.is_nonzero.default, aten._local_scalar_dense.default)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    ("sampler", "block"), crossed([Nucleus(0.8, 8, 0.9, 1.2), RepetitionAware("2025")], [False, True])
)
def test_of_every_token_only_its_id_is_read(
    sampler: TokenSampler, block: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens_module, "machine_code", lambda: None)  # as on a graphics card
    target, draft = pair()
    request = request_of(target, maximum=60)
    with Reads() as plain:
        tokens = tokens_of(list(decode(target, request, sampler, Uniforms(4))))
    assert plain.count == len(tokens) == 60
    with Reads() as fast:
        cycles = list(speculation(target, draft, request, sampler, Uniforms(4), rule_of(target, block), 2))
    assert {"resampled", "bonus"} <= {cycle.outcome for cycle in cycles}
    # Each drafted one, and the one that the target adds.
    assert fast.count == sum(len(cycle.drafted) + 1 for cycle in cycles)


# --- Draft lengths ----------------------------------------------------------------------------------------------------
def speed_ups(acceptance: float, cost: float, growth: float) -> list[float]:
    """Predicted speed-up of every draft length from 1, where each drafted token adds ``growth`` to a target pass."""
    expected = accumulate(acceptance**accepted for accepted in range(LONGEST + 1))
    return [predicted_speed_up(tokens, one, cost, 1 + growth * one) for one, tokens in enumerate(expected) if one]


def fed(acceptance: float, cost: float, growth: float, cycles: int = 200) -> AdaptiveLength:
    """One that saw cycles in which each checked token stayed with the probability ``acceptance``; a target pass over
    one token takes 1, a draft pass ``cost``, each further token of a target pass ``growth``."""
    length, draw = AdaptiveLength(), random.Random(1)
    for _ in range(cycles):
        drafted = length.choose()
        accepted = 0
        while accepted < drafted and draw.random() < acceptance:
            accepted += 1
        length.observe(drafted, accepted, drafted * cost + 1 + growth * drafted)
    return length


@pytest.mark.parametrize(
    ("acceptance", "cost", "growth"), crossed([0.3, 0.62, 0.8, 0.95], [0.1, 0.35, 0.5], [0.0, 0.1])
)
def test_it_settles_where_the_plan_is_best(acceptance: float, cost: float, growth: float) -> None:
    length = fed(acceptance, cost, growth)
    found = speed_ups(acceptance, cost, growth)
    assert found[length.choose() - 1] > 0.95 * max(found)
    assert length.acceptances[0] == pytest.approx(acceptance, abs=0.12)


def test_it_follows_a_change() -> None:
    length = fed(0.9, 0.2, 0.05)
    long = length.choose()
    for _ in range(100):
        length.observe(length.choose(), 0, 1 + 0.25 * length.choose())
    assert length.choose() == 1 < long


def test_it_follows_the_acceptance_of_each_place_and_the_time_of_each_length() -> None:
    """Third tokens are never accepted; and where four rows are as fast as two, two tokens are not worth less."""
    length = AdaptiveLength()
    for _ in range(60):
        drafted = length.choose()
        length.observe(drafted, min(drafted, 2), 1 + 0.15 * drafted)
    assert length.choose() == 2 and length.acceptances[1] > 0.9 and length.acceptances[2] < 0.5
    steps = AdaptiveLength()
    for cycle in range(200):
        drafted = steps.choose()
        steps.observe(drafted, drafted if cycle % 3 else 0, 0.02 * drafted + (1.0 if drafted < 4 else 4.0))
    assert steps.choose() == 3
    steep = AdaptiveLength()
    for drafted in (2, 2, 2, 3, 3, 3):
        steep.observe(drafted, drafted, 0.6 * drafted - 0.2)
    assert steep.choose() == 2


def test_a_first_token_that_takes_longer_keeps_no_draft_short() -> None:
    """Drafting costs 0.3 and 0.05 a token here: by the mean cost of a token, one token would stay the best."""
    length, draw = AdaptiveLength(1), random.Random(1)
    for _ in range(200):
        drafted = length.choose()
        accepted = next((place for place in range(drafted) if draw.random() > 0.7), drafted)
        length.observe(drafted, accepted, 1.3 + 0.1 * drafted)
    assert length.choose() >= 3


@pytest.mark.parametrize(
    ("acceptance", "cost", "expected"),
    [
        (0.62, 0.44, (1.13, 1.07, 0.97, 0.87)),
        (0.765, 0.35, (1.31, 1.38, 1.37, 1.31)),
        (0.86, 0.44, (1.29, 1.38, 1.40, 1.37)),
    ],
)
def test_speed_ups_of_drafts_one_to_four(acceptance: float, cost: float, expected: tuple[float, ...]) -> None:
    assert speed_ups(acceptance, cost, growth=0.0)[:4] == pytest.approx(expected, abs=0.006)
