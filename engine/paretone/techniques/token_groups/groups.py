"""Groups of speech tokens that sound alike: model, search, members; requests and results. Torch-free."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import numpy as np

from paretone.errors import ProfileError
from paretone.fields import exact
from paretone.models.base import Voice
from paretone.reading import shown
from paretone.setting.compatibility import Compatibility, checkpoint_text
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique

SCHEMA = 1
SPACES = ("scores", "embeddings")
"""Rows compared for similarity: of the table of scores, or of the embeddings."""
_FIELDS = {
    "schema": int,
    "model": str,
    "checkpoint": str,
    "codes": int,
    "space": str,
    "cosine": float | int,
    "smallest": int,
    "largest": int,
    "groups": list[list[int]],
}
_PLAIN = tuple(name for name in _FIELDS if name not in ("schema", "groups"))
"""Fields that a file holds as they are."""


@dataclass(frozen=True)
class Groups:
    """Groups of ids below ``codes``; an id without a group is its own group. Construction checks all fields and raises
    :class:`ProfileError`, which names the faulty one."""

    model: str
    checkpoint: str
    """SHA-256 of the weights of the tokens, hexadecimal."""
    codes: int
    space: str
    cosine: float
    """Least cosine of a member to the group's centre."""
    smallest: int
    largest: int
    """Bounds of the number of members."""
    members: tuple[tuple[int, ...], ...] = field(repr=False)
    """Ids of each group, ascending."""

    def __post_init__(self) -> None:
        if self.space not in SPACES:
            raise ProfileError(f"The token groups' space must be one of {', '.join(SPACES)}, not {shown(self.space)}.")
        for number, group in enumerate(self.members):
            ascending = all(one < other for one, other in pairwise(group))
            if len(group) < 2 or not ascending or group[0] < 0 or group[-1] >= self.codes:
                raise ProfileError(
                    f"Token group {number + 1} must hold at least two ids below {self.codes}, ascending, not {group}."
                )

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits that are equal for groups that act alike on the same model."""
        acting = [self.model, self.checkpoint, self.codes, sorted(self.members)]
        return hashlib.sha256(json.dumps(acting).encode()).hexdigest()[:16]

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def mismatch(self, compatibility: Compatibility) -> str:
        """Reason why they cannot be used under ``compatibility``, as the end of a sentence, or ``""``."""
        if self.model != compatibility.model:
            return f"they belong to model {shown(self.model)}, but {shown(compatibility.model)} is in use"
        if self.checkpoint != compatibility.fingerprint:
            both = checkpoint_text(self.checkpoint), checkpoint_text(compatibility.fingerprint)
            return f"they belong to checkpoint {both[0]}, but {both[1]} is in use"
        return ""

    @property
    def grouped(self) -> int:
        """Number of ids in groups of several."""
        return len({one for group in self.members for one in group})

    @property
    def by_size(self) -> tuple[tuple[int, ...], ...]:
        return tuple(sorted(self.members, key=len, reverse=True))

    @property
    def mean_size(self) -> float:
        """Mean number of members of groups of several; 0 if there are none."""
        return sum(map(len, self.members)) / len(self.members) if self.members else 0.0

    @property
    def sizes(self) -> Mapping[int, int]:
        """Number of groups by number of members, ascending, including single ids."""
        counts = Counter(map(len, self.members))
        counts[1] += self.codes - self.grouped
        return dict(sorted(counts.items()))

    @property
    def line(self) -> str:
        return (
            f"{len(self.members)} groups of {self.mean_size:.1f} tokens on average, with {self.grouped} of "
            f"{self.codes} tokens in them (similarity from {self.cosine:g}, {self.space})"
        )

    def to_json(self) -> dict:
        plain = {name: getattr(self, name) for name in _PLAIN}
        return {"schema": SCHEMA, **plain, "groups": [list(group) for group in self.members]}

    @classmethod
    def from_json(cls, data: object, where: str = "token groups") -> Groups:
        """Read the result of :meth:`to_json`. Raises :class:`ProfileError`, which names the faulty field."""
        found = exact(data, where, _FIELDS, ProfileError)
        if found["schema"] != SCHEMA:
            raise ProfileError(f"{where} has schema {found['schema']}; this version reads schema {SCHEMA}.")
        plain = {name: found[name] for name in _PLAIN} | {"cosine": float(found["cosine"])}
        return cls(**plain, members=tuple(map(tuple, found["groups"])))


DECIDED = ("cosine", "smallest", "largest", "space")
"""Knobs of the search for groups."""


def check(groups: Groups, entry: UsedTechnique, compatibility: Compatibility) -> None:
    """Raise :class:`ProfileError` if groups, knobs of ``entry`` and the profile's compatibility disagree."""
    for name in DECIDED:
        own = getattr(groups, name)
        if (said := entry.knobs.get(name, own)) != own:
            raise ProfileError(f"groups.{name} is {shown(own)}, but setting.techniques says {shown(said)}.")
    if reason := groups.mismatch(compatibility):
        raise ProfileError(f"groups cannot be used in this profile: {reason}.")


def fixed_knobs(groups: Groups, knobs: Values) -> Values:
    """``knobs`` with those of the groups' search."""
    return knobs.replace(**{name: getattr(groups, name) for name in DECIDED})


@dataclass(frozen=True)
class FindGroups:
    """Request to find groups of the tokens of ``setting``'s weights, by its knobs. Result: :class:`GroupsFound`."""

    activity: ClassVar[str] = "finding token groups"

    setting: Setting


@dataclass(frozen=True)
class GroupsFound:
    groups: Groups
    seconds: float


@dataclass(frozen=True)
class HearGroup:
    """Request to decode token ids ``members`` in ``voice``, each for ``held_seconds``. Result: :class:`GroupHeard`."""

    activity: ClassVar[str] = "decoding a group of tokens"

    setting: Setting
    voice: Voice
    members: tuple[int, ...]
    held_seconds: float = 0.4


@dataclass(frozen=True)
class GroupHeard:
    """Members of a group, one after another, with silence in between."""

    members: tuple[int, ...]
    samples: np.ndarray = field(repr=False)
    """(n,) float32 at the model's rate."""
    sample_rate: int
    starts: tuple[float, ...]
    """Start time of each member (s)."""
