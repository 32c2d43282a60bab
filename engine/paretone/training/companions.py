"""Training of a smaller companion of a catalogue language model (draft, student): from checkpoint to exported file."""

from __future__ import annotations

import random
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Generic

import torch
from safetensors.torch import save
from torch import Tensor

from paretone import device as devices
from paretone import files
from paretone.models.catalogue import voices
from paretone.observer import Passing
from paretone.paths import own_name, own_place
from paretone.setting.knobs import Values
from paretone.training.learner import SMALL_PARAMETERS, Network, Rates
from paretone.training.manifest import require_both
from paretone.training.requests import CompanionRequest, Follower, Trained
from paretone.training.runs import save_with_log, with_validation
from paretone.training.session import Budget, Intervals, TrainingSession, check_place
from paretone.training.spoken_tokens import SpokenTokens, kept_tokens
from paretone.training.teachers import Teacher, read_teacher, require_teacher
from paretone.training.token_recipe import TokenData, TokenOptions, TokenRecipe

INTERVALS = Intervals(log_steps=10, validation_steps=50, validates_first=True)
KEPT_BACK = 24
"""One utterance in this many of the model's own is held out for validation."""
FEWEST = 8
"""Minimum of utterances for training and validation."""
OWN_SPEECH, RECORDED = "own-speech.npz", "recorded"
"""In the work folder: the model's own speech, and the prepared recordings."""


class CompanionRecipe(TokenRecipe[Network], Generic[Network]):
    """Trains ``model`` with the outputs of the frozen ``teacher`` on the same sequences."""

    kind: ClassVar[str]
    """Kind of the file's weights."""

    def __init__(
        self,
        teacher: Teacher,
        model: Network,
        retained: Sequence[int],
        data: TokenData,
        device: torch.device,
        options: TokenOptions,
    ) -> None:
        super().__init__(model, retained, teacher.base, data, teacher.collate, device, options)
        self.teacher, self.sampler, self.completed = teacher.network.to(device), teacher.sampler, teacher.completed

    @property
    def particulars(self) -> dict[str, str]:
        """What the metadata say of this kind alone."""
        raise NotImplementedError

    def metadata_after(self, seconds: float) -> dict[str, str]:
        return {
            "kind": self.kind,
            "base": self.base,
            **self.particulars,
            "minutes": f"{seconds / 60:.3g}",
            "steps": str(self.steps),
            "origin": self.data.origin,
        }

    def summary(self, validation: Mapping[str, float]) -> str:
        raise NotImplementedError

    def tensors(self) -> Mapping[str, Tensor]:
        """Averaged weights for the file."""
        raise NotImplementedError

    @property
    def file_name(self) -> str:
        raise NotImplementedError

    def save(self, path: Path, metadata: Mapping[str, str]) -> None:
        """Raises :class:`OSError`."""
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_atomically(path, save(dict(self.tensors()), dict(metadata)))


MakeRecipe = Callable[[TokenData, torch.device], CompanionRecipe]


class Companion(ABC):
    """Training of a technique's companion of a language model, such as a draft or student."""

    kind: ClassVar[str]
    """Subfolder for its files, next to the model's checkpoint or in the user's folder for the model."""
    large_rates: ClassVar[Rates]
    """Default learning rates for released models; the rates of small models would destroy a large one."""
    options: TokenOptions
    """Default options; their learning rates are for small models."""

    @abstractmethod
    def recipe(self, request: CompanionRequest, teacher: Teacher, rates: Rates, follower: Follower) -> MakeRecipe:
        """Function that makes the recipe, given training data. Raises :class:`paretone.errors.PlainError` before any
        speech is generated if it cannot be trained."""

    def options_at(self, rates: Rates, **more: Any) -> Any:
        """:attr:`options` with the learning rates of a run, and ``more`` of it."""
        return replace(self.options, matrix_rate=rates.matrices, other_rate=rates.others, **more)

    def following(self, recipe: CompanionRecipe, target: Path, work: Path, follower: Follower) -> Follower:
        """Follower of the run to ``target``: ``follower`` after the companion's own callbacks at milestones."""
        return follower

    def figures(self, recipe: CompanionRecipe) -> Values:
        """Figures of the result, for :attr:`paretone.training.requests.Trained.figures`."""
        return Values(layers=len(recipe.retained), retained=",".join(map(str, recipe.retained)))


def train_companion(
    request: CompanionRequest, companion: Companion, follower: Follower, intervals: Intervals = INTERVALS
) -> Trained:
    """Train, and export the result. Raises :class:`paretone.errors.PlainError`, and :class:`Cancelled` after writing a
    checkpoint."""
    chosen, work = require_teacher(request.model), Path(request.work)
    check_place(work, request.resume, Path(request.export) if request.export else None)
    request = with_validation(request, follower)
    budget = Budget(request.minutes, request.steps, request.epochs)
    follower.status(f"Reading {chosen.title}")
    teacher = read_teacher(request.model, request.folder, follower, request.vocoder)
    torch.set_flush_denormal(True)
    make = companion.recipe(request, teacher, rates_of(request, companion, teacher), follower)
    recipe = make(gathered(request, teacher, follower), devices.choose(request.device))
    folder = (Path(request.export) if request.export else own_place(request.model)) / companion.kind
    shipped = teacher.root / companion.kind / recipe.file_name
    target = folder / (recipe.file_name if request.export else own_name(shipped, request.model))
    milestones = companion.following(recipe, target, work, follower).milestone
    session = TrainingSession(recipe, work, budget, intervals, follower.status, milestones)
    session.train(request.resume)
    metadata = recipe.metadata_after(session.seconds)
    target = save_with_log(partial(recipe.save, metadata=metadata), target, work)
    summary, figures = recipe.summary(session.validation), companion.figures(recipe)
    return Trained(str(target), summary, figures, session.number, session.seconds, session.validation)


def rates_of(request: CompanionRequest, companion: Companion, teacher: Teacher) -> Rates:
    """The requested learning rates, or the defaults for the model's size."""
    is_small = sum(one.numel() for one in teacher.network.parameters()) < SMALL_PARAMETERS
    usual = companion.options.rates if is_small else companion.large_rates
    return usual.unless_asked(request.rate, request.matrix_rate)


def gathered(request: CompanionRequest, teacher: Teacher, follower: Follower) -> TokenData:
    """Training data: the model's own speech, recordings, a corpus, or all of these, cached in the work folder. Raises
    :class:`TrainingError` if there is too little."""
    training: list[SpokenTokens] = []
    held_out: list[SpokenTokens] = []
    origins = []
    if request.sentences:
        own = _own_speech(request, teacher, follower)
        kept_back = () if request.validation else range(0, len(own), KEPT_BACK)
        for number, one in enumerate(own):
            (held_out if number in kept_back else training).append(one)
        origins.append(f"{len(own)} utterances that the model spoke itself")
    if request.manifest:
        manifest = Path(request.manifest)
        follower.status(f"Preparing the recordings of {manifest.name}")
        recorded = teacher.record(manifest, Path(request.work) / RECORDED, follower)
        training += recorded[0]
        held_out += recorded[1]
        origins.append(f"{len(recorded[0])} recordings of {manifest.name}")
    if request.corpus:
        corpus = Path(request.corpus)
        follower.status(f"Preparing the corpus {corpus.name}")
        clips = teacher.read_corpus(corpus, Path(request.work))
        training += clips[0]
        held_out += () if request.validation else clips[1]
        origins.append(f"{len(clips[0])} clips of {corpus.name}")
    require_both(training, held_out, FEWEST)
    return TokenData(tuple(training), tuple(held_out), ", ".join(origins))


def _own_speech(request: CompanionRequest, teacher: Teacher, follower: Follower) -> tuple[SpokenTokens, ...]:
    place = Path(request.work) / f"{teacher.base[:8]}-{request.sentences}-{OWN_SPEECH}"
    parts = place.with_name(f"{place.stem}-{request.seed}")

    def speak() -> tuple[SpokenTokens, ...]:
        speakers = voices(request.model, request.folder)
        count = request.sentences * len(speakers)
        follower.status(f"{teacher.entry.title} speaks {count} sentences to learn from")
        sentences = teacher.sentences(count)
        random.Random(request.seed).shuffle(sentences)
        spoken: list[SpokenTokens] = []
        for start in range(0, count, teacher.portion):
            portion, within = sentences[start : start + teacher.portion], _Portion(follower, start, count)
            make = partial(teacher.speak, portion, speakers, request.seed + start, request.device, within)
            spoken += kept_tokens(parts / f"{start}.npz", make)
        return tuple(spoken)

    try:
        found = kept_tokens(place, speak)
    finally:
        teacher.rest()
    shutil.rmtree(parts, ignore_errors=True)
    return found


class _Portion(Passing, Follower):
    """Reports the progress of one part of a longer job, of which ``before`` of ``total`` are done."""

    def __init__(self, follower: Follower, before: int, total: int) -> None:
        super().__init__(follower, "status")
        self._tell = lambda done: follower.progress(before + done, total)

    def progress(self, done: int, total: int) -> None:
        self._tell(done)
