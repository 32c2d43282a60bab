"""Requests, reports, results and followers of all trainings. Torch-free; all but followers picklable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from paretone.observer import Observer
from paretone.setting.knobs import Values

if TYPE_CHECKING:
    from paretone.training.session import Milestone


@dataclass(frozen=True, kw_only=True)
class TrainingRequest:
    """Train something for ``model``. The budget is ``minutes`` or ``steps``. Cancelling leaves a checkpoint in the
    run's folder ``work``, from which the same request continues with ``resume``. Reports are
    :class:`TrainingProgress`; the result is :class:`Trained`."""

    activity: ClassVar[str] = "training"

    model: str
    work: str
    manifest: str = ""
    """Recordings to learn from, and their texts."""
    folder: str = ""
    """Folder of the model's checkpoint, if not the usual one."""
    vocoder: str = ""
    """Folder of its vocoder, if not the usual one."""
    minutes: float | None = None
    steps: int | None = None
    resume: bool = False
    half_precision: bool = False
    rate_scale: float = 1.0
    """Factor on all learning rates."""
    device: str = "auto"
    """As in :class:`paretone.session.commands.LoadModel`."""
    threads: int | None = None
    """Threads of the processor; ``None`` for all cores but one."""
    export: str = ""
    """Folder for the result; ``""`` for the user's own, where the application looks for it."""


@dataclass(frozen=True, kw_only=True)
class CompanionRequest(TrainingRequest):
    """Train a smaller companion of the language model ``model``.

    The model speaks ``sentences`` a voice itself and learns from that; recordings of the manifest and clips of the
    corpus come in addition, or alone where ``sentences`` is 0.
    """

    sentences: int = 600
    corpus: str = ""
    """Folder of a corpus of natural speech, for models that speak naturally."""
    positions: int = 1_600
    """Phones and tokens of a step."""
    rate: float | None = None
    """AdamW's learning rate; ``None`` for the usual one for a model of this size."""
    matrix_rate: float | None = None
    """Muon's learning rate for the matrices; ``None`` for the usual one or, if ``rate`` is given, for AdamW on
    everything."""
    seed: int = 1

    @property
    def token_options(self) -> dict[str, Any]:
        manner = {"half_precision": self.half_precision, "rate_scale": self.rate_scale}
        return {"positions": self.positions, "seed": self.seed, **manner}


OWN_SENTENCES = 200


def usual_own_sentences(bundled: bool) -> int:
    """Sentences a voice that a model says itself to be fine-tuned on, unless another number is asked for: none where
    speech of the kind that it learnt from can be made."""
    return 0 if bundled else OWN_SENTENCES


@dataclass(frozen=True, kw_only=True)
class FineTuningRequest(TrainingRequest):
    """Fine-tune ``model`` on recordings, on what it says itself, or on both. A bundled model that is given neither
    learns from the kind of speech that it learnt from. ``folder`` and ``variant`` as in
    :class:`paretone.session.commands.LoadModel`; the loaded model is not touched."""

    variant: str = ""
    corpus: str = ""
    """Folder of a corpus of natural speech, for bundled models; ``""``: next to the work folder."""
    sentences: int = 0
    """Sentences a voice that the model says itself, in addition to the recordings of the manifest."""
    texts: tuple[str, ...] = ()
    """These sentences, each in every voice, again and again by other seeds; none: other ones for every voice, made
    up."""
    learning_rate: float | None = None
    """``None`` for the usual one of a model of this size."""
    matrix_rate: float | None = None
    """Muon's learning rate for the matrices of the layers."""
    frames: int = 1_800
    """The model's frames of a step."""
    seed: int = 1

    @property
    def names_speech(self) -> bool:
        """Whether it says what to learn from."""
        return bool(self.manifest or self.sentences)


@dataclass(frozen=True)
class TrainingProgress:
    """After every training step, with its ``losses``, and after every validation, with its figures: the points of the
    two curves."""

    step: int
    """From 1; 0 for the validation before the first step."""
    share: float
    """Spent of the budget, 0 to 1."""
    seconds: float
    """Spent by the budget's clock."""
    seconds_left: float | None
    """Wall seconds; ``None`` until they can be estimated."""
    losses: Mapping[str, float]
    """By name; empty after a validation."""
    validation: Mapping[str, float]
    """By name; empty after a step. Of weights without guidance: ``guided t=0.05`` and so on, mean squared error to the
    guided velocity at a time; ``gap``, their sum as a share of what it is without training; ``learnt``, the share of
    the guidance that one branch has learned, 0 to about 1. Of a draft: ``acceptance``. Of a student: ``divergence``
    from its teacher in nats. Of both: ``same_first``, the share of tokens at which both would choose the same, and
    ``correct``, at which it is what was spoken."""


@dataclass(frozen=True)
class Trained:
    """A finished training, and the checkpoint that came of it."""

    checkpoint: str
    summary: str
    """Result, as a sentence."""
    figures: Values
    """Figures of the checkpoint. Of weights without guidance: ``weight``, ``equivalent_guidance`` and ``method``; of a
    draft and a student: ``layers``, how many there are, and ``retained``, which, separated by commas; a student also
    ``depth``."""
    steps: int
    seconds: float
    validation: Mapping[str, float]
    is_first: bool = True
    """Whether this process speaks for all that trained together, and has written the checkpoint."""


class Follower(Observer):
    """Follower of a training; its progress is that of preparing speech. This one shows nothing."""

    def milestone(self, milestone: Milestone) -> None:
        """Called after every step and validation."""
