"""Requests, reports, results and followers of all trainings. Torch-free; all but followers picklable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from paretone.models.base import LANGUAGE
from paretone.models.declaration import Model
from paretone.observer import Observer
from paretone.reading import is_regular
from paretone.setting.knobs import Values

CHECKPOINT = "checkpoint.pt"
"""File in a run's folder to resume from."""


def has_run(work: str) -> bool:
    """Whether the folder ``work``, as it was typed, has a run to resume."""
    return bool(work) and is_regular(Path(work) / CHECKPOINT)


@dataclass(frozen=True, kw_only=True)
class TrainingRequest:
    """Train something for ``model``. The budget is ``minutes``, ``steps`` or ``epochs``. Cancelling leaves a checkpoint
    in the run's folder ``work``; the same request with ``resume`` continues from it. Reports:
    :class:`TrainingProgress`; result: :class:`Trained`."""

    activity: ClassVar[str] = "training"

    model: str
    work: str
    manifest: str = ""
    validation: str = ""
    """Evaluation set whose recordings validate the training (:mod:`paretone.studies.evaluation_sets`), in place of what
    is held out otherwise; ``""``: none."""
    validation_audio: str = ""
    """Folder of LibriSpeech's recordings, for its list."""
    folder: str = ""
    """Folder of the model's checkpoint; ``""``: the default."""
    vocoder: str = ""
    """Folder of the vocoder; ``""``: the default."""
    minutes: float | None = None
    steps: int | None = None
    epochs: float | None = None
    """Clips drawn over clips to train on."""
    resume: bool = False
    begun_again: bool = False
    """By a queue: resume if the work folder holds a checkpoint, which only the engine's machine knows."""
    half_precision: bool = False
    rate_scale: float = 1.0
    """Factor on all learning rates."""
    device: str = "auto"
    """As in :class:`paretone.session.commands.LoadModel`."""
    threads: int | None = None
    """CPU threads; ``None``: all cores but one."""
    export: str = ""
    """Folder for the result; ``""``: the user's folder, where the application looks for it."""


@dataclass(frozen=True, kw_only=True)
class CompanionRequest(TrainingRequest):
    """Train a smaller companion of the language model ``model``.

    The model speaks ``sentences`` per voice itself and learns from them; recordings of the manifest and clips of the
    corpus come in addition, or alone if ``sentences`` is 0.
    """

    sentences: int = 600
    corpus: str = ""
    """Folder of a corpus of natural speech, for bundled models."""
    positions: int = 1_600
    """Phones and tokens per step."""
    rate: float | None = None
    """AdamW's learning rate; ``None``: the default for the model's size."""
    matrix_rate: float | None = None
    """Muon's learning rate for the matrices; ``None``: the default for the model's size or, if ``rate`` is given, AdamW
    for everything."""
    seed: int = 1

    @property
    def token_options(self) -> dict[str, Any]:
        manner = {"half_precision": self.half_precision, "rate_scale": self.rate_scale}
        return {"positions": self.positions, "seed": self.seed, **manner}


def why_no_teacher(chosen: Model) -> str:
    """Reason why drafts and students of a model cannot be trained, as a sentence, or ``""``."""
    why = "declares no teacher" if chosen.family == LANGUAGE else "decodes no tokens"
    return "" if chosen.teacher else f"No drafts or students of {chosen.title} can be trained: it {why}."


OWN_SENTENCES = 200


def usual_own_sentences(bundled: bool) -> int:
    """Default number of own sentences per voice: none for bundled models, whose training speech can be synthesised."""
    return 0 if bundled else OWN_SENTENCES


@dataclass(frozen=True, kw_only=True)
class FineTuningRequest(TrainingRequest):
    """Fine-tune ``model`` on recordings, on its own speech, or on both. A bundled model without either learns from its
    original kind of speech. ``folder`` and ``variant`` as in :class:`paretone.session.commands.LoadModel`; the loaded
    model stays unchanged."""

    variant: str = ""
    corpus: str = ""
    """Folder of a corpus of natural speech, for bundled models; ``""``: next to the work folder."""
    sentences: int = 0
    """Sentences per voice of the model's own speech, in addition to the manifest's recordings."""
    texts: tuple[str, ...] = ()
    """Sentences to speak in every voice, repeated with new seeds; empty: generated ones, new for each voice."""
    learning_rate: float | None = None
    """``None``: the default for the model's size."""
    matrix_rate: float | None = None
    """Muon's learning rate for the layers' matrices."""
    frames: int = 1_800
    """Model frames per step."""
    seed: int = 1

    @property
    def names_speech(self) -> bool:
        return bool(self.manifest or self.sentences)


@dataclass(frozen=True)
class TrainingProgress:
    """Progress after a training step, with its ``losses``, or after a validation, with its figures."""

    step: int
    """Step number from 1; 0: the validation before the first step."""
    share: float
    """Spent share of the budget, 0 to 1."""
    seconds: float
    """Seconds spent by the budget's clock."""
    seconds_left: float | None
    """Estimated wall seconds left; ``None`` while unknown."""
    losses: Mapping[str, float] = field(default_factory=dict)
    """Losses by name; empty after a validation."""
    validation: Mapping[str, float] = field(default_factory=dict)
    """Figures by name; empty after a step. CFG-free weights: ``guided t=0.05`` etc., mean squared error to the guided
    velocity at a time; ``gap``, their sum relative to the untrained model's; ``learnt``, the share of the guidance
    learned by one branch, 0 to about 1. Draft: ``acceptance``. Student: ``divergence`` from its teacher in nats. Both:
    ``same_first``, the share of tokens with the teacher's top choice, and ``correct``, the share with the spoken token
    as top choice."""


@dataclass(frozen=True)
class Trained:
    checkpoint: str
    summary: str
    """Result as a sentence."""
    figures: Values
    """Figures of the checkpoint. CFG-free weights: ``weight``, ``equivalent_guidance`` and ``method``; draft and
    student: ``layers``, their number, and ``retained``, their indices separated by commas; student also ``depth``."""
    steps: int
    seconds: float
    validation: Mapping[str, float]
    is_first: bool = True
    """Whether this process reports for the whole group and has written the checkpoint."""


class Follower(Observer):
    """Follower of a training, silent by default; ``progress`` is that of preparing speech."""

    def milestone(self, milestone: TrainingProgress) -> None:
        """Called after every step and validation."""
