"""What features bring to the window's menus, its main job, tour and glossary: actions, entries, steps, stops,
terms. No Qt."""

from __future__ import annotations

from dataclasses import dataclass

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
    """Wording, with its mnemonic."""
    tip: str
    shortcut: str = ""
    checkable: bool = False
    """Whether it is on or off."""


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
    """Name of the action that does it."""
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
    """An entry of the glossary."""

    title: str
    text: str
    """What it means, in plain English."""
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
