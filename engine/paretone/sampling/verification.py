"""Rules for accepting drafted tokens after the target has read them: token by token, as a block, or in groups.

Token by token, a token x is accepted with probability min(1, q(x) / p(x)) + β, where p and q are the final
distributions of draft and target; the first rejected token is drawn again from the excess of q over p. Without
tolerance, β = 0, tokens are distributed exactly as the target's own (Leviathan et al., arXiv 2211.17192, algorithm 1);
β > 0 is speech speculative decoding (SSD, Lin et al., arXiv 2505.15380, algorithm 1). As published, β applies to every
id. Our guarded variant exempts ids that end speech or that the target would never draw: a tolerated stop cuts
speech short.

As a block (block verification, Sun et al., arXiv 2403.10444, algorithm 2), a token more likely under the target than
under the draft makes up for a less likely one: tokens are again distributed exactly as the target's own, and on average
at least as many are accepted. There is no tolerance.

In groups of tokens that sound alike (principled coarse-graining, PCG, Yanuka et al., arXiv 2511.13732): a token t gives
each of its n groups the share w = 1 / n of its probability, so a group k has the mass P(k) = Σ w·p(t) under the draft
and Q(k) = Σ w·q(t) under the target. A drafted token is assigned to one of its groups, drawn by w, and accepted with
probability min(1, Q(k) / P(k)). After the first rejection, a group is drawn from max(0, Q − P), and a token of it from
w·q. The group of each token is then distributed exactly as the target's own; the member of the group is the draft's
choice if accepted. With groups of one token this equals the rule token by token without tolerance. The group of a
drafted token is not drawn here: averaged over that draw, t is accepted with probability Σ w·min(1, Q / P), and its
replacement has probability q(t) · Σ w·max(0, Q − P) / Q. Tokens have the same distribution, by one random number each.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Verification:
    accepted: int
    acceptance: tuple[float, ...]
    """Acceptance probability of each of these and of the rejected one after them; as a block: of all tokens up to it,
    whatever happens to the later ones."""
    rest: Tensor
    """(ids,), unnormalised: the distribution of the next token."""


Rule = Callable[[Sequence[int], Sequence[Tensor], Tensor, Callable[[], float]], Verification]
"""Maps drafted tokens, the draft's distributions (ids,) at their places, the target's (n, ids) at these and, unless the
last token ends speech, at the next one, and random numbers to the verdict."""


def acceptance(draft: Tensor, target: Tensor, tolerance: float, exempt: Tensor | None = None) -> Tensor:
    """Acceptance probability of an id, min(1, q / p) + β; may exceed 1. ``exempt`` marks ids without β. ``draft`` holds
    p and ``target`` q, both (…, ids); 0 / 0 counts as 0."""
    ratio = torch.where(target > 0, target / draft, 0.0).clamp(max=1.0)
    return ratio + tolerance if exempt is None else ratio + tolerance * ~exempt


def residual(draft: Tensor, target: Tensor, weight: float = 1.0) -> Tensor:
    """Distribution that replaces a rejected token, unnormalised: max(0, w·q − p); q if that is zero."""
    more = (target * weight - draft).clamp_(min=0.0)
    return torch.where(more.sum() > 0, more, target)


def by_token(tolerance: float, codes: int, *, guarded: bool = True) -> Rule:
    """Rule token by token, with one random number per checked token. ``guarded`` exempts from ``tolerance`` the ids
    from ``codes`` on, which end speech, and those that the target would not draw; else, as published, none."""

    def verify(
        drafted: Sequence[int], proposals: Sequence[Tensor], checks: Tensor, uniforms: Callable[[], float]
    ) -> Verification:
        stays: list[float] = []
        for token, p, q in zip(drafted, *_of(drafted, proposals, checks), strict=True):
            exempt = guarded and (token >= codes or q <= 0)
            stays.append(min(1.0, ratio(p, q) + (0.0 if exempt else tolerance)))
            if uniforms() >= stays[-1]:
                return _verdict(len(stays) - 1, stays, proposals, checks)
        return _verdict(len(drafted), stays, proposals, checks)

    return verify


def by_block(
    drafted: Sequence[int], proposals: Sequence[Tensor], checks: Tensor, uniforms: Callable[[], float]
) -> Verification:
    """Verify the draft as a block. One random number per drafted token."""
    # w: probability of the tokens so far under the target over that under the draft, at most 1.
    weights = [1.0]
    for p, q in zip(*_of(drafted, proposals, checks), strict=True):
        weights.append(min(1.0, weights[-1] * q / p))
    stays = weights[1:]
    if len(drafted) > 1:
        # Up to each token but the last, R / (R + 1 − w), where R is the sum of the excess of w·q over p at the next.
        scaled = checks[1 : len(drafted)] * checks.new_tensor(stays[:-1])[:, None]
        more = (scaled - torch.stack(list(proposals[1:]))).clamp_(min=0.0).sum(-1).tolist()
        stays[:-1] = [1.0 if w >= 1 else left / (left + 1 - w) for w, left in zip(stays, more, strict=False)]
    accepted = max((place + 1 for place, one in enumerate(stays) if uniforms() < one), default=0)
    return _verdict(accepted, stays, proposals, checks, weights[accepted])


def ratio(p: float, q: float) -> float:
    """min(1, q / p); 0 / 0 counts as 0."""
    return min(1.0, q / p) if p > 0 else float(q > 0)


def _of(drafted: Sequence[int], proposals: Sequence[Tensor], checks: Tensor) -> tuple[list[float], list[float]]:
    """p and q of every drafted token. In few operations and one transfer: next to the passes, each takes a while."""
    if not drafted:
        return [], []
    ids = torch.tensor(drafted).to(checks.device, non_blocking=True)[:, None]
    # The target may also have a distribution for the next place.
    both = torch.cat([torch.stack(list(proposals)).gather(1, ids), checks[: len(drafted)].gather(1, ids)])
    found = both.flatten().tolist()
    return found[: len(drafted)], found[len(drafted) :]


def _verdict(
    accepted: int, stays: Sequence[float], proposals: Sequence[Tensor], checks: Tensor, weight: float = 1.0
) -> Verification:
    """Verdict with the first ``accepted`` tokens accepted; ``weight`` is w at the next one."""
    fell = accepted < len(proposals)
    rest = residual(proposals[accepted], checks[accepted], weight) if fell else checks[-1]
    return Verification(accepted, tuple(stays[: accepted + 1]), rest)


class TokenGroups:
    """Membership of ids in groups, as the sparse matrix w (groups, ids)."""

    def __init__(self, groups: Iterable[Sequence[int]], ids: int, device: torch.device | str = "cpu") -> None:
        """``groups`` of ids below ``ids``; an id without a group becomes its own group. Raises :class:`ValueError` for
        a group with other ids, or with one twice."""
        listed = [sorted(group) for group in groups]
        counts = [0] * ids
        for group in listed:
            if not group or group[0] < 0 or group[-1] >= ids or len(set(group)) < len(group):
                raise ValueError(f"A group must hold different ids below {ids}, not {group}.")
            for one in group:
                counts[one] += 1
        listed += [[one] for one, count in enumerate(counts) if not count]
        members = torch.tensor([one for group in listed for one in group])
        numbers = torch.repeat_interleave(torch.arange(len(listed)), torch.tensor([len(one) for one in listed]))
        shares = 1.0 / torch.tensor(counts).clamp(min=1)[members]
        self.ids = ids
        self.groups = len(listed)
        self._gathering = _sparse(numbers, members, shares, (self.groups, ids)).to(device)
        self._spreading = _sparse(members, numbers, shares, (ids, self.groups)).to(device)

    def masses(self, probabilities: Tensor) -> Tensor:
        """Map probabilities (n, ids), float32, to masses (n, groups)."""
        return (self._gathering @ probabilities.T).T

    def spread(self, values: Tensor) -> Tensor:
        """Map values (n, groups), float32, to the mean value (n, ids) of each id's groups."""
        return (self._spreading @ values.T).T


def by_group(groups: TokenGroups, *, within: bool = True) -> Rule:
    """Rule in groups, with one random number per checked token. ``within``: reject tokens that the target would not
    draw itself; otherwise, as published, they may stand for their group. Groups are distributed as the target's."""

    def verify(
        drafted: Sequence[int], proposals: Sequence[Tensor], checks: Tensor, uniforms: Callable[[], float]
    ) -> Verification:
        count = len(drafted)
        if not count:
            return Verification(0, (), checks[-1])
        p, q = torch.stack(list(proposals)), checks[:count]
        if within:
            p = torch.where(q > 0, p, 0.0)
        of_draft, of_target = groups.masses(p), groups.masses(q)
        stays = groups.spread(torch.where(of_target > 0, of_target / of_draft, 0.0).clamp(max=1.0))
        places = torch.arange(count, device=stays.device)
        ids = torch.tensor(list(drafted)).to(stays.device, non_blocking=True)
        found = torch.where(p[places, ids] > 0, stays[places, ids], 0.0).cpu().double().tolist()
        accepted = next((place for place, one in enumerate(found) if uniforms() >= one), count)
        rest = checks[-1] if accepted == count else replacement(groups, p, q, accepted)
        return Verification(accepted, tuple(found[: accepted + 1]), rest)

    return verify


def replacement(groups: TokenGroups, p: Tensor, q: Tensor, place: int) -> Tensor:
    """Distribution (ids,), unnormalised, that replaces a rejected token at ``place`` of the draft's and the target's
    distributions (n, ids); q if the draft's groups have at least the target's masses."""
    of_draft, of_target = (groups.masses(one[place : place + 1]) for one in (p, q))
    share = torch.where(of_target > 0, (of_target - of_draft).clamp_(min=0.0) / of_target, 0.0)
    more = q[place] * groups.spread(share)[0]
    return torch.where(more.sum() > 0, more, q[place])


def _sparse(rows: Tensor, columns: Tensor, values: Tensor, size: tuple[int, int]) -> Tensor:
    """Sparse matrix by rows; products with it are twenty times as fast as sums over segments."""
    order = torch.argsort(rows, stable=True)
    starts = torch.cat([torch.zeros(1, dtype=torch.long), torch.bincount(rows, minlength=size[0]).cumsum(0)])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(starts, columns[order], values[order], size, check_invariants=True)
