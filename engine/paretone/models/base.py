"""The interface of model adapters, for all families. Torch-free, so that a front end may read it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from paretone.errors import SettingError
from paretone.observer import SILENT, Observer
from paretone.sampling.guidance import STRENGTH, Guidance
from paretone.sampling.operations import OperationCounts
from paretone.setting.knobs import Knob, Values
from paretone.setting.take import Measurements, Trace

if TYPE_CHECKING:
    from paretone.sampling.calibration_target import CalibrationTarget


FLOW, LANGUAGE, MASKED = "flow", "language", "masked"
"""The families of models: from noise to speech in steps, token by token, and a canvas of masked tokens that is filled
in."""
_WAYS = {LANGUAGE: "decodes token by token", MASKED: "fills in masked tokens"}
"""Effects of options of models that are not flow models."""


@dataclass(frozen=True)
class WeightSet:
    """Weights of a model, fine-tuned so that one branch speaks as under classifier-free guidance."""

    path: str
    fingerprint: str
    """SHA-256 of the file, hexadecimal."""
    weight: float
    """The training's guidance weight w."""
    method: str
    """``model-guidance`` or ``distillation``."""

    @property
    def equivalent_guidance(self) -> float:
        """The strength of guidance that these weights replace, g = w / (1 − w), as the official code counts it."""
        return self.weight / (1 - self.weight)

    @property
    def guidance(self) -> Values:
        """The same as an option of the sampler."""
        return Values(guidance=self.equivalent_guidance)


@dataclass(frozen=True)
class DraftWeights:
    """The draft's own part of speculative decoding; the rest is its target's."""

    path: str
    fingerprint: str
    retained: tuple[int, ...]
    """The target's layers that it runs, by their numbers there."""
    trained: tuple[int, ...]
    head: bool
    """Whether its head was trained as well."""


@dataclass(frozen=True)
class StudentWeights:
    """A language model with fewer layers that has learnt from the whole one."""

    path: str
    fingerprint: str
    retained: tuple[int, ...]
    """The layers that it kept, by their numbers in the whole model."""
    stage: str
    """``recovered``, or ``minutes:5`` after a number of minutes of distillation."""
    minutes: float
    """Minutes of training so far."""

    @property
    def depth(self) -> int:
        return len(self.retained)

    @property
    def recovered(self) -> bool:
        return self.stage == RECOVERED


@dataclass(frozen=True)
class IntervalWeights:
    """Weights of a flow, fine-tuned so that one evaluation carries the state over an interval of time, guidance
    included: those of a flow model, or of the flow after a language model."""

    path: str
    fingerprint: str
    evaluations: int
    """Most evaluations from noise to speech that they were trained for."""
    sway: float
    """Sway of the grid that the evaluations stand on."""
    guidance: Values
    """Options of the guidance that they include."""
    method: str
    """How they were trained."""
    temperature: float = 1.0
    """Scale of the initial noise that they are used with."""


TrainedWeights = WeightSet | DraftWeights | StudentWeights | IntervalWeights
RECOVERED = "recovered"


@dataclass(frozen=True)
class ModelInfo:
    id: str
    title: str
    family: str
    variant: str
    checkpoint: str
    fingerprint: str
    """SHA-256 of the checkpoint file, hexadecimal."""
    licence: str
    device: str
    precision: str
    sample_rate: int
    layers: int
    branches: int
    parameters: int
    text_front_end: str
    knobs: tuple[Knob, ...] = ()
    precisions: tuple[str, ...] = ("float32",)
    """Precisions that pay on its device."""
    weight_sets: tuple[WeightSet, ...] = ()
    """Others of the same model that have guidance in them."""
    interval_weights: tuple[IntervalWeights, ...] = ()
    """Others of the same model that carry the state over intervals of time."""
    trained_guidance: float | None = None
    """The weight w of the guidance that the checkpoint was trained with, and has in its weights: it runs one branch and
    takes no more."""
    drafts: tuple[DraftWeights, ...] = ()
    students: tuple[StudentWeights, ...] = ()
    foreign: tuple[str, ...] = ()
    """Files next to these that were made from another checkpoint and cannot be used."""
    layer_order: tuple[int, ...] = ()
    """Its layers from the most to the least important, if that was measured."""
    token_rate: float | None = None
    """Speech tokens a second, of language models."""
    lacking: tuple[tuple[str, str], ...] = ()
    """What its device cannot do, such as ``recording``, each with the reason as a sentence; see
    :func:`paretone.device.lacking`."""
    guidance: Guidance = STRENGTH
    mel_steps: int = 0
    """Steps in which a language model's flow makes mel frames of its tokens; 0: it has no flow."""
    device_type: str = ""
    """``cpu``, ``cuda`` or ``mps``; ``""`` if it is not loaded."""
    vocoder: str = ""
    """SHA-256 of the vocoder's weights if it is not the usual one."""

    @property
    def all_weights(self) -> str:
        """The identity of all weights that a take is made with: :attr:`fingerprint`, which preparations and profiles
        go by; with another vocoder the SHA-256 of both."""
        if not self.vocoder:
            return self.fingerprint
        return hashlib.sha256(f"{self.fingerprint}{self.vocoder}".encode()).hexdigest()


@dataclass(frozen=True)
class Voice:
    """A reference recording and its transcript. ``phones`` are ``(phone, start, end)`` in seconds where known."""

    id: str
    title: str
    audio: str
    transcript: str
    phones: tuple[tuple[str, float, float], ...] = ()


@dataclass(frozen=True)
class Utterance:
    text: str
    voice: Voice


@dataclass(frozen=True)
class Piece:
    """Audio that can be played now: float32 samples at the model's rate, continuing where the last piece ended."""

    samples: np.ndarray = field(repr=False)
    passage: int = 0
    """The passage that it is of, counted from 0."""
    trace: Trace | None = None
    """What was seen inside of that passage up to here, as a trace of it alone; ``None`` for models without tokens."""


@dataclass(frozen=True)
class Synthesis:
    samples: np.ndarray = field(repr=False)
    sample_rate: int = 24000
    measurements: Measurements = field(default_factory=Measurements)
    trace: Trace = field(default_factory=Trace)
    notes: tuple[str, ...] = ()
    """Things the user should know, for example which characters were dropped."""
    unfinished: str = ""
    """Why passages are missing, such as ``cancelled after 12 of 126 passages``; ``""`` if none is."""
    repeats: tuple[Measurements, ...] = ()
    """Measurements of each repeat, if it was timed again: the times of :attr:`measurements` are their medians then."""


def finished_part(error: BaseException) -> Synthesis | None:
    """The passages that were finished before ``error`` ended a synthesis, :class:`Cancelled` and
    :class:`KeyboardInterrupt` included; ``None`` if there were none."""
    return getattr(error, _FINISHED, None)


def keep_finished_part(error: BaseException, finished: Synthesis) -> None:
    """Have :func:`finished_part` give ``finished``."""
    setattr(error, _FINISHED, finished)


_FINISHED = "finished_part"


@dataclass(frozen=True)
class AttentionCapture:
    """Attention of one layer at one step, mean over heads."""

    layer: int
    step: int
    frames: int
    """Before pooling, as ``prompt_frames`` at their beginning."""
    prompt_frames: int
    maps: np.ndarray = field(repr=False)
    """(branches, queries, keys) float32, rows sum to one; queries and keys may be pooled."""
    similarities: tuple[float, ...] = ()
    """The diagonal similarity of each branch."""
    frame_seconds: float = 256 / 24000


@dataclass(frozen=True)
class Script:
    """A text, read and made ready to be spoken in a voice under a plan. What is prepared is of the model's own kinds:
    Any."""

    voice: Voice
    plan: Any
    """What the setting means for the model; see :class:`paretone.setting.plan.Plan`."""
    network: Any = field(repr=False)
    """The network under the plan, ready and warm."""
    prompt: Any = field(repr=False)
    passages: tuple[Any, ...] = field(repr=False)
    """The text in pieces, each with its own ``text``."""
    notes: tuple[str, ...]
    seconds: float
    """Wall seconds that this took; :meth:`SpeechModel.speak` counts them as its own."""
    cpu_seconds: tuple[float, float | None] = (0.0, None)
    """CPU seconds of this process and of all others meanwhile."""

    @property
    def options(self) -> Values:
        """The sampler options in force."""
        return self.plan.options

    @property
    def seed(self) -> int:
        return self.plan.seed


class SpeechModel(Protocol):
    """A loaded model, ready to speak. Used by one thread at a time. It is given plans; :mod:`paretone.speaking` makes
    them of settings."""

    info: ModelInfo

    def look_for_weights(self, check: Callable[[], None]) -> ModelInfo:
        """Find weights made since the model was loaded (fine-tuned ones, drafts, students); the new ``info``."""

    def make_ready(self, plan: Any, observer: Observer = SILENT, voice: Voice | None = None) -> None:
        """Read, warm up and measure what ``plan`` needs in addition to the model itself, such as other weights; some
        of it depends on the ``voice`` that is to speak. :meth:`script` does so too, but then the time counts as the
        synthesis's."""

    def script(self, text: str, voice: Voice, plan: Any, observer: Observer = SILENT) -> Any:
        """The :class:`Script` of ``text``, of the family's own kind. Everything further is asked of it: speaking,
        counting, looking inside. Raises :class:`PlainError`."""

    def speak(
        self, script: Any, observer: Observer = SILENT, play: Callable[[Piece], None] = lambda piece: None
    ) -> Synthesis:
        """Speak to the end; ``play`` gets the pieces as they can be played, and what it raises ends the synthesis.
        Raises :class:`PlainError` and :class:`Cancelled`; what was finished until then goes with them, see
        :func:`finished_part`."""

    def stream(self, script: Any, observer: Observer = SILENT) -> Generator[Piece, None, Synthesis]:
        """The same piece by piece: yields what can be played and returns the whole."""


class FlowModel(SpeechModel, Protocol):
    """A loaded model of the flow family: what else can be asked of it. See :func:`flow_model`."""

    def replanned(self, script: Any, plan: Any) -> Any:
        """``script`` under another ``plan`` that differs in the times of its steps only: nothing is read again."""

    def operations(self, script: Any) -> OperationCounts:
        """Operations of one backbone evaluation of the first passage, without running anything."""

    def last_state(self, script: Any, check: Callable[[], None] = lambda: None) -> np.ndarray:
        """The new speech of the first passage where the sampler ends, (frames, bands) float32, before it is decoded.
        ``check`` is called after every step and may raise to cancel. Raises :class:`PlainError`."""

    def calibration_target(self, script: Any) -> CalibrationTarget:
        """The backbone about to speak the first passage, to be calibrated. Raises :class:`SettingError` if the model
        cannot skip."""

    def capture_attention(self, script: Any, layer: int, step: int, observer: Observer = SILENT) -> AttentionCapture:
        """Run up to ``step`` and look at ``layer``."""


def flow_model(model: SpeechModel, purpose: str) -> FlowModel:
    """``model``, known to be of the flow family, which ``purpose`` (such as ``Calibrating``) needs. Raises
    :class:`SettingError` if it is of another family."""
    if model.info.family != FLOW:
        raise SettingError(
            f"{purpose} is for models that go from noise to speech in steps, and {model.info.title} "
            f"{_WAYS[model.info.family]}; load another model."
        )
    return cast("FlowModel", model)


@dataclass(frozen=True)
class OfficialIds:
    size: int
    """Number of ids: rows of the table of embeddings."""
    first_code: int
    """Id of speech token 0; the others follow."""
    codes: int
    stops: tuple[int, ...]
    """The ids that end speech, the one that does in training first."""

    @property
    def spoken(self) -> tuple[int, ...]:
        """All ids that may come after a prompt, (codes + stops,), in the order of local ids."""
        return (*range(self.first_code, self.first_code + self.codes), *self.stops)


@dataclass(frozen=True)
class OfficialPrompt:
    """What a model continues to speak one passage."""

    text: str
    ids: tuple[int, ...] = field(repr=False)
    """Voice and passage, (n,)."""
    minimum: int
    """Number of speech tokens before which speech cannot end."""
    maximum: int
    """Number of speech tokens after which decoding ends anyway."""
    positions: tuple[int, ...] | None = field(default=None, repr=False)
    """(n,), of the ids, where they are not counted from 0 through; later tokens continue from the last."""
