"""Which points of the trade-off view are wanted. Free of Qt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

BASELINE = ""
"""Stands for "no technique" among techniques."""
ORIGINS = ("source", "ghosts", "model", "voice")
"""Fields of a filter that name what points come from."""


@dataclass(frozen=True)
class Range:
    """A part of an axis, its ends included."""

    axis: str
    """By the name of the figure or knob."""
    low: float
    high: float


@dataclass(frozen=True)
class Filter:
    """Which points are wanted."""

    source: str = ""
    """Takes, or the title of a study; ``""`` for all."""
    model: str = ""
    voice: str = ""
    words: str = ""
    """All of them must occur."""
    hidden: frozenset[str] = frozenset()
    """Techniques, by name, that no shown point uses; :data:`BASELINE` for those that use none."""
    only: frozenset[str] | None = None
    """Keys of the only points that are shown; ``None`` for all."""
    ranges: tuple[Range, ...] = ()
    """In all of which a shown point's values lie."""
    ghosts: str = ""
    """Takes, or the title of a study, whose points are ghosts: drawn faintly beneath the others, and never on the
    front; ``""`` for none."""

    def with_origins(self, origins: Mapping[str, str]) -> Filter:
        """A copy with these sources, ghosts, models, voices or words, by the names of their fields."""
        return replace(
            self,
            source=origins.get("source", self.source),
            ghosts=origins.get("ghosts", self.ghosts),
            model=origins.get("model", self.model),
            voice=origins.get("voice", self.voice),
            words=origins.get("words", self.words),
        )

    @property
    def filters(self) -> bool:
        """Whether it leaves anything out."""
        return self != Filter()

    @property
    def of_ghosts(self) -> Filter | None:
        """The same filter for the ghosts; ``None`` if there are to be none."""
        if not self.ghosts or self.ghosts == self.source:
            return None
        return replace(self, source=self.ghosts, ghosts="")
