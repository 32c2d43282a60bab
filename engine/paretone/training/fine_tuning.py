"""Fine-tuning of flow models: what its recipes share, the checkpoint to start from, and the speech to learn from, which
is recorded or the model's own, and kept in the work folder."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar
from zipfile import BadZipFile

import numpy as np
import torch
from torch import Tensor

from paretone.errors import SettingError, TrainingError
from paretone.files import explained, write_atomically
from paretone.front_end.phones import PhoneVocabulary, labels
from paretone.models import load_model
from paretone.models.base import Voice
from paretone.models.catalogue import judged_sentences, plug_in, voices
from paretone.models.declaration import Model
from paretone.models.f5.checkpoint import F5Checkpoint, read_f5_checkpoint
from paretone.models.f5.dit import DiT
from paretone.models.f5.front_end import Passage, Prompt
from paretone.models.families.flow import FlowSpeech
from paretone.models.files.checkpoints import fingerprint
from paretone.models.files.trained_weights import trained_guidance
from paretone.observer import Check
from paretone.reading import readable, version
from paretone.setting.knobs import Values
from paretone.setting.plan import Part
from paretone.setting.setting import Setting
from paretone.speaking import scripted
from paretone.training.batches import Corpus
from paretone.training.features import Example, Examples, check_rows, prepare, reader
from paretone.training.flow_matching import FlowMatchingOptions
from paretone.training.flow_subjects import JOINED, F5Subject, Subject
from paretone.training.learner import SMALL_PARAMETERS, JoinedLearner, LearningRecipe, Network, Rates, Scheduled
from paretone.training.manifest import ManifestRow, read_manifest, require_both
from paretone.training.natural_corpus import NATURAL_CORPUS, CorpusOptions, NaturalClip, known_options, make_corpus
from paretone.training.natural_teacher import NaturalTeacher
from paretone.training.processes import Processes
from paretone.training.requests import FineTuningRequest, Follower
from paretone.training.runs import Run
from paretone.training.sentences import PROMPT, corpus_sentences


@dataclass(frozen=True, kw_only=True)
class FineTuningOptions(Scheduled):
    methods: ClassVar[tuple[str, ...]]

    method: str
    learning_rate: float
    matrix_rate: float | None
    """Muon's learning rate for the layers' matrices; ``None``: AdamW for all weights."""
    average_decay: float = 0.999
    validation_items: int
    half_precision: bool = False
    seed: int = 1

    def __post_init__(self) -> None:
        if self.method not in self.methods:
            raise SettingError(f"There is no method {self.method!r}; known: {', '.join(self.methods)}.")
        for rate in (self.learning_rate, self.matrix_rate):
            if rate is not None and not rate > 0:
                raise SettingError(f"The learning rate must be above 0, not {rate:g}.")


Tuned = TypeVar("Tuned", bound=FineTuningOptions)


class FineTuningRecipe(LearningRecipe[Tuned, Network], Generic[Tuned, Network]):
    """Trains a copy of a checkpoint's model with all processes of the run; see
    :class:`paretone.training.session.Recipe`."""

    speech: str
    origin: str
    """The checkpoint, for messages."""

    def __init__(
        self,
        subject: Subject[Any, Any],
        base: str,
        processes: Processes,
        options: Tuned,
        prepare: Callable[[Network], object] = lambda student: None,
    ) -> None:
        """``subject``: the initial model and its speech, drawn on the CPU, so that a seed gives the same run on every
        device; ``base``: fingerprint of the checkpoint. ``prepare`` changes the student, at first a copy. :attr:`call`
        gives :meth:`_predicted` the student and its arguments."""
        self.subject, self.speech = subject, subject.speech
        torch.manual_seed(options.seed)
        self.teacher: Network = subject.model.to(processes.device).eval().requires_grad_(False)
        prepare(student := deepcopy(self.teacher))
        rates = Rates(options.matrix_rate, options.learning_rate)
        student.train().requires_grad_(True)
        learner = JoinedLearner(student, self._predicted, subject.layers, rates, options.average_decay, processes)
        super().__init__(learner, processes.device, options)
        self.processes, self.base, self.call = processes, base, learner.call
        self._queue, self._generator = subject.queue, subject.generator

    def _predicted(self, model: Network, *arguments: Any) -> Any:
        raise NotImplementedError

    def describe(self) -> dict[str, Any]:
        return {
            "speech": self.speech,
            "parameters": sum(one.numel() for one in self.model.parameters()),
            "initial_weights": self.base,
            "processes": self.processes.count,
            "options": asdict(self.options),
        }

    def state(self) -> dict[str, Any]:
        draws = {"queue": self._queue.state(), "generator": self._generator.get_state()}
        return {**super().state(), "draws": self.processes.gather(draws), "base": self.base}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Raises :class:`TrainingError` if the checkpoint began with other weights or number of processes."""
        if state["base"] != self.base:
            raise TrainingError(f"The run to resume was not started from {self.origin}; choose that model.")
        draws = self.processes.own(state["draws"])
        super().restore(state)
        self._queue.restore(draws["queue"])
        self._generator.set_state(draws["generator"])


def rates_of(request: FineTuningRequest, weights: Iterable[Tensor], small: Rates, large: Rates) -> Rates:
    """The requested learning rates, or the default ones for a model of this size."""
    usual = small if sum(one.numel() for one in weights) < SMALL_PARAMETERS else large
    return usual.unless_asked(request.learning_rate, request.matrix_rate)


def own_seed(seed: int, processes: Processes) -> int:
    """Seed of this process's random numbers."""
    return seed + 1_000_003 * processes.number


PORTION = 8
"""Pieces of work per file."""
FORMAT = "1"
"""Part of the folders' names: raise it when the contents change."""

Arrays = Mapping[str, np.ndarray]
Piece = TypeVar("Piece")
Clip = TypeVar("Clip")


@dataclass(frozen=True)
class Reading:
    voice: str
    arrays: Arrays = field(repr=False)

    def clip(self, kind: Callable[..., Clip]) -> Clip:
        """The reading as a clip of a ``kind`` with its arrays as fields."""
        return kind(self.voice, **{**self.arrays, "prompt": int(self.arrays["prompt"])})


def folder_of(parent: Path, *told: Any) -> Path:
    """Folder in ``parent`` for readings that depend on ``told``, JSON-compatible values."""
    return parent / hashlib.sha256(json.dumps([FORMAT, *told], sort_keys=True).encode()).hexdigest()[:16]


def kept_readings(
    folder: Path, pieces: Sequence[Piece], ready: Callable[[], Callable[[Piece], Iterable[Reading]]], follower: Follower
) -> tuple[Reading, ...]:
    """Readings of ``pieces`` in ``folder``; missing ones are made first.

    ``ready`` is called if some are missing and returns the function that makes the readings of a piece. ``follower``
    receives finished and total pieces and may raise to cancel; finished portions are kept. Raises
    :class:`TrainingError`.
    """
    make: Callable[[Piece], Iterable[Reading]] | None = None
    with explained(TrainingError, f"Prepared speech could not be written to {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        for start in range(0, len(pieces), PORTION):
            portion = pieces[start : start + PORTION]
            path = folder / _name(start)
            if not path.is_file():
                make = make or ready()
                made: list[Reading] = []
                for number, piece in enumerate(portion, start):
                    follower.progress(number, len(pieces))
                    made += make(piece)
                write_atomically(path, _packed(made))
            follower.progress(start + len(portion), len(pieces))
    return tuple(one for start in range(0, len(pieces), PORTION) for one in _read(folder / _name(start)))


def _name(start: int) -> str:
    return f"{start:06d}.npz"


def _packed(readings: Sequence[Reading]) -> bytes:
    content = io.BytesIO()
    named = {f"{number}.{name}": value for number, one in enumerate(readings) for name, value in one.arrays.items()}
    np.savez(content, voices=np.array([one.voice for one in readings], str), **named)  # type: ignore[arg-type]
    return content.getvalue()


def _read(path: Path) -> list[Reading]:
    """Raises :class:`TrainingError`."""
    problem = f"The prepared speech in {path} cannot be read"
    with readable(TrainingError, problem, "delete the file, and it is made again", BadZipFile), np.load(path) as file:
        voices = [str(one) for one in file["voices"]]
        arrays: list[dict[str, np.ndarray]] = [{} for _ in voices]
        for key in file.files:
            number, _, name = key.partition(".")
            if name:
                arrays[int(number)][name] = file[key]
    return [Reading(voice, one) for voice, one in zip(voices, arrays, strict=True)]


FOLDER = "own-speech"
"""Subfolder of the work folder."""
STEPS = 32
KEPT_BACK = 24
"""One reading in this many is held out for validation."""
FEWEST = 4
"""Minimum of readings for training and validation."""

Say = Callable[[str, Voice, int], Iterable[Arrays]]
"""From text, voice and seed to the stored arrays of each passage."""


@dataclass(frozen=True)
class Speaker:
    """Model that synthesises training speech."""

    manner: Mapping[str, Any]
    """Dependencies of its speech besides checkpoint, sentences and voices; JSON-compatible."""
    ready: Callable[[], Say]


Parts = tuple[tuple[Reading, ...], tuple[Reading, ...]]
"""Readings for training and for validation."""


def own_readings(run: Run, base: str, speaker: Speaker) -> Parts:
    """Own speech of the model, with the checkpoint fingerprint ``base``. Missing speech is synthesised first and kept
    in the work folder. Raises :class:`paretone.errors.PlainError`, and :class:`paretone.errors.Cancelled` after saving
    the finished speech."""
    request, chosen, follower = run.request, run.chosen, run.follower
    sentences = _sentences(request, chosen)
    told = [[text, voice.id, Path(voice.audio).stat().st_size, seed] for text, voice, seed in sentences]
    folder = folder_of(Path(request.work) / FOLDER, base, dict(speaker.manner), told)

    def ready() -> Callable[[tuple[str, Voice, int]], Iterable[Reading]]:
        say = speaker.ready()
        return lambda one: [Reading(one[1].id, arrays) for arrays in say(*one)]

    with run.processes.first_process_first():
        follower.status(f"{chosen.title} says {len(sentences)} sentences to learn from")
        found = kept_readings(folder, sentences, ready, follower)
    if len(found) < FEWEST:
        raise TrainingError(f"{chosen.title} said {len(found)} passages; at least {FEWEST} are needed: ask for more.")
    kept_back = () if request.validation else range(0, len(found), min(KEPT_BACK, len(found) // 2))
    training, held_out = (
        tuple(one for number, one in enumerate(found) if (number in kept_back) == held) for held in (False, True)
    )
    return training, held_out


Hear = Callable[[ManifestRow], Iterable[Reading]]
"""From a recording to its readings."""


def recorded_readings(run: Run, base: str, ready: Callable[[], Hear], *suffixes: str) -> Parts:
    """Recordings of the request's manifest, one reading each as made by the function that ``ready`` returns. They are
    kept in the work folder, and made again if a recording changes, or a file of its name with one of the
    ``suffixes``."""
    manifest, follower = Path(run.request.manifest), run.follower
    follower.status(f"Reading {manifest.name}")
    rows = read_manifest(manifest, follower.check)
    told = []
    for row in rows:
        files = [row.audio.with_suffix(one) for one in (row.audio.suffix, *suffixes)]
        told.append([str(row.audio.resolve()), row.voice, *(version(one)[1] for one in files)])
    with run.processes.first_process_first():
        follower.status(f"Preparing {len(rows)} recordings")
        folder = folder_of(Path(run.request.work) / SPEECH, base, told)
        heard = list(zip(rows, kept_readings(folder, rows, ready, follower), strict=True))
    training, held_out = (tuple(one for row, one in heard if row.held_out == held) for held in (False, True))
    return training, held_out


def flow_speaker(
    request: FineTuningRequest,
    chosen: Model,
    guidance: Values,
    keep: Callable[[Any, Any, np.ndarray], Arrays],
    check: Check,
) -> Speaker:
    """Flow model under ``guidance``. ``keep`` receives prompt, passage and the model's state of both, (frames, bands)
    float32; ``check`` may raise to cancel."""
    options = chosen.options_with(**{"steps": STEPS, **guidance})
    if "quick_start" in options:  # A sentence is one passage.
        options = options.replace(quick_start=False)

    def ready() -> Say:
        where = request.folder, request.variant, request.device
        model = load_model(request.model, *where, check=check, vocoder=request.vocoder)
        assert isinstance(model, FlowSpeech)

        def say(text: str, voice: Voice, seed: int) -> Iterable[Arrays]:
            setting = Setting(request.model, options, seed=seed)
            for prompt, passage, state in model.readings(scripted(model, text, voice, setting), check):
                yield keep(prompt, passage, state[0].float().cpu().numpy())

        return say

    return Speaker(options, ready)


def after_prompt(prompt: Tensor, state: np.ndarray, frames: int) -> np.ndarray:
    """(frames of both, bands) float16: ``frames`` of the ``prompt`` (1, at least as many, bands), then the frames of
    ``state`` after them."""
    return np.concatenate([prompt[0, :frames].float().cpu().numpy(), state[frames:]]).astype(np.float16)


def _sentences(request: FineTuningRequest, chosen: Model) -> list[tuple[str, Voice, int]]:
    """Texts with their voices and seeds. Raises :class:`TrainingError` for a model without voices."""
    speakers = voices(request.model, request.folder)
    if not speakers:
        raise TrainingError(f"{chosen.title} has no voices to speak in; put some into its folder, or give a manifest.")
    count = request.sentences * len(speakers)
    if request.texts:
        pairs = [(line, voice) for line in request.texts for voice in speakers]
        spoken = [pairs[number % len(pairs)] for number in range(count)]
    else:
        lines = corpus_sentences(count, request.seed, [PROMPT, *judged_sentences()])
        spoken = [(line, speakers[number % len(speakers)]) for number, line in enumerate(lines)]
    return [(text, voice, request.seed + number) for number, (text, voice) in enumerate(spoken)]


SPEECH = "speech"
"""Folder of the prepared speech, in the work folder."""


@dataclass(frozen=True)
class SubjectOptions:
    """What a training asks of its subject."""

    guidance: Values
    """Of the speech that the model says itself."""
    corpus: CorpusOptions
    """Natural speech for bundled models."""
    frames: int
    """Mel frames per step and process."""
    seed: int
    objective: FlowMatchingOptions | None = None
    """What problems drop of their conditions; ``None``: the subject's usual."""
    joined: float = JOINED
    """Share of items with two recordings of one voice, if the model can read those."""


@dataclass(frozen=True)
class Learning:
    """A flow with the speech that it learns from."""

    subject: Subject[Any, Any]
    base: str
    """Fingerprint of its checkpoint."""
    origin: str
    """The checkpoint, for messages."""


def subject_of(run: Run, wanted: SubjectOptions) -> Learning:
    """As the model declares. Raises :class:`paretone.errors.PlainError`."""
    part = replace(Part.of(run.chosen.subject), owner=plug_in(run.chosen.id))
    found = part.make(run, wanted)
    if not isinstance(found, Learning):
        raise part.wrong(found, "a Learning")
    return found


def f5_subject(run: Run, wanted: SubjectOptions) -> Learning:
    """See :attr:`paretone.models.declaration.Model.subject`. Raises :class:`TrainingError` for CFG-free weights."""
    variant = run.request.variant or ("" if run.request.folder else run.chosen.variant)
    checkpoint = read_f5_checkpoint(run.chosen.folder_at(run.request.folder), variant, run.follower.check)
    if trained_guidance(checkpoint.path) is not None:
        raise TrainingError(
            f"{checkpoint.path} has guidance in its weights already; start from the model that it was made from."
        )
    examples = speech_to_learn(run, checkpoint, float(wanted.guidance["guidance"]), wanted.corpus)
    model = diffusion_transformer(checkpoint)
    made = F5Subject(model, examples, wanted.frames, wanted.seed, wanted.objective, wanted.joined)
    return Learning(made, fingerprint(checkpoint.path, run.follower.check), str(checkpoint.path))


def diffusion_transformer(checkpoint: F5Checkpoint) -> DiT:
    """Model to train, with the weights of ``checkpoint``. Raises :class:`TrainingError` for other backbones."""
    backbone = checkpoint.build() if checkpoint.config.backbone == "DiT" else None
    if not isinstance(backbone, DiT):
        raise TrainingError(f"{checkpoint.path} is not an F5-TTS; only its diffusion transformer can be trained here.")
    return backbone


def speech_to_learn(run: Run, checkpoint: F5Checkpoint, guidance: float, corpus: CorpusOptions) -> Examples:
    """Training speech of ``run``: recordings, the model's own speech under ``guidance``, or both. A bundled model
    without either learns from natural speech with the options ``corpus``, synthesised if missing. Raises
    :class:`paretone.errors.PlainError`."""
    request, found = run.request, Examples((), ())
    if request.manifest:
        manifest, follower = Path(request.manifest), run.follower
        follower.status(f"Reading {manifest.name}")
        rows, read = read_manifest(manifest, follower.check), reader(checkpoint)
        check_rows(manifest, rows, read, follower.check)
        with run.processes.first_process_first():
            follower.status(f"Preparing {len(rows)} recordings")
            found += prepare(manifest, rows, read, Path(request.work) / SPEECH, follower.progress)
    if request.sentences:
        found += own_examples(run, checkpoint, guidance)
    if not found.training and run.chosen.bundled:
        vocabulary = PhoneVocabulary.load(checkpoint.path.parent / "vocab.txt")
        natural = natural_speech(run, corpus)
        training, held_out = (
            tuple(Example(one.voice, labels(one.phones, one.frames, vocabulary), one.mel) for one in part)
            for part in (natural.training, natural.held_out)
        )
        found += Examples(training, () if request.validation else held_out)
    require_both(found.training, found.held_out)
    return found


def own_examples(run: Run, checkpoint: F5Checkpoint, guidance: float) -> Examples:
    """The model's own speech, each sentence after the recording of its voice."""

    def keep(prompt: Prompt, passage: Passage, state: np.ndarray) -> Arrays:
        mel = after_prompt(prompt.mel, state, prompt.frames)
        return {"ids": passage.ids[0].numpy().astype(np.int32), "mel": mel, "prompt": np.array(prompt.frames)}

    check = run.follower.check
    speaker = flow_speaker(run.request, run.chosen, Values(guidance=guidance), keep, check)
    training, held_out = own_readings(run, fingerprint(checkpoint.path, check), speaker)
    return Examples(tuple(one.clip(Example) for one in training), tuple(one.clip(Example) for one in held_out))


def natural_speech(run: Run, options: CorpusOptions) -> Corpus[NaturalClip]:
    """Natural speech for a bundled model: the corpus of the request, made with ``options`` if missing."""
    request = run.request
    folder = Path(request.corpus) if request.corpus else Path(request.work).parent / NATURAL_CORPUS
    with run.processes.first_process_first():
        run.follower.status("Preparing natural speech")
        return make_corpus(folder, known_options(folder) or options, NaturalTeacher, run.follower.progress)
