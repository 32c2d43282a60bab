"""Making a bundled model, only from ``flite`` speech: corpus, recipe, budget, and the folder that ships."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from engine.device import choose
from engine.errors import Cancelled, SettingError
from engine.models.minis.lm_mini.checkpoint import TOKENIZER
from engine.models.minis.omni_mini.checkpoint import CODEC
from engine.paths import resource
from engine.training.corpora import CORPUS, SENTENCES, Corpus, flite_corpus
from engine.training.follower import Follower
from engine.training.recipes.codec_mini import CodecMiniOptions, CodecMiniRecipe
from engine.training.recipes.f5_mini import F5Mini, F5Options
from engine.training.recipes.lm_mini import LmMini, LmMiniOptions
from engine.training.recipes.megatts3_mini import MegaMini, MegaOptions
from engine.training.recipes.mel_codec import MelCodecOptions, MelCodecRecipe
from engine.training.recipes.omni_mini import OmniMini, OmniMiniOptions
from engine.training.recipes.speech_tokenizer import SpeechTokenizerOptions, SpeechTokenizerRecipe
from engine.training.recipes.vocos_mini import VocosMini, VocosOptions
from engine.training.session import LOG, Budget, Recipe, Session, check_place

EXPORT = "export"
"""Folder of the result, in the work folder."""


@dataclass(frozen=True)
class BundledTraining:
    """Model to make, and budget."""

    recipe: str
    """One of :data:`RECIPES`."""
    work: Path
    budget: Budget
    sentences: int = SENTENCES
    corpus: Path | None = None
    """Folder of the corpus; what is missing there is spoken."""
    codec: Path | None = None
    """Exported codec that the recipe needs; ``None`` for the bundled one."""
    initial: Path | None = None
    """Weights to start from, for a vocoder."""
    half_precision: bool = False
    rate_scale: float = 1.0
    """On all learning rates."""
    device: str = "cpu"
    resume: bool = False
    export: Path | None = None

    @property
    def common(self) -> dict[str, Any]:
        """Options common to all recipes."""
        return {"half_precision": self.half_precision, "rate_scale": self.rate_scale}


@dataclass(frozen=True)
class BundledModel:
    """A trained model: its export, steps and seconds."""

    folder: Path
    steps: int
    seconds: float
    validation: dict[str, float]


Make = Callable[[BundledTraining, Corpus, torch.device], Recipe]


def train_bundled(job: BundledTraining, follower: Follower) -> BundledModel:
    """Train, and write the model as it ships.

    Raises :class:`engine.errors.PlainError`, and :class:`Cancelled` once a checkpoint of what was done is written.
    """
    make = RECIPES.get(job.recipe)
    if make is None:
        raise SettingError(f"There is no recipe {job.recipe!r}; known: {', '.join(RECIPES)}.")
    if job.initial and job.recipe != VocosMini.name:
        raise SettingError(
            f"Only {VocosMini.name} starts from given weights; the other models start from random weights or from "
            "their checkpoints."
        )
    check_place(job.work, job.resume)
    device = choose(job.device)
    follower.status("Preparing the corpus")
    corpus = flite_corpus(job.corpus or job.work.parent / CORPUS, job.sentences, follower.progress)
    follower.status(f"Making {job.recipe}")
    recipe = make(job, corpus, device)
    session = Session(recipe, job.work, job.budget, report=follower.status, follow=follower.milestone)
    session.begin(job.resume)
    follower.status("Training")
    if not session.run():
        raise Cancelled(f"Stopped at step {session.number}; the work folder holds a checkpoint to resume from.")
    folder = job.export or job.work / EXPORT
    recipe.export(folder)
    shutil.copyfile(job.work / LOG, folder / LOG)
    return BundledModel(folder, session.number, session.seconds, session.validation)


def _f5_mini(job: BundledTraining, corpus: Corpus, device: torch.device) -> Recipe:
    return F5Mini(corpus, device, F5Options(**job.common))


def _vocos_mini(job: BundledTraining, corpus: Corpus, device: torch.device) -> Recipe:
    return VocosMini(corpus, device, VocosOptions(**job.common), job.initial)


def _mel_codec(job: BundledTraining, corpus: Corpus, device: torch.device) -> Recipe:
    return MelCodecRecipe(corpus, device, MelCodecOptions(**job.common))


def _megatts3_mini(job: BundledTraining, corpus: Corpus, device: torch.device) -> Recipe:
    codec = job.codec or resource("models", "megatts3-mini", "wavvae")
    return MegaMini(corpus, codec, job.work, device, MegaOptions(**job.common))


def _speech_tokenizer(job: BundledTraining, corpus: Corpus, device: torch.device) -> Recipe:
    return SpeechTokenizerRecipe(corpus, device, SpeechTokenizerOptions(**job.common))


def _lm_mini(job: BundledTraining, corpus: Corpus, device: torch.device) -> Recipe:
    tokenizer = job.codec or resource("models", "lm-mini", TOKENIZER)
    return LmMini(corpus, tokenizer, job.work, device, LmMiniOptions(**job.common))


def _codec_mini(job: BundledTraining, corpus: Corpus, device: torch.device) -> Recipe:
    return CodecMiniRecipe(corpus, device, CodecMiniOptions(**job.common))


def _omni_mini(job: BundledTraining, corpus: Corpus, device: torch.device) -> Recipe:
    codec = job.codec or resource("models", "omni-mini", CODEC)
    return OmniMini(corpus, codec, job.work, device, OmniMiniOptions(**job.common))


RECIPES: Mapping[str, Make] = {
    "vocos-mini": _vocos_mini,
    "f5-mini": _f5_mini,
    "mel-codec": _mel_codec,
    "megatts3-mini": _megatts3_mini,
    "speech-tokenizer": _speech_tokenizer,
    "lm-mini": _lm_mini,
    "codec-mini": _codec_mini,
    "omni-mini": _omni_mini,
}
"""In the order in which they need each other."""
