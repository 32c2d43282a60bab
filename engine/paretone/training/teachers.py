"""From a model of the catalogue to what drafts and students of it learn from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from paretone.errors import CheckpointError, TrainingError
from paretone.models.catalogue import CatalogueEntry, entry
from paretone.training.cosyvoice2_teacher import CosyTeacher
from paretone.training.follower import Follower
from paretone.training.llasa_teacher import LlasaTeacher
from paretone.training.lm_mini_teacher import LmMiniTeacher
from paretone.training.teacher import Teacher

TEACHERS: Mapping[str, Callable[[CatalogueEntry, Path, Follower], Teacher]] = {
    "lm_mini": LmMiniTeacher,
    "cosyvoice2": CosyTeacher,
    "llasa": LlasaTeacher,
}
"""By what the catalogue calls ``loader``."""


def require_teacher(model: str) -> CatalogueEntry:
    """The ``model`` as the catalogue has it. Raises :class:`TrainingError` for one that is no language model."""
    chosen = entry(model)
    if chosen.loader not in TEACHERS:
        raise TrainingError(
            f"{chosen.title} decodes no tokens: drafts and students are trained of speech language models."
        )
    return chosen


def read_teacher(model: str, folder: str, follower: Follower, vocoder: str = "") -> Teacher:
    """The ``model``, in ``folder`` if given, with the ``vocoder`` if given. Raises what :func:`require_teacher` does,
    and :class:`CheckpointError`."""
    chosen = require_teacher(model)
    place = Path(folder) if folder else chosen.folder
    if not place.is_dir():
        raise CheckpointError(f"{chosen.title} is not in {place}; choose the folder that holds its checkpoint.")
    chosen.require_vocoder(vocoder)
    return TEACHERS[chosen.loader](chosen, place, follower, *((vocoder,) if vocoder else ()))
