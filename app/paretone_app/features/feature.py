"""Declaration of a feature, in its folder’s ``__init__.py`` or in the registry; imports neither panels nor Qt."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from paretone_app.shell.entries import FeatureAction, MainStep, MenuPart, Place, TourStop

if TYPE_CHECKING:
    from paretone_app.features.presenter import Presenter, Services


@dataclass(frozen=True)
class Feature:
    """One part of the user's work, in a folder of its name."""

    name: str
    presenter: str | Callable[[Services], Presenter]
    """Class of its presenter, as ``"package.module:Class"``, so that declaring a feature imports nothing."""
    places: tuple[Place, ...] = ()
    """The docks of its panels; none for a feature of actions and dialogs."""
    actions: tuple[FeatureAction, ...] = ()
    menus: tuple[MenuPart, ...] = ()
    """Menu entries of the actions; an action with a shortcut needs none."""
    steps: tuple[MainStep, ...] = ()
    stops: tuple[TourStop, ...] = ()
    study: str = ""
    """A kind of study that it adds to the form, as ``"package.module:KIND"``; see
    :mod:`paretone_app.features.studies.forms`."""
    terms: str = ""
    """Glossary terms, as ``"package.module:TERMS"``; knobs of techniques are included anyway."""
    keys: tuple[tuple[str, str], ...] = ()
    about: str = ""
    """A sentence or two for a newcomer."""
    technique: str = ""
    """The technique it belongs to. Only the folders of such features may refer to that technique."""


def main_job(features: Iterable[Feature]) -> dict[MainStep, str]:
    """The steps from a sentence to a profile, in order, each with the name of its feature."""
    steps: list[tuple[MainStep, str]] = []
    for feature in features:
        for step in feature.steps:
            follows = (index for index, (one, _) in enumerate(steps, start=1) if one.action == step.after)
            steps.insert(next(follows, len(steps)), (step, feature.name))
    return dict(steps)


def tour_stops(features: Iterable[Feature]) -> dict[TourStop, str]:
    """Ordered stops, each with its feature's name. A stop follows its ``after`` stop, wherever that is declared, else
    the stops of earlier features. Raises :class:`ValueError` if stops follow each other in a circle."""
    declared = [(stop, feature.name) for feature in features for stop in feature.stops]
    names = {stop.name for stop, _ in declared}
    ordered = [one for one in declared if one[0].after not in names]
    waiting = [one for one in declared if one not in ordered]
    while waiting:
        there = [stop.name for stop, _ in ordered]
        if (following := next((one for one in waiting if one[0].after in there), None)) is None:
            raise ValueError(f"Stops of the tour follow each other in a circle: {[stop.name for stop, _ in waiting]}.")
        waiting.remove(following)
        ordered.insert(there.index(following[0].after) + 1, following)
    return dict(ordered)
