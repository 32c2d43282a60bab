"""Training a draft or a student of a language model of the catalogue, from its checkpoint to a file that the engine
finds again. The command line and the engine's jobs are both this.
"""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from engine import device as devices
from engine import files
from engine.audio.mel import MelFrontEnd
from engine.errors import Cancelled, CheckpointError, TrainingError
from engine.knobs import Values
from engine.models import load_model
from engine.models.base import Utterance
from engine.models.catalogue import CatalogueEntry, entry, harvard_sentences, voices
from engine.models.checkpoints import fingerprint, read_weights
from engine.models.f5.prompts import PromptReader
from engine.models.language_weights import DRAFTS, STUDENTS, own_place, places
from engine.models.lm_mini.checkpoint import LmMiniFolder
from engine.models.lm_mini.front_end import LmMiniFrontEnd
from engine.sampling.tokens import Nucleus
from engine.setting import Setting
from engine.techniques.spade.measuring import measure_layers
from engine.techniques.spade.record import COSINE, DIVERGENCE, FILE, ImportanceRecord, read_record
from engine.training.draft import DraftOptions, DraftRecipe
from engine.training.export import PROMPT
from engine.training.fine_tuning import Follower
from engine.training.recorded_tokens import record_tokens
from engine.training.self_generated import speak_tokens
from engine.training.sentences import training_sentences
from engine.training.session import LOG, Budget, Milestone, Pace, Session
from engine.training.spade import StudentOptions, StudentRecipe
from engine.training.spoken_tokens import SpokenTokens, read_tokens, write_tokens
from engine.training.token_network import TokenNetwork
from engine.training.token_recipe import TokenData, TokenRecipe

PACE = Pace(log_steps=10, validation_steps=50, validates_first=True)
KEPT_BACK = 24
"""Of the model's own utterances, one of so many is validated on."""
FEWEST = 8
"""Utterances below which nothing can be trained and validated."""
OWN_SPEECH, RECORDED = "own-speech.npz", "recorded"
"""In the work folder: what the model spoke, and the prepared recordings."""
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


@dataclass(frozen=True)
class Teacher:
    """The model to learn from, and how it reads."""

    entry: CatalogueEntry
    folder: LmMiniFolder
    base: str
    """SHA-256 of its checkpoint."""
    network: TokenNetwork

    @classmethod
    def read(cls, model: str, folder: str, follower: Follower) -> Teacher:
        """Raises :class:`TrainingError` for a model whose language model cannot be trained here, and
        :class:`CheckpointError`."""
        chosen = entry(model)
        if chosen.loader != "lm_mini":
            raise TrainingError(f"{chosen.title} cannot be trained here, only models laid out as LM mini.")
        place = Path(folder) if folder else chosen.folder
        if not place.is_dir():
            raise CheckpointError(f"{chosen.title} is not in {place}; choose the folder that holds its checkpoint.")
        lm_mini = LmMiniFolder(place, follower.check)
        weights = read_weights(lm_mini.weights_path, follower.check)
        network = TokenNetwork.read(lm_mini.config(), weights, lm_mini.layout().rows)
        base = fingerprint(lm_mini.weights_path, follower.check)
        return cls(chosen, lm_mini, base, network.eval().requires_grad_(False))

    @property
    def layers(self) -> int:
        """How many it has."""
        return self.network.transformer.config.layers

    @property
    def sampler(self) -> Nucleus:
        """The one that it speaks by unless told otherwise."""
        options = self.entry.options_with()
        return Nucleus(float(options["temperature"]), int(options["top_k"]), float(options["top_p"]))

    def front_end(self) -> LmMiniFrontEnd:
        """How it reads texts and voices."""
        tokenizer, means = self.folder.tokenizer(torch.device("cpu"))
        reader = PromptReader(MelFrontEnd(), whole_frames=True)
        vocabulary = self.folder.layout().vocabulary
        return LmMiniFrontEnd(tokenizer, means, self.folder.durations(), vocabulary, reader, self.entry.title)


def train_language(job: LanguageTraining, follower: Follower, pace: Pace = PACE) -> LanguageTrained:
    """Train, and export the result.

    Raises :class:`engine.errors.PlainError`, and :class:`Cancelled` once a checkpoint of what was done is written.
    """
    follower.status(f"Reading {entry(job.model).title}")
    teacher = Teacher.read(job.model, job.folder, follower)
    torch.set_flush_denormal(True)
    data = gathered(job, teacher, follower)
    recipe = _recipe(job, teacher, data, follower)
    kind = STUDENTS if isinstance(recipe, StudentRecipe) else DRAFTS
    folder = (job.export or own_place(job.model)) / kind
    stages = _Stages(recipe, folder, job, follower)
    session = Session(recipe, job.work, job.budget, pace, follower.status, stages.milestone)
    session.begin(job.resume)
    follower.status("Training")
    if not session.run():
        raise Cancelled(f"Stopped at step {session.number}; the work folder holds a checkpoint to resume from.")
    target = _saved(recipe, folder / recipe.file_name, recipe.metadata_after(session.seconds), job.work)
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
        recorded = record_tokens(job.manifest, teacher.folder, job.work / RECORDED, follower.progress)
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
    path = job.work / f"{teacher.base[:8]}-{job.sentences}-{OWN_SPEECH}"
    if path.is_file():
        return read_tokens(path)
    speakers = voices()
    count = job.sentences * len(speakers)
    follower.status(f"{teacher.entry.title} speaks {count} sentences to learn from")
    sentences = training_sentences(count, excluded=[PROMPT, *harvard_sentences()])
    random.Random(job.options.seed).shuffle(sentences)
    spoken = speak_tokens(
        teacher.network,
        teacher.folder.layout(),
        teacher.front_end(),
        speakers,
        sentences,
        teacher.sampler,
        job.options.seed,
        follower.progress,
    )
    try:
        write_tokens(path, spoken)
    except OSError as error:
        raise TrainingError(f"{path} could not be written: {files.reason(error)}.") from error
    return spoken


def _recipe(job: LanguageTraining, teacher: Teacher, data: TokenData, follower: Follower) -> TokenRecipe:
    device, layout = devices.choose(job.device), teacher.folder.layout()
    if isinstance(job.options, DraftOptions):
        initial = None if job.initial is None else read_weights(job.initial, follower.check)
        return DraftRecipe(teacher.network, teacher.base, data, layout, device, teacher.sampler, job.options, initial)
    options = job.options
    if not options.retained:
        options = replace(options, retained=_record(job, teacher, follower).retained(job.depth))
    return StudentRecipe(teacher.network, teacher.base, data, layout, device, options)


def _record(job: LanguageTraining, teacher: Teacher, follower: Follower) -> ImportanceRecord:
    """The measurement of layers that is there, or else the cheap one, made now and kept."""
    found = read_record(places(job.model, teacher.folder.root), teacher.base)
    if found is not None:
        return found
    follower.status(f"Measuring how much each layer of {teacher.entry.title} matters")
    model = load_model(job.model, folder=job.folder, device=job.device, check=follower.check)
    sentences = training_sentences(MEASURED_SENTENCES, excluded=[PROMPT, *harvard_sentences()])
    utterances = [Utterance(sentence, voice) for sentence in sentences for voice in voices()]
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
                _saved(self.recipe, path, self.recipe.metadata_at(f"minutes:{stage:g}", stage), self.job.work)
        self._before = minutes
        self.follower.milestone(milestone)


def _saved(recipe: TokenRecipe, target: Path, metadata: dict[str, str], work: Path) -> Path:
    """Write what was trained beside others of its name, never over them; the path written."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        number, first = 1, target
        while target.exists():
            number += 1
            target = first.with_stem(f"{first.stem}-{number}")
        recipe.save(target, metadata)
        shutil.copyfile(work / LOG, target.with_suffix("." + LOG))
    except OSError as error:
        raise TrainingError(
            f"{target} could not be written: {files.reason(error)}. "
            "Everything that was trained is in the work folder: resume to write it again."
        ) from error
    return target
