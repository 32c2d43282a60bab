"""Rules that accept drafted tokens, one by one and by groups."""

import itertools
import math
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence

import pytest
import torch
from torch import Tensor

from paretone.models.families.language_network import TokenModel
from paretone.sampling.autoregressive import Request
from paretone.sampling.speculative import speculation
from paretone.sampling.tokens import Nucleus, Uniforms
from paretone.sampling.verification import Rule, TokenGroups, by_block, by_group, by_token, residual
from tests.engine.sampling.test_autoregressive import request_of, tokens_of
from tests.engine.sampling.test_speculative import CRITICAL, distance, distributions, pair, places_of
from tests.workload import workload

IDS = 3
NO, YES = 1.0, 0.0
"""Random numbers by which a token falls, and stays if it can."""
RULES = pytest.mark.parametrize("rule", [by_token(0.0, IDS), by_block], ids=["by token", "by block"])
Tables = dict[tuple[int, ...], Tensor]


def tables(seed: int, length: int) -> Tables:
    """A distribution after every sequence of up to ``length`` ids; some ids are impossible."""
    generator = torch.Generator().manual_seed(seed)
    found = {}
    for count in range(length + 1):
        for before in itertools.product(range(IDS), repeat=count):
            shares = torch.rand(IDS, generator=generator, dtype=torch.float64) - 0.2
            shares[int(torch.randint(IDS, (), generator=generator))] += 0.5
            found[before] = shares.clamp(min=0) / shares.clamp(min=0).sum()
    return found


def verdicts(rule: Rule, drafted: Sequence[int], proposals: list[Tensor], checks: Tensor) -> Iterator[tuple]:
    """Every verdict on a draft, and how likely it is."""
    # With which probability each random number lets its token stay. A token of probability 0 is in the way of seeing
    # those after it token by token, which then do not matter.
    stays = list(rule(drafted, proposals, checks, lambda: YES).acceptance)
    stays += [0.0] * (len(drafted) - len(stays))
    for outcome in itertools.product((True, False), repeat=len(drafted)):
        likely = math.prod(share if kept else 1 - share for kept, share in zip(outcome, stays, strict=True))
        if likely:
            yield likely, rule(drafted, proposals, checks, iter([YES if one else NO for one in outcome]).__next__)


def committed(rule: Rule, p: Tables, q: Tables, length: int) -> tuple[dict[tuple[int, ...], float], float]:
    """Probability of each sequence of ``length`` + 1 ids, with ids that a cycle leaves open drawn from the target; and
    the mean number of drafted tokens that stay."""
    found: dict[tuple[int, ...], float] = defaultdict(float)
    mean = 0.0
    for drafted in itertools.product(range(IDS), repeat=length):
        prefixes = [drafted[:count] for count in range(length + 1)]
        proposals, checks = [p[one] for one in prefixes[:-1]], torch.stack([q[one] for one in prefixes])
        proposed = math.prod(float(shares[token]) for token, shares in zip(drafted, proposals, strict=True))
        if not proposed:
            continue
        for likely, verdict in verdicts(rule, drafted, proposals, checks):
            mean += proposed * likely * verdict.accepted
            rest = verdict.rest / verdict.rest.sum()
            for token in range(IDS):
                start = (*drafted[: verdict.accepted], token)
                for end, share in _continued(q, start, length + 1):
                    found[end] += proposed * likely * float(rest[token]) * share
    return found, mean


def _continued(q: Tables, start: tuple[int, ...], length: int) -> Iterator[tuple[tuple[int, ...], float]]:
    if len(start) == length:
        yield start, 1.0
        return
    for token in range(IDS):
        for end, share in _continued(q, (*start, token), length):
            yield end, float(q[start][token]) * share


@RULES
@pytest.mark.parametrize(("length", "seed"), [(1, 0), (2, 1)])
def test_what_is_committed_is_the_targets(rule: Rule, length: int, seed: int) -> None:
    p, q = tables(seed, length), tables(100 + seed, length)
    found, _ = committed(rule, p, q, length)
    for end, expected in _continued(q, (), length + 1):
        assert found[end] == pytest.approx(expected, abs=1e-9)


def test_of_a_block_more_tokens_stay() -> None:
    p, q = tables(1, 3), tables(101, 3)
    (_, singly), (_, together) = (committed(rule, p, q, 3) for rule in (by_token(0.0, IDS), by_block))
    assert together > singly


def test_of_a_block_a_token_stays_for_those_after_it() -> None:
    """So that what stayed at a position does not say how its token did by itself."""
    proposals = [torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.2, 0.4, 0.4])]
    checks = torch.tensor([[0.25, 0.5, 0.25], [0.8, 0.1, 0.1], [0.4, 0.3, 0.3]])
    for rule, accepted in ((by_token(0.0, IDS), 0), (by_block, 2)):
        assert rule([0, 0], proposals, checks, iter([NO, YES]).__next__).accepted == accepted
    q = torch.tensor([0.25, 0.75])
    assert torch.equal(residual(q, q), q) and residual(torch.tensor([0.5, 0.5]), q).tolist() == [0.0, 0.25]


@RULES
def test_an_equal_draft_stays(rule: Rule) -> None:
    q = tables(5, 3)
    drafted = (int(q[()].argmax()),)
    proposals, checks = [q[()]], torch.stack([q[()], q[drafted]])
    verdict = rule(drafted, proposals, checks, lambda: 1 - 2**-24)
    assert (verdict.accepted, verdict.acceptance) == (1, (1.0,)) and torch.equal(verdict.rest, q[drafted])
    q = torch.tensor([[0.25, 0.75]])
    verdict = rule((), [], q, iter(()).__next__)
    assert (verdict.accepted, verdict.acceptance) == (0, ()) and torch.equal(verdict.rest, q[0])


# --- Groups -----------------------------------------------------------------------------------------------------------
# The published algorithm draws the group of every drafted token. Here all of its outcomes are summed: which group,
# whether it stays, which group replaces it, which token of that. What the rule says without drawing must be equal.
OVERLAPPING: dict[int, list[list[int]]] = {3: [[0, 1], [1, 2]], 6: [[0, 1, 2], [2, 3], [1, 3, 4]]}
"""By the number of ids; the last of six is in no group."""
PARTITION = [[0, 1]]
WITHIN = pytest.mark.parametrize("within", [True, False], ids=["within", "published"])


def shares(seed: int, ids: int) -> Tensor:
    """A distribution (ids,), one of whose ids is impossible."""
    found = torch.rand(ids, generator=torch.Generator().manual_seed(seed))
    found[seed % ids] = 0.0
    return found / found.sum()


def published(p: Tensor, q: Tensor, groups: Sequence[Sequence[int]], within: bool) -> tuple[list[float], list[float]]:
    """Probability of each token that comes of one drafted token, and of each group that is drawn for it."""
    ids = len(p)
    every = [list(one) for one in groups]
    every += [[one] for one in range(ids) if not any(one in group for group in groups)]
    holding = [[k for k, group in enumerate(every) if token in group] for token in range(ids)]
    weight = [1 / len(found) for found in holding]
    drafted = [float(one) if not within or q[token] > 0 else 0.0 for token, one in enumerate(p)]
    of_draft = [sum(weight[t] * drafted[t] for t in group) for group in every]
    of_target = [sum(weight[t] * float(q[t]) for t in group) for group in every]
    tokens, drawn = [0.0] * ids, [0.0] * len(every)
    for token, k in ((one, k) for one, found in enumerate(holding) for k in found):
        if of_draft[k]:
            likely = drafted[token] * weight[token] * min(1.0, of_target[k] / of_draft[k])
            tokens[token] += likely
            drawn[k] += likely
    rejected = 1 - sum(tokens)
    left = [max(0.0, theirs - mine) for theirs, mine in zip(of_target, of_draft, strict=True)]
    for k, group in enumerate(every):
        likely = rejected * left[k] / sum(left)
        drawn[k] += likely
        for token in group:
            if likely:
                tokens[token] += likely * weight[token] * float(q[token]) / of_target[k]
    return tokens, [theirs - mine for theirs, mine in zip(of_target, drawn, strict=True)]


def outcome(rule: Rule, p: Tensor, q: Tensor) -> list[float]:
    """Probability of each token that ``rule`` gives for one drafted token."""
    found = torch.zeros(len(p), dtype=torch.float64)
    checks = torch.stack([q, q])
    for token, proposed in enumerate(p.tolist()):
        if not proposed:
            continue
        verdict = rule([token], [p], checks, lambda: NO)
        stays = verdict.acceptance[0]
        found[token] += proposed * stays
        if stays < 1:
            found += proposed * (1 - stays) * (verdict.rest / verdict.rest.sum()).double()
    return found.tolist()


@WITHIN
@pytest.mark.parametrize(("ids", "seed"), [(3, 0), (6, 1), (6, 3)])
def test_it_is_the_published_algorithm_summed_over_groups(ids: int, seed: int, within: bool) -> None:
    p, q = shares(seed, ids), shares(100 + 7 * seed, ids)
    tokens, wrong = published(p, q, OVERLAPPING[ids], within)
    assert max(map(abs, wrong)) < 1e-6, "the group is distributed as the target's"
    found = outcome(by_group(TokenGroups(OVERLAPPING[ids], ids), within=within), p, q)
    assert found == pytest.approx(tokens, abs=1e-6)
    if ids > 3:
        assert found != pytest.approx(q.tolist(), abs=1e-2), "tokens are not: else the test would see nothing"


@WITHIN
@pytest.mark.parametrize(("length", "seed"), [(1, 0), (2, 1)])
def test_after_whatever_came_the_next_group_is_the_targets(length: int, seed: int, within: bool) -> None:
    """Groups that do not overlap, so that a token says its group: all that can come of a draft, weighed."""
    p, q = ({at: one.float() for at, one in tables(first + seed, length).items()} for first in (0, 100))
    found, _ = committed(by_group(TokenGroups(PARTITION, IDS), within=within), p, q, length)
    prefixes: dict[tuple[int, ...], float] = defaultdict(float)
    for end, likely in found.items():
        for count in range(length + 2):
            prefixes[end[:count]] += likely
    for before in itertools.chain.from_iterable(itertools.product(range(IDS), repeat=one) for one in range(length)):
        for group in ([0, 1], [2]):
            expected = prefixes[before] * float(q[before][group].sum())
            assert sum(prefixes[*before, token] for token in group) == pytest.approx(expected, abs=1e-6)


def test_groups_hold_different_ids_and_nothing_drafted_is_nothing_accepted() -> None:
    for wrong in ([], [0, 0], [1, 5], [-1, 0]):
        with pytest.raises(ValueError, match="different ids below 5"):
            TokenGroups([wrong], 5)
    q = torch.tensor([[0.25, 0.75]])
    verdict = by_group(TokenGroups([[0, 1]], 2))((), [], q, iter(()).__next__)
    assert (verdict.accepted, verdict.acceptance) == (0, ()) and torch.equal(verdict.rest, q[0])
    p, q = torch.tensor([0.5, 0.5]), torch.tensor([0.0, 1.0])
    groups = TokenGroups([[0, 1]], 2)
    assert outcome(by_group(groups), p, q) == [0.0, 1.0] and outcome(by_group(groups, within=False), p, q) == [0.5, 0.5]


# --- On what a model decodes ------------------------------------------------------------------------------------------
def places_of_groups(target: TokenModel, draft: TokenModel, request: Request, sampler, cycles, groups) -> list[float]:
    """Place of each token's group in the target's distribution of groups, as :func:`places_of` has it for tokens."""
    tokens = tokens_of(list(cycles))
    every = TokenGroups(groups, target.rows)
    masses = map(every.masses, distributions(target, draft, request, sampler, tokens))
    numbers = every.masses(torch.eye(target.rows)).argmax(-1)
    chance, found = random.Random(5), []
    for token, q, p in zip(tokens, *masses, strict=False):
        order = (p - q).argsort(descending=True)
        rank = int((order == numbers[token]).nonzero())
        found.append(float(q[order][:rank].sum()) + chance.random() * float(q[order][rank]))
    return found


@pytest.mark.parametrize("within", workload([True, False], [False]))
def test_decoded_groups_are_the_targets_though_tokens_are_not(within: bool) -> None:
    target, draft = pair()
    request, sampler = request_of(target, maximum=200), Nucleus()
    groups = [list(range(first, first + 5)) for first in range(0, target.codes, 5)]
    rule = by_group(TokenGroups(groups, target.rows), within=within)
    cycles = list(speculation(target, draft, request, sampler, Uniforms(11), rule))
    exact = list(speculation(target, draft, request, sampler, Uniforms(11)))
    assert distance(places_of_groups(target, draft, request, sampler, cycles, groups)) < CRITICAL
    assert distance(places_of(target, draft, request, sampler, cycles)) > CRITICAL
    assert len(cycles) < len(exact), "more tokens stay"
