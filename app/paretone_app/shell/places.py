"""Places of panels: the workspaces, the parts of the window, and where a panel is in them. No Qt."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True)
class Workspace:
    """One of the window's activities, with panels and a layout for it alone."""

    name: str
    """By which its layout is saved."""
    title: str
    tip: str
    icon: str
    below: float = 0.4
    """Share of the height that panels below the centre have at first."""
    gallery: bool = False
    """Whether the centre shows one panel at a time, with pictures of the others next to it instead of tabs."""
    figures: bool = True
    """Whether measurements may be shown around its panels: not where ears are to judge."""


LISTEN = Workspace("listen", "Listen", "Speak, hear and compare", "headphones", below=0.45)
INSPECT = Workspace("inspect", "Inspect", "See what happens inside the model", "magnifier", gallery=True)
EXPLORE = Workspace("explore", "Explore", "Weigh speed against quality", "scatter", below=0.285)
TEST = Workspace("test", "Test", "Find out blindly what can be heard", "ear", figures=False)
TRAIN = Workspace("train", "Train", "Train drafts, students and faster weights", "curve")
WORKSPACES = (LISTEN, INSPECT, EXPLORE, TEST, TRAIN)


class Region(Enum):
    """A part of a workspace. Panels that share one are tabs, the first of them in front; head and foot are a fixed bar
    each, the head of its panel's home and the foot of the window."""

    LEFT = "left"
    CENTRE = "centre"
    RIGHT = "right of the centre"
    BELOW = "below the centre"
    HEAD = "above the other panels"
    FOOT = "below everything else, in every workspace"


DOCKED = (Region.LEFT, Region.CENTRE, Region.RIGHT, Region.BELOW)
"""The regions whose panels can be moved and closed."""
SIDES = (Region.LEFT, Region.RIGHT)
"""The regions that keep their width when the window gets wider or narrower."""


@dataclass(frozen=True)
class Place:
    """One panel's place: the name it is saved and found by, its title, and where it is at first."""

    name: str
    title: str
    region: Region
    families: tuple[str, ...] = ()
    """The model families it is shown for; empty for all. Hidden for other families."""
    workspaces: tuple[Workspace, ...] = (INSPECT,)
    """Where it lives: shown at first in the first of these, its home, and in the others once the user asks for it."""

    uncovered: bool = False
    """Whether messages keep clear of it: its figures are what an action has just found."""

    @property
    def home(self) -> Workspace:
        """The workspace that it is shown in at first."""
        return self.workspaces[0]
