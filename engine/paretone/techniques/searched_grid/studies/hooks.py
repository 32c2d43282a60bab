"""Hooks of searched grids in studies: see :mod:`paretone.studies.hooks`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from paretone.models.base import SpeechModel, Utterance
from paretone.observer import Observer
from paretone.setting.setting import Setting
from paretone.studies.results import results
from paretone.studies.store import Store
from paretone.techniques.searched_grid.grid import PlacedGrid
from paretone.techniques.searched_grid.studies.comparison import files_of


def preparer() -> Callable[[SpeechModel, Sequence[Utterance], Setting, Observer], PlacedGrid]:
    """Searches a grid for each setting, on the sentences that the study calibrates on."""

    def prepare(
        model: SpeechModel, utterances: Sequence[Utterance], setting: Setting, observer: Observer
    ) -> PlacedGrid:
        # Imports torch.
        from paretone.techniques.searched_grid.searching import search_grid

        return search_grid(model, utterances, setting, observer).grid

    return prepare


def files(store: Store) -> dict[str, str]:
    """Searched grids against those that anybody has, at equal numbers of evaluations."""
    return files_of(results(store))
