"""Hooks of searched grids in studies: see :mod:`engine.studies.hooks`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.models.base import ProgressObserver, SpeechModel, Utterance
from engine.setting.setting import Setting
from engine.studies.results import results
from engine.studies.store import Store
from engine.techniques.searched_grid.grid import PlacedGrid
from engine.techniques.searched_grid.studies.comparison import files_of


def preparer() -> Callable[[SpeechModel, Sequence[Utterance], Setting, ProgressObserver], PlacedGrid]:
    """Searches a grid for each setting, on the sentences that the study calibrates on."""

    def prepare(
        model: SpeechModel, utterances: Sequence[Utterance], setting: Setting, observer: ProgressObserver
    ) -> PlacedGrid:
        # Imports torch.
        from engine.techniques.searched_grid.searching import search_grid

        return search_grid(model, utterances, setting, observer).grid

    return prepare


def files(store: Store) -> dict[str, str]:
    """Searched grids against those that anybody has, at equal numbers of evaluations."""
    return files_of(results(store))
