"""Declaration of a feature, in its folder's ``__init__.py``; imports neither panels nor Qt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from app.shell.places import Place

if TYPE_CHECKING:
    from app.features.presenter import Presenter, Services


@dataclass(frozen=True)
class Feature:
    """One part of the user's work, in a folder of its name."""

    name: str
    presenter: str | Callable[[Services], Presenter]
    """Class of its presenter, as ``"package.module:Class"``, so that declaring a feature imports nothing."""
    places: tuple[Place, ...] = ()
    """The docks of its panels; none for a feature of actions and dialogs."""
    training: str = ""
    """Its training, as ``"package.module:TRAINING"``; see :mod:`app.features.training.model`."""
    keys: tuple[tuple[str, str], ...] = ()
    """Keys of its panel: action and keys."""
    about: str = ""
    """A sentence or two for a newcomer."""
    technique: str = ""
    """The name of the technique that it belongs to. Only the folders of such features may know that technique."""

    def make(self, services: Services) -> Presenter:
        """The feature's presenter."""
        if not isinstance(self.presenter, str):
            return self.presenter(services)
        module, _, name = self.presenter.partition(":")
        return getattr(import_module(module), name)(services)
