"""Rules by which drafted tokens stay: all that can come of a draft, weighed by its probability, is the target's."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence

import pytest
import torch
from torch import Tensor

from paretone.sampling.verification import Rule, Verification, by_block, by_token, residual

IDS = 3
NO, YES = 1.0, 0.0
"""Random numbers by which a token falls, and stays if it can."""
RULES = pytest.mark.parametrize("rule", [by_token(0.0, IDS), by_block], ids=["by token", "by block"])
LENGTHS = pytest.mark.parametrize("length", [1, 2, 3])
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


def verdicts(
    rule: Rule, drafted: Sequence[int], proposals: list[Tensor], checks: Tensor
) -> Iterator[tuple[float, Verification]]:
    """Every verdict on a draft, and how likely it is."""
    stays = _stays(rule, drafted, proposals, checks)
    for outcome in itertools.product((True, False), repeat=len(drafted)):
        likely = 1.0
        for kept, probability in zip(outcome, stays, strict=True):
            likely *= probability if kept else 1 - probability
        if likely:
            yield likely, rule(drafted, proposals, checks, iter([YES if one else NO for one in outcome]).__next__)


def _stays(rule: Rule, drafted: Sequence[int], proposals: list[Tensor], checks: Tensor) -> list[float]:
    """With which probability each random number lets its token stay. A token of probability 0 is in the way of seeing
    those after it token by token, which then do not matter."""
    found = list(rule(drafted, proposals, checks, lambda: YES).acceptance)
    return found + [0.0] * (len(drafted) - len(found))


def committed(rule: Rule, p: Tables, q: Tables, length: int) -> tuple[dict[tuple[int, ...], float], float]:
    """Probability of each sequence of ``length`` + 1 ids, with ids that a cycle leaves open drawn from the target; and
    the mean number of drafted tokens that stay."""
    found: dict[tuple[int, ...], float] = defaultdict(float)
    mean = 0.0
    for drafted in itertools.product(range(IDS), repeat=length):
        prefixes = [drafted[:count] for count in range(length + 1)]
        proposals, checks = [p[one] for one in prefixes[:-1]], torch.stack([q[one] for one in prefixes])
        proposed = 1.0
        for token, shares in zip(drafted, proposals, strict=True):
            proposed *= float(shares[token])
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
@LENGTHS
@pytest.mark.parametrize("seed", range(4))
def test_what_is_committed_is_the_targets(rule: Rule, length: int, seed: int) -> None:
    p, q = tables(seed, length), tables(100 + seed, length)
    found, _ = committed(rule, p, q, length)
    for end, expected in _continued(q, (), length + 1):
        assert found[end] == pytest.approx(expected, abs=1e-9)


def test_tolerance_would_be_seen() -> None:
    p, q = tables(0, 2), tables(100, 2)
    found, _ = committed(by_token(0.3, IDS), p, q, 2)
    assert any(abs(found[end] - expected) > 0.01 for end, expected in _continued(q, (), 3))


@pytest.mark.parametrize("seed", range(4))
def test_of_a_block_more_tokens_stay(seed: int) -> None:
    p, q = tables(seed, 3), tables(100 + seed, 3)
    (_, singly), (_, together) = (committed(rule, p, q, 3) for rule in (by_token(0.0, IDS), by_block))
    assert together > singly


def test_of_a_block_a_token_stays_for_those_after_it() -> None:
    """So that what stayed at a position does not say how its token did by itself."""
    proposals = [torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.2, 0.4, 0.4])]
    checks = torch.tensor([[0.25, 0.5, 0.25], [0.8, 0.1, 0.1], [0.4, 0.3, 0.3]])
    for rule, accepted in ((by_token(0.0, IDS), 0), (by_block, 2)):
        assert rule([0, 0], proposals, checks, iter([NO, YES]).__next__).accepted == accepted


@RULES
def test_an_equal_draft_stays(rule: Rule) -> None:
    q = tables(5, 3)
    drafted = (int(q[()].argmax()),)
    proposals, checks = [q[()]], torch.stack([q[()], q[drafted]])
    verdict = rule(drafted, proposals, checks, lambda: 1 - 2**-24)
    assert (verdict.accepted, verdict.acceptance) == (1, (1.0,))
    assert torch.equal(verdict.rest, q[drafted])


@RULES
def test_nothing_drafted(rule: Rule) -> None:
    q = torch.tensor([[0.25, 0.75]])
    verdict = rule((), [], q, iter(()).__next__)
    assert (verdict.accepted, verdict.acceptance) == (0, ())
    assert torch.equal(verdict.rest, q[0])


def test_nothing_left_to_fill_from_falls_back_to_the_target() -> None:
    q = torch.tensor([0.25, 0.75])
    assert torch.equal(residual(q, q), q)
    assert residual(torch.tensor([0.5, 0.5]), q).tolist() == [0.0, 0.25]
