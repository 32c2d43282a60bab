"""Place of a panel's dock: name, title, part of the window, and the families it is shown for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Region(Enum):
    """A part of the window. Panels that share one are tabs, the first of them in front; only the foot is a fixed bar
    for each panel."""

    LEFT = "left"
    CENTRE = "centre"
    RIGHT = "right of the centre"
    BELOW = "below the centre"
    FOOT = "below everything else"


@dataclass(frozen=True)
class Place:
    """One panel's dock: the name it is saved and found by, its title, and where it is at first."""

    name: str
    title: str
    region: Region
    families: tuple[str, ...] = ()
    """The model families it is shown for; empty for all. Hidden for other families."""
