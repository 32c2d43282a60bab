"""Making a bundled model from the natural speech of a free synthesiser: corpus, recipe, budget, exported folder."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch

from paretone.device import choose
from paretone.errors import SettingError
from paretone.training.batches import Corpus
from paretone.training.natural_corpus import NATURAL_CORPUS, open_corpus
from paretone.training.requests import Follower
from paretone.training.session import LOG, Budget, Recipe, TrainingSession, check_place
from tests.tools.recipes.natural_codecs import (
    NaturalCodec,
    NaturalTokenizer,
    NaturalTokenOptions,
    NaturalVocoder,
    VocoderOptions,
)
from tests.tools.recipes.natural_f5 import NaturalF5, NaturalF5Options
from tests.tools.recipes.natural_language import LmOptions, NaturalLm, NaturalOmni, OmniOptions
from tests.tools.recipes.natural_megatts3 import NaturalMega, NaturalMegaOptions

EXPORT = "export"
"""Folder of the result in the work folder."""


@dataclass(frozen=True)
class BundledModel:
    folder: Path
    steps: int
    seconds: float
    validation: dict[str, float]


class Exporting(Recipe, Protocol):
    def export(self, folder: Path) -> None:
        """Write the averaged weights in the bundled layout."""


def run_recipe(
    recipe: Exporting, work: Path, budget: Budget, resume: bool, export: Path | None, follower: Follower
) -> BundledModel:
    """Train, and export the model with its log to ``export`` or into ``work``.

    Raises :class:`paretone.errors.PlainError`, and :class:`Cancelled` after writing a checkpoint.
    """
    session = TrainingSession(recipe, work, budget, report=follower.status, follow=follower.milestone)
    session.train(resume)
    folder = export or work / EXPORT
    recipe.export(folder)
    shutil.copyfile(work / LOG, folder / LOG)
    return BundledModel(folder, session.number, session.seconds, session.validation)


@dataclass(frozen=True)
class BundledTraining:
    recipe: str
    """One of :data:`RECIPES`."""
    work: Path
    budget: Budget
    corpus: Path | None = None
    """Folder of the corpus; ``None``: ``voice-corpus`` next to the work folder."""
    codec: Path | None = None
    """Folder of the exported codec; ``None``: ``export`` in the codec recipe's work folder, next to this one."""
    initial: Path | None = None
    """Folder of exported weights to start from, for recipes in :data:`CONTINUING`."""
    half_precision: bool = False
    rate_scale: float = 1.0
    """Factor on all learning rates."""
    device: str = "cpu"
    resume: bool = False
    export: Path | None = None

    @property
    def common(self) -> dict[str, Any]:
        return {"half_precision": self.half_precision, "rate_scale": self.rate_scale}


Make = Callable[[BundledTraining, Corpus, torch.device], Exporting]


def train_bundled(job: BundledTraining, follower: Follower) -> BundledModel:
    """Train, and export the model.

    Raises :class:`paretone.errors.PlainError`, and :class:`Cancelled` after writing a checkpoint.
    """
    make = RECIPES.get(job.recipe)
    if make is None:
        raise SettingError(f"There is no recipe {job.recipe!r}; known: {', '.join(RECIPES)}.")
    if job.initial and job.recipe not in CONTINUING:
        raise SettingError(f"{job.recipe} starts from random weights only; leave out --initial.")
    check_place(job.work, job.resume, job.export)
    device = choose(job.device)
    follower.status("Preparing the corpus")
    corpus = open_corpus(job.corpus or job.work.parent / NATURAL_CORPUS)
    follower.status(f"Making {job.recipe}")
    recipe = make(job, corpus, device)
    return run_recipe(recipe, job.work, job.budget, job.resume, job.export, follower)


def _language_model(job: BundledTraining, corpus: Corpus, device: torch.device) -> Exporting:
    tokenizer = job.codec or job.work.parent / NaturalTokenizer.name / EXPORT
    return NaturalLm(corpus, tokenizer, job.work, device, LmOptions(**job.common))


def _masked_model(job: BundledTraining, corpus: Corpus, device: torch.device) -> Exporting:
    codec = job.codec or job.work.parent / NaturalCodec.name / EXPORT
    return NaturalOmni(corpus, codec, job.work, device, OmniOptions(**job.common))


RECIPES: Mapping[str, Make] = {
    "voice-vocoder": lambda job, corpus, device: NaturalVocoder(
        corpus, device, VocoderOptions(**job.common), initial=job.initial
    ),
    "voice-f5": lambda job, corpus, device: NaturalF5(
        corpus, device, NaturalF5Options(**job.common), initial=job.initial
    ),
    "voice-megatts3": lambda job, corpus, device: NaturalMega(corpus, device, NaturalMegaOptions(**job.common)),
    "voice-tokenizer": lambda job, corpus, device: NaturalTokenizer(corpus, device, NaturalTokenOptions(**job.common)),
    "voice-codec": lambda job, corpus, device: NaturalCodec(corpus, device, NaturalTokenOptions(**job.common)),
    "voice-lm": _language_model,
    "voice-omni": _masked_model,
}
"""In dependency order."""
CONTINUING = frozenset({NaturalVocoder.name, NaturalF5.name})
"""Recipes that can start from exported weights."""
