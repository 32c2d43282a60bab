"""What features bring to the window's menus and to its main job: actions, entries of menus, steps. No Qt."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FeatureAction:
    """An action of one feature; its presenter binds it and says when it can be done."""

    name: str
    """By which it is found; see :class:`app.shell.actions.Actions`."""
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
