"""What features add to the window: actions, menu entries, steps of the main job, tour stops, glossary terms. No Qt."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import Enum
from functools import cached_property


@dataclass(frozen=True)
class Workspace:
    """An activity of the window, with its own panels and layout."""

    name: str
    """Key of the saved layout."""
    title: str
    tip: str
    icon: str
    below: float = 0.4
    """Default share of the height for panels below the centre."""
    gallery: bool = False
    """Whether the centre shows one panel at a time, with cards for the others instead of tabs."""
    figures: bool = True
    """Whether measurements may be shown around the panels; off for blind tests."""


LISTEN = Workspace("listen", "Listen", "Speak, hear and compare", "headphones", below=0.5)
INSPECT = Workspace("inspect", "Inspect", "See what happens inside the model", "magnifier", gallery=True)
EXPLORE = Workspace("explore", "Explore", "Weigh speed against quality", "scatter")
TEST = Workspace("test", "Test", "Find out blindly what can be heard", "ear", figures=False)
TRAIN = Workspace("train", "Train", "Train drafts, students and faster weights", "curve")
WORKSPACES = (LISTEN, INSPECT, EXPLORE, TEST, TRAIN)


class Region(Enum):
    """A part of a workspace. Panels in the same region are tabs, the first in front. HEAD is a fixed bar above the
    panels of one workspace, FOOT one at the bottom of the window."""

    LEFT = "left"
    CENTRE = "centre"
    RIGHT = "right of the centre"
    BELOW = "below the centre"
    HEAD = "above the other panels"
    FOOT = "below everything else, in every workspace"


DOCKED = (Region.LEFT, Region.CENTRE, Region.RIGHT, Region.BELOW)
"""Regions with movable panels."""
SIDES = (Region.LEFT, Region.RIGHT)
"""Regions that keep their width when the window is resized."""


@dataclass(frozen=True)
class Place:
    """A panel's name (also the key of its saved place), title and default place."""

    name: str
    title: str
    region: Region
    families: tuple[str, ...] = ()
    """Model families it is shown for; hidden for others. Empty for all."""
    workspaces: tuple[Workspace, ...] = (INSPECT,)
    """Workspaces that have it: shown in the first, its home; in the others on request."""
    first: bool = False
    """Whether it is in front of the other tabs of its region at first."""
    uncovered: bool = False
    """Whether messages keep clear of it: it shows fresh measurements."""

    @property
    def home(self) -> Workspace:
        return self.workspaces[0]

    def suits(self, families: Collection[str]) -> bool:
        return not self.families or not set(self.families).isdisjoint(families)


TERM = "term"
"""Widget property: title or key of the term that it shows."""
SEARCH = "search"
"""Widget property: marks the field that *Find* focuses."""


@dataclass(frozen=True)
class FeatureAction:
    """An action of a feature; its presenter binds and enables it."""

    name: str
    """Key in :class:`paretone_app.shell.actions.Actions`."""
    text: str
    tip: str
    shortcut: str = ""
    checkable: bool = False


@dataclass(frozen=True)
class MenuPart:
    menu: str
    """Title of the menu, with its mnemonic. A new title makes a new menu, before *View*."""
    actions: tuple[str | None, ...]
    """Names of actions, of features or of the window; ``None`` for a separator."""
    after: str = ""
    """Insert after this action; by default at the end of the menu."""
    before: str = ""
    """Insert before this action instead."""
    inside: str = ""
    """Title of the parent of a new menu; the menu bar by default."""


@dataclass(frozen=True)
class MainStep:
    """A step of the main job, from a sentence to a profile. The feature's presenter knows whether it is done."""

    action: str
    title: str
    hint: str
    """For the guide: what to press and why."""
    meaning: str
    """For *First steps*: what it does."""
    after: str = ""
    """Action of the step before it; by default the last step of the features before."""


@dataclass(frozen=True)
class TourStop:
    """One thing for the user to do in the real window; the feature's presenter gives instruction and widget."""

    name: str
    title: str
    text: str
    """One or two sentences: what this is and what to notice."""
    place: str = ""
    after: str = ""
    """Name of the stop before it; by default after the stops of the features before."""
    families: tuple[str, ...] = ()
    """Model families it applies to; empty for all."""


@dataclass(frozen=True)
class Term:
    title: str
    text: str
    symbol: str = ""
    unit: str = ""
    source: str = ""
    owner: str = ""
    """Technique whose parameter this is."""

    @property
    def label(self) -> str:
        return f"{self.title} {self.symbol}".rstrip()

    @property
    def key(self) -> str:
        """Unique key, if several terms share a title."""
        return f"{self.owner}: {self.title}" if self.owner else self.title


@dataclass(frozen=True)
class Findable:
    """Something that the palette finds."""

    title: str
    kind: str
    """Such as ``Action``."""
    detail: str
    """Shortcut of an action, family of a model, value of a setting, time of a take, or owner of a term."""
    meaning: str
    """Explanation, as a sentence."""
    go: Callable[[], object]
    why_not: str = ""
    """Why it cannot be chosen now, as a sentence."""
    more: str = ""
    """Further words to search."""
    group: str = ""
    """Heading that it is listed below while nothing is searched."""
    cells: tuple[str, ...] = ()
    """Texts of its columns, where a list has columns of its own."""

    @property
    def key(self) -> str:
        return f"{self.kind}: {self.title}, {self.more}"

    @cached_property
    def words(self) -> str:
        return " ".join((self.title, self.kind, self.detail, self.meaning, self.more)).casefold()
