"""Requests and results of the preparations of token groups. Torch-free and picklable."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from paretone.models.base import Voice
from paretone.setting.setting import Setting
from paretone.techniques.token_groups.groups import Groups


@dataclass(frozen=True)
class FindGroups:
    """Find groups of the tokens of the weights that ``setting`` runs, as its knobs of the technique say. The result is
    :class:`GroupsFound`."""

    activity: ClassVar[str] = "finding token groups"

    setting: Setting


@dataclass(frozen=True)
class GroupsFound:
    """Groups that were found."""

    groups: Groups
    seconds: float


@dataclass(frozen=True)
class HearGroup:
    """Decode ``members``, ids of tokens, in ``voice``, each held for ``held_seconds``, one after another. The result is
    :class:`GroupHeard`."""

    activity: ClassVar[str] = "decoding a group of tokens"

    setting: Setting
    voice: Voice
    members: tuple[int, ...]
    held_seconds: float = 0.4


@dataclass(frozen=True)
class GroupHeard:
    """The members of a group, one after another, with silence in between."""

    members: tuple[int, ...]
    samples: np.ndarray = field(repr=False)
    """(n,) float32 at the model's rate."""
    sample_rate: int
    starts: tuple[float, ...]
    """Seconds at which each member begins."""
