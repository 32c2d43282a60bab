"""Training runs from request to exported file: follower, reports, and saving the result with its log, once."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import BinaryIO, Generic, Protocol, TypeVar

import torch

from paretone import device, files
from paretone.errors import TrainingError
from paretone.models.declaration import Model
from paretone.observer import Observer, Passing
from paretone.paths import own_name
from paretone.reading import parsed_json
from paretone.setting.knobs import Values
from paretone.studies.evaluation_sets import read_evaluation
from paretone.training.manifest import OPTIONAL, REQUIRED, TRAIN, VALIDATION, read_manifest
from paretone.training.processes import Processes, join_processes
from paretone.training.requests import FineTuningRequest, Follower, Trained, TrainingProgress, TrainingRequest
from paretone.training.session import LOG, Budget, Intervals, Recipe, TrainingSession, check_place, read_log
from paretone.wording import comma_separated

RECORDINGS = "recordings.csv"
"""In the work folder: manifest of a training that is validated on an evaluation set."""
Request = TypeVar("Request", bound=FineTuningRequest)
Validated = TypeVar("Validated", bound=TrainingRequest)

_OTHER_SET = "The run to resume learnt from, or was validated on, other recordings:"
_PIECE_BYTES = 2**24
_LONGEST_HEADER = 100_000_000
"""Maximum header length in bytes by the format."""


def save_with_log(save: Callable[[Path], None], target: Path, work: Path) -> Path:
    """Let ``save`` write ``target``, or a numbered file next to an existing one, with the log of the run in ``work``;
    returns the path.

    An existing file with the same content is this run's, written before it was killed or resumed, and stays. Raises
    :class:`TrainingError`.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        files.clear_abandoned(target.parent)
        place = tempfile.mkdtemp(prefix=files.TEMPORARY, dir=target.parent)
        made = Path(place) / target.name
        try:
            save(made)
            others = (target.with_stem(f"{target.stem}-{number}") for number in count(2))
            path = next(one for one in chain([target], others) if not os.path.lexists(one) or _says_the_same(one, made))
            # The log first: weights without one would look like somebody else's.
            files.write_through(log_of(path), (work / LOG).read_bytes())
            if not path.is_symlink():  # Otherwise the link's target has the same content, and the link stays.
                os.replace(made, path)
        finally:
            with suppress(OSError):
                made.unlink(missing_ok=True)
                os.rmdir(place)
    except OSError as error:
        raise TrainingError(
            f"{target} could not be written: {files.reason(error)}. "
            "Everything that was trained is in the work folder: resume to write it again."
        ) from error
    return path


def log_of(target: Path) -> Path:
    return target.with_suffix("." + LOG)


def _says_the_same(one: Path, other: Path) -> bool:
    """Whether two safetensors files have equal contents and equivalent headers: metadata have no fixed order. Source:
    "Safetensors", Hugging Face, section "Format"."""
    if not one.is_file() or one.stat().st_size != other.stat().st_size:
        return False
    with one.open("rb") as left, other.open("rb") as right:
        return _header(left) == _header(right) and all(
            piece == right.read(_PIECE_BYTES) for piece in iter(partial(left.read, _PIECE_BYTES), b"")
        )


def _header(file: BinaryIO) -> object:
    """Parsed header, or its bytes if it is not JSON; leaves the file's position after it."""
    content = file.read(min(int.from_bytes(file.read(8), "little"), _LONGEST_HEADER))
    try:
        return parsed_json(content)
    except ValueError:
        return content


def use_threads(request: TrainingRequest) -> None:
    torch.set_num_threads(request.threads or device.thread_count())


class Reporting(Passing, Follower):
    def __init__(self, observer: Observer) -> None:
        super().__init__(observer, "status", "progress")
        self._observer = observer

    def milestone(self, milestone: TrainingProgress) -> None:
        self._observer.report("training", milestone)


class KeptStages(Passing, Follower):
    """Keeps a copy of the weights at each of ``stages``, and passes every milestone on. Stages before the step that a
    run was resumed from are skipped: their weights are gone."""

    def __init__(
        self,
        stages: Sequence[float],
        reached: Callable[[TrainingProgress], float],
        target: Path,
        unit: str,
        save: Callable[..., None],
        work: Path,
        follower: Follower,
    ) -> None:
        """``reached``: a milestone's place on the scale of the stages, in ``unit``; ``target``: path of the whole run's
        weights, after which those of stages are named; ``save(path, stage=…)`` writes a stage."""
        super().__init__(follower, "status", "progress")
        self._left = sorted(stages)
        self._reached, self._target, self._unit, self._save = reached, target, unit, save
        self._work, self._follower = work, follower

    def milestone(self, milestone: TrainingProgress) -> None:
        while self._left and self._reached(milestone) >= self._left[0]:
            stage = self._left.pop(0)
            path = self._target.with_stem(f"{self._target.stem}-after-{stage:g}-{self._unit}")
            # A resumed run may have kept it before: then both logs begin with the same line.
            ours, theirs = read_log(self._work / LOG), read_log(log_of(path))[:1]
            if path.exists() and ours[:1] == theirs and ours:
                continue
            begun = [TrainingProgress(one["step"], 0.0, one["seconds"], None) for one in ours if "resumed" in one]
            if begun and self._reached(begun[-1]) > stage:
                self._follower.status(f"{path.stem} is not kept: the training had passed it when it was resumed")
            else:
                save_with_log(partial(self._save, stage=stage), path, self._work)
        self._follower.milestone(milestone)


class FineTuning(Recipe, Protocol):
    @property
    def file_name(self) -> str: ...

    @property
    def result(self) -> Values:
        """Figures of the result."""

    def save(self, path: Path) -> None: ...

    def summary(self, validation: Mapping[str, float]) -> str:
        """The result as a sentence; ``validation`` is empty in all processes but the first."""


def with_validation(request: Validated, follower: Observer) -> Validated:
    """``request``, validated only on the recordings of its evaluation set if it names one: its manifest is then one in
    the work folder, of the rows to train on and the set's recordings. Tells the set's lines, hours and hash. Raises
    :class:`paretone.errors.PlainError`, also for a run to resume that was validated on something else."""
    place = Path(request.work) / RECORDINGS
    if not request.validation:
        if request.resume and place.exists():
            raise TrainingError(f"{_OTHER_SET} name its evaluation set (--validation), or choose another work folder.")
        return request
    chosen = read_evaluation(
        Path(request.validation), Path(request.validation_audio) if request.validation_audio else None
    )
    follower.status(f"Validating on {chosen.words}")
    spoken = [one for one in chosen.rows if one.reference]
    if not spoken:
        raise TrainingError(f"{chosen.path} has no recordings of its texts, on which a training could be validated.")
    own = read_manifest(Path(request.manifest), follower.check, kept_back=False) if request.manifest else ()
    rows: list[tuple[object, ...]] = [(*REQUIRED, *OPTIONAL)]
    for row in own:
        if not row.held_out:
            phones = " ".join(f"{phone}:{end}" for phone, _, end in row.phones)
            rows.append((row.audio.resolve(), row.text, phones, row.voice, TRAIN))
    for one in spoken:
        # The prompts of a set are of many voices.
        rows.append((Path(one.reference).resolve(), one.text, "", Path(one.voice.audio).stem, VALIDATION))
    content = comma_separated(rows, for_people=False).encode()
    with files.explained(TrainingError, f"{place} could not be written", place):
        if request.resume and not (place.exists() and place.read_bytes() == content):
            raise TrainingError(f"{_OTHER_SET} resume it as it was started, or choose another work folder.")
        place.parent.mkdir(parents=True, exist_ok=True)
        files.write_through(place, content)
    return replace(request, manifest=str(place))


@dataclass(frozen=True)
class Run(Generic[Request]):
    """A fine-tuning that has begun, in one of its processes."""

    request: Request
    """With its validation set in the manifest."""
    chosen: Model
    processes: Processes
    follower: Follower
    """Of this process."""

    def target(self, folder: Path, file_name: str) -> Path:
        """Path of the result ``file_name``: where the request wants it, or in ``folder``, the user's."""
        request = self.request
        if request.export:
            return Path(request.export) / file_name
        return folder / own_name(Path(request.folder or self.chosen.folder) / folder.name / file_name, request.model)


def begin(request: Request, chosen: Model, follower: Follower) -> Run[Request]:
    """Raises :class:`PlainError` if there is no training speech for ``chosen``, or the work folder cannot be used."""
    check_place(Path(request.work), request.resume, Path(request.export) if request.export else None)
    Budget(request.minutes, request.steps, request.epochs)  # Raises before anything is read.
    processes = join_processes(request.device, request.half_precision)
    if not processes.is_first:
        follower = Follower()
    if not (request.names_speech or chosen.bundled):
        raise TrainingError(
            f"{chosen.title} needs speech to learn from: give a manifest of recordings, or a number of sentences that "
            "it is to say itself."
        )
    follower.status(f"Reading {chosen.title}")
    # As in synthesis: denormal numbers are inaudible and slow.
    torch.set_flush_denormal(True)
    with processes.first_process_first():
        request = with_validation(request, follower)
    return Run(request, chosen, processes, follower)


def complete(recipe: FineTuning, run: Run, folder: Path, intervals: Intervals) -> Trained:
    """Train, and write the result into ``request.export`` or ``folder``. Raises :class:`paretone.errors.PlainError`,
    and :class:`Cancelled` after writing a checkpoint."""
    request, processes, follower = run.request, run.processes, run.follower
    work, budget = Path(request.work), Budget(request.minutes, request.steps, request.epochs)
    session = TrainingSession(recipe, work, budget, intervals, follower.status, follower.milestone, processes)
    session.train(request.resume)
    target = run.target(folder, recipe.file_name)
    if processes.is_first:
        target = save_with_log(recipe.save, target, work)
    summary, result = recipe.summary(session.validation), recipe.result
    seconds, validation = session.seconds, session.validation
    return Trained(str(target), summary, result, session.number, seconds, validation, processes.is_first)
