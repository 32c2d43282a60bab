"""Acceptance of drafted tokens in groups of tokens that sound alike (principled coarse-graining, PCG, Yanuka et al.,
arXiv 2511.13732).

Groups may overlap. A token t gives each of the n groups that hold it the share w = 1 / n of its probability, so a group
k has the mass P(k) = Σ w·p(t) under the draft and Q(k) = Σ w·q(t) under the target. A drafted token belongs to one of
its groups, drawn by w, and stays with probability min(1, Q(k) / P(k)). After the first that does not stay, a group is
drawn from max(0, Q − P), and a token of it from w·q. The group of each token is then distributed exactly as the
target's own; which member of it is spoken is, where a draft stays, the draft's choice. With groups of one token this is
the rule token by token (:func:`paretone.sampling.verification.by_token` without tolerance).

The group of a drafted token is not drawn here: averaged over that draw, t stays with probability Σ w·min(1, Q / P), and
what replaces it has probability q(t) · Σ w·max(0, Q − P) / Q. Tokens are distributed the same, with one random number
per token.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor

from paretone.sampling.verification import Rule, Verification


class TokenGroups:
    """Which ids belong to which groups, as the sparse matrix w (groups, ids)."""

    def __init__(self, groups: Iterable[Sequence[int]], ids: int, device: torch.device | str = "cpu") -> None:
        """``groups`` of ids below ``ids``; an id in none of them is a group by itself. Raises :class:`ValueError` for a
        group with other ids, or with one twice."""
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
        """Probabilities (n, ids), float32, to the masses (n, groups)."""
        return (self._gathering @ probabilities.T).T

    def spread(self, values: Tensor) -> Tensor:
        """Values (n, groups), float32, to the mean value (n, ids) of each id's groups."""
        return (self._spreading @ values.T).T


def by_group(groups: TokenGroups, *, within: bool = True) -> Rule:
    """In groups, one random number per checked token. ``within``: a token that the target would not draw itself never
    stays; without, as published, it may stand for its group. Either way the groups are distributed as the target's."""

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
    """Distribution (ids,), up to its sum, of the token that replaces a rejected one at ``place`` of the draft's and the
    target's distributions (n, ids); q if the draft's groups have at least the target's masses."""
    of_draft, of_target = (groups.masses(one[place : place + 1]) for one in (p, q))
    share = torch.where(of_target > 0, (of_target - of_draft).clamp_(min=0.0) / of_target, 0.0)
    more = q[place] * groups.spread(share)[0]
    return torch.where(more.sum() > 0, more, q[place])


def _sparse(rows: Tensor, columns: Tensor, values: Tensor, size: tuple[int, int]) -> Tensor:
    """A sparse matrix by rows; products with it are twenty times as fast as sums over segments."""
    order = torch.argsort(rows, stable=True)
    starts = torch.cat([torch.zeros(1, dtype=torch.long), torch.bincount(rows, minlength=size[0]).cumsum(0)])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(starts, columns[order], values[order], size, check_invariants=True)
