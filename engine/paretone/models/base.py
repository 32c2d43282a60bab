"""Interface of model adapters, for all families. Torch-free, so that front ends can import it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from paretone.errors import SettingError
from paretone.observer import SILENT, Check, Observer
from paretone.sampling.guidance import STRENGTH, Guidance
from paretone.sampling.operations import OperationCounts
from paretone.setting.knobs import Knob, Values
from paretone.setting.take import Timed, Trace

if TYPE_CHECKING:
    from paretone.sampling.calibration_target import CalibrationTarget


FLOW, LANGUAGE, MASKED = "flow", "language", "masked"
"""Families of models: noise to speech in steps, token by token, and a canvas of masked tokens filled in stepwise."""
MEL_FLOW = "mel-flow"
"""Of language models with a flow from tokens to mel frames."""


@dataclass(frozen=True)
class WeightSet:
    """Weights fine-tuned so that one branch speaks as under classifier-free guidance."""

    path: str
    fingerprint: str
    """SHA-256 of the file, hexadecimal."""
    weight: float
    """Guidance weight w of the training."""
    method: str
    """``model-guidance`` or ``distillation``."""
    steps: int = 0
    """Steps of the training; 0 if unknown."""
    stage: bool = False
    """Whether the training went on after these weights were kept."""

    @property
    def equivalent_guidance(self) -> float:
        """The guidance strength that these weights replace, g = w / (1 − w), as the official code counts it."""
        return self.weight / (1 - self.weight)

    @property
    def guidance(self) -> Values:
        return Values(guidance=self.equivalent_guidance)


@dataclass(frozen=True)
class DraftWeights:
    """Weights of a speculative draft; the other layers are its target's."""

    path: str
    fingerprint: str
    retained: tuple[int, ...]
    """Layers that it runs, by their numbers in the target."""
    trained: tuple[int, ...]
    head: bool


@dataclass(frozen=True)
class FeatureDraftWeights:
    """Weights of a draft that reads its target's hidden states; see :mod:`paretone.models.networks.feature_draft`."""

    path: str
    fingerprint: str
    reads: tuple[int, ...]
    """Inner layers of the target whose outputs it reads."""


@dataclass(frozen=True)
class StudentWeights:
    """A language model with fewer layers, distilled from the complete one."""

    path: str
    fingerprint: str
    retained: tuple[int, ...]
    """Retained layers, by their numbers in the complete model."""
    stage: str
    """``recovered``, or ``minutes:5`` after five minutes of distillation."""
    minutes: float
    """Training time so far."""
    targets: str = "following"
    """Layers of the whole model that its layers learned from: those before the next retained one, or ``original``."""

    @property
    def depth(self) -> int:
        return len(self.retained)

    @property
    def recovered(self) -> bool:
        return self.stage == RECOVERED


@dataclass(frozen=True)
class IntervalWeights:
    """Weights of a flow, fine-tuned so that one evaluation carries the state over an interval of time, guidance
    included. For flow models, and for the flow after a language model."""

    path: str
    fingerprint: str
    evaluations: int
    """Most evaluations from noise to speech in their training."""
    sway: float
    guidance: Values
    """Guidance options included in the weights."""
    method: str
    temperature: float = 1.0
    """Scale of the initial noise that they need."""


TrainedWeights = WeightSet | DraftWeights | FeatureDraftWeights | StudentWeights | IntervalWeights
RECOVERED = "recovered"


@dataclass(frozen=True)
class MelFlow:
    """The flow of a language model, from speech tokens to mel frames, on which techniques for flows act."""

    options: tuple[Knob, ...]
    """Options of its sampling, as of a flow model; a model's own option ``flow_<name>`` sets one."""
    transformer: bool = False
    """Whether it is a diffusion transformer, whose layers can be skipped."""
    layers: int = 0
    """Of a loaded model, as are the next two."""
    parameters: int = 0
    fingerprint: str = ""

    def values(self, options: Values) -> Values:
        """Its options under a model's ``options``."""
        return Values({one.name: options.get(f"flow_{one.name}", one.default) for one in self.options})


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
    weight_sets: tuple[WeightSet, ...] = ()
    interval_weights: tuple[IntervalWeights, ...] = ()
    trained_guidance: float | None = None
    """Guidance weight w that its weights include by training: it runs one branch and takes no further guidance."""
    drafts: tuple[DraftWeights, ...] = ()
    feature_drafts: tuple[FeatureDraftWeights, ...] = ()
    students: tuple[StudentWeights, ...] = ()
    foreign: tuple[str, ...] = ()
    """Neighbouring files that were made from another checkpoint and cannot be used."""
    layer_order: tuple[int, ...] = ()
    """Layers from most to least important, if measured."""
    token_rate: float | None = None
    """Speech tokens per second; ``None`` unless a language model."""
    lacking: tuple[tuple[str, str], ...] = ()
    """Features that its device lacks (:func:`paretone.device.lacking`) or slots its network lacks, with sentences."""
    guidance: Guidance = STRENGTH
    codes_per_token: int = 1
    mel_flow: MelFlow | None = None
    device_type: str = ""
    """``cpu``, ``cuda`` or ``mps``; ``""`` before loading."""
    vocoder: str = ""
    """SHA-256 of the vocoder's weights if it is not the default one."""

    @property
    def of_flow(self) -> ModelInfo:
        """The model as flow techniques see it: a flow model itself, or the flow after a language model. Raises
        :class:`SettingError` for models without a flow."""
        flow = self.mel_flow
        if self.family == FLOW:
            return self
        if flow is None:
            raise SettingError(f"{self.title} has no flow from noise to speech; load another model.")
        return replace(
            self,
            family=FLOW,
            title=f"{self.title}'s flow",
            fingerprint=flow.fingerprint,
            layers=flow.layers,
            parameters=flow.parameters,
            branches=2,
            knobs=flow.options,
            mel_flow=None,
        )

    @property
    def all_weights(self) -> str:
        """Identity of all weights that make a take: :attr:`fingerprint`, or the SHA-256 of it and another vocoder's."""
        if not self.vocoder:
            return self.fingerprint
        return hashlib.sha256(f"{self.fingerprint}{self.vocoder}".encode()).hexdigest()


@dataclass(frozen=True)
class Voice:
    """A reference recording and its transcript; of a model's own voices, only ``id`` and ``title``. ``phones`` are
    ``(phone, start, end)`` in seconds where known."""

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
    """Audio ready to play: float32 samples at the model's rate, continuing the last piece."""

    samples: np.ndarray = field(repr=False)
    passage: int = 0
    trace: Trace | None = None
    """Trace of that passage so far; ``None`` for models without tokens."""


@dataclass(frozen=True)
class Synthesis(Timed):
    samples: np.ndarray = field(repr=False)
    sample_rate: int = 24000
    trace: Trace = field(default_factory=Trace)
    notes: tuple[str, ...] = ()
    """Notes for the user, such as dropped characters."""
    unfinished: str = ""
    """Why passages are missing, such as ``cancelled after 12 of 126 passages``; ``""`` if complete."""


def finished_part(error: BaseException) -> Synthesis | None:
    """Passages finished before ``error`` ended a synthesis, including :class:`Cancelled` and
    :class:`KeyboardInterrupt`; ``None`` without any."""
    return getattr(error, FINISHED, None)


FINISHED = "finished_part"


@dataclass(frozen=True)
class AttentionCapture:
    """Attention of one layer at one step, averaged over heads."""

    layer: int
    step: int
    frames: int
    """Number before pooling, including ``prompt_frames`` at the start."""
    prompt_frames: int
    maps: np.ndarray = field(repr=False)
    """(branches, queries, keys) float32, rows sum to one; queries and keys may be pooled."""
    similarities: tuple[float, ...] = ()
    """Diagonal similarity of each branch."""
    frame_seconds: float = 256 / 24000


@dataclass(frozen=True)
class Script:
    """A text prepared for speaking in a voice under a plan. Prepared parts have the model's own types: Any."""

    voice: Voice
    plan: Any
    """The setting as the model runs it; see :class:`paretone.setting.plan.Plan`."""
    network: Any = field(repr=False)
    """The network under the plan, warmed up."""
    prompt: Any = field(repr=False)
    passages: tuple[Any, ...] = field(repr=False)
    """Pieces of the text, each with an attribute ``text``."""
    notes: tuple[str, ...]
    seconds: float
    """Wall seconds of the preparation; :meth:`SpeechModel.speak` includes them."""
    cpu_seconds: tuple[float, float | None] = (0.0, None)
    """CPU seconds of this process and of all others during the preparation."""

    @property
    def options(self) -> Values:
        return self.plan.options

    @property
    def paced(self) -> bool:
        """Whether it takes only as many steps as playback leaves time for; texts spoken at once leave less."""
        return False

    @property
    def seed(self) -> int:
        return self.plan.seed


class SpeechModel(Protocol):
    """A loaded model, for one thread at a time. Its plans are made from settings by :mod:`paretone.speaking`."""

    info: ModelInfo

    def look_for_weights(self, check: Check) -> ModelInfo:
        """Find weights made since loading (fine-tuned ones, drafts, students); return the new ``info``."""

    def make_ready(self, plan: Any, observer: Observer = SILENT, voice: Voice | None = None) -> None:
        """Read, warm up and measure everything that ``plan`` needs beyond the model itself, such as other weights; part
        of it depends on the ``voice``. :meth:`script` does the same, but counts the time as synthesis."""

    def script(self, text: str, voice: Voice, plan: Any, observer: Observer = SILENT) -> Any:
        """``text`` ready to speak, count and inspect: the family's :class:`Script`. Raises :class:`PlainError`."""

    def speak(
        self, script: Any, observer: Observer = SILENT, play: Callable[[Piece], None] = lambda piece: None
    ) -> Synthesis:
        """Speak to the end; ``play`` gets pieces as they become ready, and its exceptions end the synthesis. Raises
        :class:`PlainError` and :class:`Cancelled`, which carry the :func:`finished_part`."""

    def stream(self, script: Any, observer: Observer = SILENT) -> Generator[Piece, None, Synthesis]:
        """Speak piece by piece: yield pieces as they become ready, return the whole."""


class FlowModel(SpeechModel, Protocol):
    """A loaded flow model, with its further abilities. See :func:`flow_model`."""

    def replanned(self, script: Any, plan: Any, observer: Observer = SILENT) -> Any:
        """``script`` under another ``plan`` that differs only in step times, without reading anything again.
        ``observer`` may raise to cancel if the plan measures."""

    def operations(self, script: Any) -> OperationCounts:
        """Operations of one backbone evaluation of the first passage, computed without running it."""

    def last_state(self, script: Any, check: Check = lambda: None) -> np.ndarray:
        """Final sampler state of the first passage's new speech, (frames, bands) float32, before decoding. ``check`` is
        called after every step and may raise to cancel. Raises :class:`PlainError`."""

    def calibration_target(self, script: Any) -> CalibrationTarget:
        """The backbone ready for the first passage, for calibration. Raises :class:`SettingError` if it cannot skip."""

    def capture_attention(self, script: Any, layer: int, step: int, observer: Observer = SILENT) -> AttentionCapture:
        """Run up to ``step`` and record the attention of ``layer``."""


def flow_model(model: SpeechModel, purpose: str) -> FlowModel:
    """``model`` as a flow model, for a ``purpose`` (``Calibrating``). Raises :class:`SettingError` without a flow."""
    if model.info.family != FLOW and model.info.mel_flow is None:
        ways = {LANGUAGE: "decodes token by token", MASKED: "fills in masked tokens"}
        raise SettingError(
            f"{purpose} is for models that go from noise to speech in steps, and {model.info.title} "
            f"{ways[model.info.family]}; load another model."
        )
    return cast("FlowModel", model)


@dataclass(frozen=True)
class OfficialIds:
    size: int
    """Number of ids: rows of the embedding table."""
    first_code: int
    """Id of speech token 0; the others follow it."""
    codes: int
    stops: tuple[int, ...]
    """Ids that end speech; the one used in training is first."""

    @property
    def spoken(self) -> tuple[int, ...]:
        """All ids allowed after a prompt, (codes + stops,), in the order of local ids."""
        return (*range(self.first_code, self.first_code + self.codes), *self.stops)


@dataclass(frozen=True)
class OfficialPrompt:
    """Prompt of one passage in the ids of an official vocabulary."""

    text: str
    ids: tuple[int, ...] = field(repr=False)
    """Voice and passage, (n,)."""
    minimum: int
    """Speech tokens before which speech cannot end."""
    maximum: int
    """Speech tokens after which decoding ends."""
    positions: tuple[int, ...] | None = field(default=None, repr=False)
    """Positions (n,) of the ids, unless counted from 0; later tokens continue from the last."""
