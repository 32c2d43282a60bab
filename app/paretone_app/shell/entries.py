"""What features bring to the window's menus, its main job, tour and glossary: actions, entries, steps, stops,
terms. No Qt."""

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
        return self.workspaces[0]


TERM = "term"
"""Property of widgets: the title or key of the term that they are about."""


SEARCH = "search"
"""Property of the field that *Find* goes to in its panel."""


@dataclass(frozen=True)
class FeatureAction:
    """An action of one feature; its presenter binds it and says when it can be done."""

    name: str
    """By which it is found; see :class:`paretone_app.shell.actions.Actions`."""
    text: str
    tip: str
    shortcut: str = ""
    checkable: bool = False


@dataclass(frozen=True)
class MenuPart:
    """Entries of one menu."""

    menu: str
    """Title of the menu, with its mnemonic. A title that no menu has yet makes a new one, before *View*."""
    actions: tuple[str | None, ...]
    """Names of actions, of features or of the window; a separator for each ``None``."""
    after: str = ""
    """The action that they follow; the end of the menu by default."""
    before: str = ""
    """The action that they precede, instead."""
    inside: str = ""
    """Title of the menu that a new one is in; the menu bar by default."""


@dataclass(frozen=True)
class MainStep:
    """A step of the main job, from a sentence to a profile. The feature's presenter says whether it is done."""

    action: str
    title: str
    hint: str
    """What to press and why, for the guide."""
    meaning: str
    """What it does, for *First steps*."""
    after: str = ""
    """Action of the step that it follows; the last step of the features before by default."""


@dataclass(frozen=True)
class TourStop:
    """A stop of the tour: one thing that the user does with the real window. What there is to do, and where, says the
    feature's presenter."""

    name: str
    title: str
    text: str
    """One or two sentences: what this is, and what to notice."""
    place: str = ""
    """Name of the panel that is brought into view."""
    after: str = ""
    """Name of the stop that it follows; the stops of the features before by default."""
    families: tuple[str, ...] = ()
    """The model families that have it; empty for all."""


@dataclass(frozen=True)
class Term:
    title: str
    text: str
    symbol: str = ""
    """What the papers write."""
    unit: str = ""
    source: str = ""
    """The paper that it comes from."""
    owner: str = ""
    """Of what it is a knob."""

    @property
    def key(self) -> str:
        """By which it is found where several have its title."""
        return f"{self.owner}: {self.title}" if self.owner else self.title
