"""Classifier-free guidance of the flow family, with one condition (F5) and with two (MegaTTS 3). Torch-free."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from paretone.setting.knobs import Values

if TYPE_CHECKING:
    from torch import Tensor

ALL, TEXT_ALONE, NOTHING = BRANCHES = (0, 1, 2)
"""Branches of the flow family: with voice and text, with the text alone, with neither: each knows less."""
SMALLEST_GUIDANCE = 1e-5
"""Below this strength the official code runs the conditional branch only (``CFM.sample``)."""


def is_guided(strength: float) -> bool:
    """Whether ``strength`` needs the unconditional branch."""
    return strength >= SMALLEST_GUIDANCE


def guided_velocity(branches: Tensor, strength: float) -> Tensor:
    """Combine the velocities of the branches: v_c + strength * (v_c - v_u). ``branches`` is (2·batch, frames, bands),
    conditional rows first, or (batch, frames, bands) without guidance. The usual guidance weight w (1: no guidance) is
    ``1 + strength``."""
    if not is_guided(strength):
        return branches
    conditional, unconditional = branches.chunk(2)
    return conditional + (conditional - unconditional) * strength


def branch_weights(intelligibility: float, similarity: float) -> tuple[float, float, float]:
    """Weights of the velocities of MegaTTS 3's three branches: prompt and text, text alone, neither; their sum is one.
    The official form, with p for intelligibility and t for similarity (Jiang et al., arXiv 2502.18924), is v₂ + p·(v₁ −
    v₂) + t·(v₀ − v₁)."""
    return similarity, intelligibility - similarity, 1 - intelligibility


def needed_branches(intelligibility: float, similarity: float) -> tuple[int, ...]:
    """Branches with a weight: usually all three, only the first if both arguments are 1."""
    return tuple(branch for branch, weight in enumerate(branch_weights(intelligibility, similarity)) if weight)


def three_branch_velocity(branches: Tensor, intelligibility: float, similarity: float) -> Tensor:
    """Combine the velocities of the needed branches, (branches·batch, frames, bands), branch-major."""
    weights = [weight for weight in branch_weights(intelligibility, similarity) if weight]
    first, *others = branches.chunk(len(weights))
    velocity = first if weights[0] == 1 else weights[0] * first
    for weight, other in zip(weights[1:], others, strict=True):
        velocity = velocity + weight * other
    return velocity


@dataclass(frozen=True)
class Strength:
    """Strength of one effect of guidance between two times of sampling: 0 is noise, 1 speech."""

    value: float
    first: float = 0.0
    last: float = 1.0

    def at(self, time: float) -> float:
        """The strength at ``time``; 0 outside."""
        return self.value if self.first <= time < self.last else 0.0


@dataclass(frozen=True)
class Effect:
    """Effect of branch ``first`` over branch ``last``: their difference in velocity, with its strength."""

    first: int
    last: int
    strength: float


@dataclass(frozen=True)
class Saturation:
    """Criterion of saturation of an effect, and its replacement; see
    :class:`paretone.sampling.branch_guidance.BranchGuidance`."""

    threshold: float
    """With ``reuse``, the predicted relative change since the last computation; else one minus the cosine of the two
    branches' velocities. Saturated below this."""
    reuse: bool
    """Whether to reuse the last difference; else the effect ends."""
    again: int = 0
    """With ``reuse``, most evaluations between two computations; 0: no limit."""


def effects(strengths: Sequence[Strength], time: float) -> tuple[Effect, ...]:
    """Effects at ``time``. ``strengths`` are those of each branch over the next. Neighbours of equal strength merge
    into one effect, without their middle branch: equal strengths are plain guidance."""
    found: list[Effect] = []
    for branch, strength in enumerate(strengths):
        value = strength.at(time)
        if not value:
            continue
        if found and (found[-1].last, found[-1].strength) == (branch, value):
            found[-1] = Effect(found[-1].first, branch + 1, value)
        else:
            found.append(Effect(branch, branch + 1, value))
    return tuple(found)


def branches_of(found: Sequence[Effect]) -> tuple[int, ...]:
    """Branches that these effects need; the first always runs."""
    return tuple(sorted({0, *(one.first for one in found), *(one.last for one in found)}))


def most_branches(strengths: Sequence[Strength]) -> int:
    """Greatest number of branches needed at any time."""
    changes = {0.0, *(time for one in strengths for time in (one.first, one.last) if time < 1)}
    return max(len(branches_of(effects(strengths, time))) for time in changes)


class Guidance(Protocol):
    def strengths(self, options: Values) -> tuple[Strength, ...]:
        """The strength of each of :data:`BRANCHES` over the next; models of the flow family only."""

    def branches(self, options: Values) -> int:
        """Number of branches that run under ``options``."""

    def off(self, options: Values) -> Values:
        """``options`` with the fully conditioned branch only."""


@dataclass(frozen=True)
class StrengthGuidance:
    """One strength over the unconditional branch: F5-TTS, masked models; without that option, no guidance."""

    def strengths(self, options: Values) -> tuple[Strength, ...]:
        value = options.get("guidance", 0.0)
        strength = Strength(value if is_guided(value) else 0.0)
        return strength, strength

    def branches(self, options: Values) -> int:
        return 2 if is_guided(options.get("guidance", 0.0)) else 1

    def off(self, options: Values) -> Values:
        return options.replace(guidance=0.0) if "guidance" in options else options


STRENGTH = StrengthGuidance()


@dataclass(frozen=True)
class TwoWeightGuidance:
    """A weight for the text and one for the voice: MegaTTS 3."""

    def strengths(self, options: Values) -> tuple[Strength, ...]:
        return Strength(options["similarity"] - 1), Strength(options["intelligibility"] - 1)

    def branches(self, options: Values) -> int:
        """Three, or fewer if a weight is 1."""
        return len(needed_branches(options["intelligibility"], options["similarity"]))

    def off(self, options: Values) -> Values:
        return options.replace(intelligibility=1.0, similarity=1.0)
