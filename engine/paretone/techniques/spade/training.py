"""Training a student: see :class:`paretone.training.companions.Companion`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import ClassVar

import torch

from paretone.errors import SettingError
from paretone.models import load_model
from paretone.models.base import Utterance
from paretone.models.catalogue import voices
from paretone.models.families.language import LanguageSpeech
from paretone.models.files.language_weights import STUDENTS, places
from paretone.models.files.layer_importance import COSINE, DIVERGENCE, FILE, ImportanceRecord, read_record
from paretone.models.files.pruning import require_layers
from paretone.observer import Passing
from paretone.paths import own_place
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting
from paretone.techniques.spade import fitting_depth
from paretone.techniques.spade.measuring import measure_layers
from paretone.techniques.spade.recipe import StudentOptions, StudentRecipe
from paretone.techniques.spade.requests import MEASURED_SENTENCES, StudentRequest
from paretone.training.companions import Companion, MakeRecipe
from paretone.training.follower import Follower
from paretone.training.optimisers import Rates
from paretone.training.requests import CompanionRequest
from paretone.training.saving import is_kept, save_with_log
from paretone.training.session import Milestone
from paretone.training.teacher import Teacher
from paretone.training.token_recipe import TokenData, TokenRecipe


@dataclass(frozen=True)
class Student(Companion):
    """The layers that matter."""

    kind: ClassVar[str] = STUDENTS
    large_rates: ClassVar[Rates] = Rates(None, 1e-5)
    """AdamW's: that of SPADE's one published reproduction (ml-inory/SPADE)."""
    options: StudentOptions
    depth: int | None = None
    """Layers where the options name none; ``None``: what fits the model."""
    stages: tuple[float, ...] = ()
    """Minutes of the budget after which a student is kept as it is then."""

    @classmethod
    def of(cls, request: StudentRequest) -> Student:
        """The options of ``request``."""
        options = StudentOptions(
            **request.token_options, retained=request.retained, relative_latents=request.relative_latents
        )
        return cls(options, request.depth, request.stages)

    def recipe(self, request: CompanionRequest, teacher: Teacher, rates: Rates, follower: Follower) -> MakeRecipe:
        """Raises :class:`SettingError` for layers that the model has not."""
        options = replace(
            self.options,
            matrix_rate=rates.matrices,
            other_rate=rates.others,
            retained=self._retained(request, teacher, follower),
        )

        def make(data: TokenData, device: torch.device) -> StudentRecipe:
            return StudentRecipe(teacher.network, teacher.base, data, teacher.collate, device, options)

        return make

    def following(self, recipe: TokenRecipe, folder: Path, work: Path, follower: Follower) -> Follower:
        """Keeps the student at its stages."""
        assert isinstance(recipe, StudentRecipe)
        return _Stages(self.stages, recipe, folder, work, follower)

    def figures(self, recipe: TokenRecipe) -> Values:
        return super().figures(recipe).replace(depth=len(recipe.retained))

    def _retained(self, request: CompanionRequest, teacher: Teacher, follower: Follower) -> tuple[int, ...]:
        layers = teacher.network.transformer.config.layers
        if self.options.retained:
            return require_layers(self.options.retained, layers)
        depth = fitting_depth(layers) if self.depth is None else self.depth
        if not 1 <= depth <= layers:
            raise SettingError(f"{teacher.entry.title} has {layers} layers; keep between 1 and {layers}, not {depth}.")
        return _record(request, teacher, follower).retained(depth)


def _record(request: CompanionRequest, teacher: Teacher, follower: Follower) -> ImportanceRecord:
    """The measurement of layers that is there, or else the cheap one, made now and kept."""
    found = read_record(places(request.model, teacher.root), teacher.base)
    if found is not None:
        return found
    follower.status(f"Measuring how much each layer of {teacher.entry.title} matters")
    where = request.folder, "", request.device
    model = load_model(request.model, *where, check=follower.check, vocoder=request.vocoder)
    assert isinstance(model, LanguageSpeech)
    sentences = teacher.sentences(MEASURED_SENTENCES)
    speakers = voices(request.model, request.folder)
    utterances = [Utterance(sentence, voice) for sentence in sentences for voice in speakers]
    setting = Setting(request.model, teacher.entry.options_with(), seed=request.seed)
    record = measure_layers(model, utterances, setting, (DIVERGENCE, COSINE), Passing(follower, "status", "progress"))
    record.write(own_place(request.model) / FILE)
    return record


class _Stages(Passing, Follower):
    """Keeps a student as it is after each of ``stages``, and hands every milestone on."""

    def __init__(
        self, stages: tuple[float, ...], recipe: StudentRecipe, folder: Path, work: Path, follower: Follower
    ) -> None:
        super().__init__(follower, "status", "progress")
        self._recipe, self._folder, self._work, self._follower = recipe, folder, work, follower
        self._left = sorted(stages)

    def milestone(self, milestone: Milestone) -> None:
        minutes = milestone.seconds / 60
        while self._left and minutes >= self._left[0]:
            stage = self._left.pop(0)
            path = self._folder / f"{Path(self._recipe.file_name).stem}-after-{stage:g}-minutes.safetensors"
            if not is_kept(path, self._work):  # A resumed run may have come by there before.
                metadata = self._recipe.metadata_at(f"minutes:{stage:g}", stage)
                save_with_log(partial(self._recipe.save, metadata=metadata), path, self._work)
        self._follower.milestone(milestone)
