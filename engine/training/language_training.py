"""Training a draft or a student of a language model of the catalogue, from its checkpoint to a file that the engine
finds again. The command line and the engine's jobs are both this.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from engine import device as devices
from engine.errors import Cancelled, SettingError, TrainingError
from engine.models import load_model
from engine.models.base import Utterance
from engine.models.catalogue import harvard_sentences, voices
from engine.models.files.checkpoints import read_weights
from engine.models.files.language_weights import DRAFTS, STUDENTS, own_place, places, read_draft
from engine.models.files.layer_importance import COSINE, DIVERGENCE, FILE, ImportanceRecord, read_record
from engine.models.files.pruning import require_layers
from engine.setting.knobs import Values
from engine.setting.setting import Setting
from engine.techniques.guidance_free.fine_tuning import SMALL_PARAMETERS
from engine.techniques.spade.measuring import measure_layers
from engine.techniques.spade.recipe import StudentOptions, StudentRecipe
from engine.techniques.speculative.recipe import DraftOptions, DraftRecipe
from engine.training.follower import Follower
from engine.training.optimisers import Rates
from engine.training.saving import save_with_log
from engine.training.sentences import PROMPT, training_sentences
from engine.training.session import Budget, Milestone, Pace, Session, check_place
from engine.training.spoken_tokens import SpokenTokens, kept_tokens
from engine.training.teacher import Teacher
from engine.training.teachers import read_teacher, require_teacher
from engine.training.token_recipe import TokenData, TokenRecipe

PACE = Pace(log_steps=10, validation_steps=50, validates_first=True)
KEPT_BACK = 24
"""Of the model's own utterances, one of so many is validated on."""
FEWEST = 8
"""Utterances below which nothing can be trained and validated."""
OWN_SPEECH, RECORDED = "own-speech.npz", "recorded"
"""In the work folder: what the model spoke, and the prepared recordings."""
LARGE_STUDENT, LARGE_DRAFT = Rates(None, 1e-5), Rates(None, 1e-4)
"""What moves companions of the released models: AdamW. The rate of students is that of SPADE's one published
reproduction (ml-inory/SPADE); the paper on SSD names none for drafts, and this one has not been tried on a release."""
MEASURED_SENTENCES = 8
"""Over which, in every voice, layers are measured where that has not been done."""


@dataclass(frozen=True)
class LanguageTraining:
    """What is to be trained, on what, and for how long."""

    model: str
    work: Path
    options: DraftOptions | StudentOptions
    budget: Budget
    depth: int = 6
    """Layers of a student whose options name none."""
    stages: tuple[float, ...] = ()
    """Minutes of the budget after which a student is kept as it is then."""
    sentences: int = 600
    """What the model itself speaks to learn from, in each of its voices."""
    manifest: Path | None = None
    """Recordings to learn from besides."""
    initial: Path | None = None
    """An earlier draft of the same layers to start from."""
    rate: float | None = None
    """AdamW's; ``None`` for the usual one of a model of this size."""
    matrix_rate: float | None = None
    """Muon's, for the matrices of the layers; ``None`` for the usual one or, where :attr:`rate` is given, for AdamW to
    move them, too."""
    folder: str = ""
    """Where the checkpoint lies, if not in its usual place."""
    device: str = "auto"
    resume: bool = False
    export: Path | None = None
    """Folder to write the result to; ``None`` for the user's own, where the application looks for it."""


@dataclass(frozen=True)
class LanguageTrained:
    """What came of it."""

    checkpoint: Path
    steps: int
    seconds: float
    validation: dict[str, float]
    figures: Values
    summary: str


def train_language(job: LanguageTraining, follower: Follower, pace: Pace = PACE) -> LanguageTrained:
    """Train, and export the result.

    Raises :class:`engine.errors.PlainError`, and :class:`Cancelled` once a checkpoint of what was done is written.
    """
    chosen = require_teacher(job.model)
    check_place(job.work, job.resume)
    follower.status(f"Reading {chosen.title}")
    teacher = read_teacher(job.model, job.folder, follower)
    torch.set_flush_denormal(True)
    # What cannot be is said before anything is spoken to learn from.
    options, initial = _options(job, teacher, follower), _initial(job, teacher, follower)
    data = gathered(job, teacher, follower)
    recipe = _recipe(job, teacher, data, options, initial)
    kind = STUDENTS if isinstance(recipe, StudentRecipe) else DRAFTS
    folder = (job.export or own_place(job.model)) / kind
    stages = _Stages(recipe, folder, job, follower)
    session = Session(recipe, job.work, job.budget, pace, follower.status, stages.milestone)
    session.begin(job.resume)
    follower.status("Training")
    if not session.run():
        raise Cancelled(f"Stopped at step {session.number}; the work folder holds a checkpoint to resume from.")
    metadata = recipe.metadata_after(session.seconds)
    target = save_with_log(partial(recipe.save, metadata=metadata), folder / recipe.file_name, job.work)
    figures = Values(layers=len(recipe.retained), retained=",".join(map(str, recipe.retained)))
    if kind == STUDENTS:
        figures = figures.replace(depth=len(recipe.retained))
    return LanguageTrained(
        target, session.number, session.seconds, session.validation, figures, recipe.summary(session.validation)
    )


def gathered(job: LanguageTraining, teacher: Teacher, follower: Follower) -> TokenData:
    """What is learnt from: spoken by the model itself, recorded, or both. What was made is found again in the work
    folder. Raises :class:`TrainingError` where it is too little."""
    training: list[SpokenTokens] = []
    held_out: list[SpokenTokens] = []
    origins = []
    if job.sentences:
        own = _own_speech(job, teacher, follower)
        held_out += own[::KEPT_BACK]
        training += [one for number, one in enumerate(own) if number % KEPT_BACK]
        origins.append(f"{len(own)} utterances that the model spoke itself")
    if job.manifest is not None:
        follower.status(f"Preparing the recordings of {job.manifest.name}")
        recorded = teacher.record(job.manifest, job.work / RECORDED, follower)
        training += recorded[0]
        held_out += recorded[1]
        origins.append(f"{len(recorded[0])} recordings of {job.manifest.name}")
    if len(training) + len(held_out) < FEWEST or not held_out:
        raise TrainingError(
            f"There are {len(training)} utterances to train on and {len(held_out)} to validate on, which is too few: "
            "let the model speak more sentences, or give a manifest of recordings."
        )
    return TokenData(tuple(training), tuple(held_out), ", ".join(origins))


def _own_speech(job: LanguageTraining, teacher: Teacher, follower: Follower) -> tuple[SpokenTokens, ...]:
    place = job.work / f"{teacher.base[:8]}-{job.sentences}-{OWN_SPEECH}"
    parts = place.with_name(f"{place.stem}-{job.options.seed}")

    def speak() -> tuple[SpokenTokens, ...]:
        speakers = voices(job.model, job.folder)
        count = job.sentences * len(speakers)
        follower.status(f"{teacher.entry.title} speaks {count} sentences to learn from")
        sentences = training_sentences(count, excluded=[PROMPT, *harvard_sentences()])
        random.Random(job.options.seed).shuffle(sentences)
        spoken: list[SpokenTokens] = []
        for start in range(0, count, teacher.portion):
            portion, within = sentences[start : start + teacher.portion], _Portion(follower, start, count)
            seed = job.options.seed + start
            make = partial(teacher.speak, portion, speakers, seed, job.device, within)
            spoken += kept_tokens(parts / f"{start}.npz", make)
        return tuple(spoken)

    try:
        found = kept_tokens(place, speak)
    finally:
        teacher.rest()
    shutil.rmtree(parts, ignore_errors=True)
    return found


@dataclass(frozen=True)
class _Portion:
    """Tells a follower how far a portion of something larger is."""

    follower: Follower
    before: int
    """How much had been done when it began."""
    total: int

    def check(self) -> None:
        self.follower.check()

    def status(self, text: str) -> None:
        self.follower.status(text)

    def progress(self, done: int, total: int) -> None:
        self.follower.progress(self.before + done, self.total)

    def milestone(self, milestone: Milestone) -> None:
        self.follower.milestone(milestone)


def _options(job: LanguageTraining, teacher: Teacher, follower: Follower) -> DraftOptions | StudentOptions:
    """Those of the run, complete. Raises :class:`SettingError` for layers that the model has not."""
    rates, layers = _rates(job, teacher), teacher.network.transformer.config.layers
    options = replace(job.options, matrix_rate=rates.matrices, other_rate=rates.others)
    if isinstance(options, DraftOptions):
        return replace(options, temperature=teacher.temperature)
    if options.retained:
        return replace(options, retained=require_layers(options.retained, layers))
    if not 1 <= job.depth <= layers:
        raise SettingError(f"{teacher.entry.title} has {layers} layers; keep between 1 and {layers}, not {job.depth}.")
    return replace(options, retained=_record(job, teacher, follower).retained(job.depth))


def _initial(job: LanguageTraining, teacher: Teacher, follower: Follower) -> dict[str, Tensor] | None:
    """The tensors of the draft to start from. Raises :class:`CheckpointError` for one of another checkpoint, and
    :class:`SettingError` for one of other layers."""
    if job.initial is None or not isinstance(job.options, DraftOptions):
        return None
    lower = min(job.options.lower, teacher.network.transformer.config.layers)
    draft = read_draft(job.initial, teacher.base, follower.check)
    if draft.trained != tuple(range(lower)):
        raise SettingError(
            f"{job.initial} has learnt in {len(draft.trained)} of the model's layers, not in the {lower} lowest ones; "
            "train a draft with as many, or start without it."
        )
    return read_weights(job.initial, follower.check)


def _recipe(
    job: LanguageTraining,
    teacher: Teacher,
    data: TokenData,
    options: DraftOptions | StudentOptions,
    initial: Mapping[str, Tensor] | None,
) -> TokenRecipe:
    device = devices.choose(job.device)
    if isinstance(options, DraftOptions):
        return DraftRecipe(
            teacher.network, teacher.base, data, teacher.collate, device, teacher.sampler, options, initial
        )
    return StudentRecipe(teacher.network, teacher.base, data, teacher.collate, device, options)


def _rates(job: LanguageTraining, teacher: Teacher) -> Rates:
    """Those that were asked for, or the usual ones: what small models bear would ruin what a large one knows."""
    if sum(one.numel() for one in teacher.network.parameters()) < SMALL_PARAMETERS:
        usual = Rates(job.options.matrix_rate, job.options.other_rate)
    else:
        usual = LARGE_DRAFT if isinstance(job.options, DraftOptions) else LARGE_STUDENT
    if job.rate is None and job.matrix_rate is None:
        return usual
    return Rates(job.matrix_rate, usual.others if job.rate is None else job.rate)


def _record(job: LanguageTraining, teacher: Teacher, follower: Follower) -> ImportanceRecord:
    """The measurement of layers that is there, or else the cheap one, made now and kept."""
    found = read_record(places(job.model, teacher.root), teacher.base)
    if found is not None:
        return found
    follower.status(f"Measuring how much each layer of {teacher.entry.title} matters")
    model = load_model(job.model, folder=job.folder, device=job.device, check=follower.check)
    sentences = training_sentences(MEASURED_SENTENCES, excluded=[PROMPT, *harvard_sentences()])
    utterances = [Utterance(sentence, voice) for sentence in sentences for voice in voices(job.model, job.folder)]
    setting = Setting(job.model, teacher.entry.options_with(), seed=job.options.seed)
    record = measure_layers(model, utterances, setting, (DIVERGENCE, COSINE), follower)
    record.write(own_place(job.model) / FILE)
    return record


@dataclass
class _Stages:
    """Keeps a student as it is after so many minutes, and hands every milestone on."""

    recipe: TokenRecipe
    folder: Path
    job: LanguageTraining
    follower: Follower

    def __post_init__(self) -> None:
        self._left = sorted(self.job.stages) if isinstance(self.recipe, StudentRecipe) else []
        self._before = 0.0

    def milestone(self, milestone: Milestone) -> None:
        minutes = milestone.seconds / 60
        while self._left and minutes >= self._left[0]:
            stage = self._left.pop(0)
            if self._before < stage:  # A resumed run has kept the earlier ones already.
                path = self.folder / f"{Path(self.recipe.file_name).stem}-after-{stage:g}-minutes.safetensors"
                metadata = self.recipe.metadata_at(f"minutes:{stage:g}", stage)
                save_with_log(partial(self.recipe.save, metadata=metadata), path, self.job.work)
        self._before = minutes
        self.follower.milestone(milestone)
