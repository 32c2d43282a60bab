"""Base of all flow models: text and a voice to audio, with measuring, skipping and inspection.

``Knob.trajectory`` marks the options that shape the trajectory, for which artefacts must have been made. All families
have the options ``steps``, ``spacing``, ``sway`` and ``cross_fade``; without an option ``solver``, the solver is
Euler's.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from paretone import device as devices
from paretone.audio.cross_fade import CrossFader, PassageJoiner
from paretone.errors import CheckpointError
from paretone.models.base import IntervalWeights, ModelInfo, Voice, WeightSet
from paretone.models.families.evaluations import (
    Asking,
    FlowInternals,
    FlowNetwork,
    FlowScript,
    require_layers,
)
from paretone.models.families.pacing import Pace
from paretone.models.families.passages import Decoded, FlowPrompt, FramedPassage, Spoken, Uttered, cost_of
from paretone.models.families.planned_flow import Backbones, PlannedFlow
from paretone.models.families.speech import Speech
from paretone.models.families.together import Ask
from paretone.models.files.trained_weights import (
    find_interval_weights,
    find_weight_sets,
    interval_backbone,
    interval_folders,
    weight_set_folders,
)
from paretone.models.kernels import products
from paretone.models.kernels.compiled import notes_of
from paretone.models.networks.diffusion import DiffusionTransformer
from paretone.observer import SILENT, Observer, StepReport
from paretone.sampling.flow import Evaluated, Evaluator, Whole
from paretone.setting.knobs import Values
from paretone.setting.plan import FlowPlan
from paretone.setting.take import Measurements, Trace

_ANY_TEXT = "Yes."
"""Placeholder: preparing a voice needs a text."""


@dataclass(frozen=True)
class _Spoken(Spoken):
    shares: tuple[float, ...]
    """Computed share of each evaluation."""


class FlowSpeech(PlannedFlow, Speech[FlowScript, _Spoken]):
    """A loaded model of the flow family. See :class:`paretone.models.base.SpeechModel`."""

    _script = FlowScript
    silent = "said nothing"

    def __init__(
        self,
        info: ModelInfo,
        backbone: Evaluated,
        device: torch.device,
        frame_seconds: float,
        read_weights: Callable[[WeightSet], Evaluated] | None = None,
    ) -> None:
        """``frame_seconds`` is the audible duration of one frame of the state; ``read_weights`` loads the backbone with
        one of ``info.weight_sets``, ready for inference on ``device``."""
        Speech.__init__(self, info)
        self._backbone = backbone

        def read(weights: WeightSet | IntervalWeights) -> Evaluated:
            if isinstance(weights, IntervalWeights):
                return interval_backbone(require_layers(backbone, "The model"), weights)
            if read_weights is None:
                raise CheckpointError("The model takes no other weights.")
            return read_weights(weights)

        self._backbones = Backbones(backbone, read, self._warm_up)
        self._device = device
        self._frame_seconds = frame_seconds

    @abstractmethod
    def _decode(self, state: Tensor, passage: Any, prompt: Any) -> Decoded:
        """Last state (1, frames, bands) to the audio of the new speech."""

    def _fader(self, options: Values) -> CrossFader:
        return CrossFader.of_seconds(options["cross_fade"], self.info.sample_rate)

    def _seconds(self, passage: FramedPassage, prompt: FlowPrompt) -> float:
        return (passage.frames - prompt.frames) * self._frame_seconds

    def _script_of(self, text: str, voice: Voice, plan: FlowPlan, observer: Observer) -> FlowScript:
        return self.script(text, voice, plan, observer)

    # --- Backbones ---------------------------------------------------------------------------------------------------
    def warm_up(self) -> None:
        self._warm_up(self._backbone)

    def look_for_weights(self, check: Callable[[], None] = lambda: None) -> ModelInfo:
        """Find new weights, such as trained ones; ``check`` may raise to cancel."""
        place, base = (self.info.id, Path(self.info.checkpoint)), self.info.fingerprint
        self.info = replace(
            self.info,
            weight_sets=find_weight_sets(weight_set_folders(*place), base, check),
            interval_weights=find_interval_weights(interval_folders(*place), base, check),
        )
        return self.info

    def make_ready(self, plan: FlowPlan, observer: Observer = SILENT, voice: Voice | None = None) -> None:
        if voice is not None and not voice.phones:
            self._prepare(_ANY_TEXT, voice, plan.options, observer.check, plan.seed)
        self.ready(plan, voice, observer)

    # --- Speaking ----------------------------------------------------------------------------------------------------
    def _joiner(self, script: FlowScript) -> PassageJoiner:
        return PassageJoiner(self._fader(script.options), len(script.passages))

    def shared(self, script: FlowScript, ask: Ask) -> FlowScript:
        backbone, make = script.backbone, script.network.evaluator
        plain = script.plan.launching.mode is None and isinstance(backbone, DiffusionTransformer)

        def evaluator() -> Evaluator:
            made = make()
            return Asking(backbone, ask) if plain and type(made) is Whole else made

        return replace(script, network=FlowNetwork(backbone, evaluator))

    def _account(
        self, script: FlowScript, spoken: Sequence[_Spoken], pace: Pace
    ) -> tuple[Measurements, tuple[str, ...]]:
        measured = replace(cost_of(spoken, pace), evaluations=sum(len(one.shares) for one in spoken))
        backbone = script.backbone
        return measured, (*notes_of(backbone), *products.notes_of(backbone), *self._graphs.notes())

    @torch.inference_mode()
    def _speak_passage(
        self, script: FlowScript, number: int, before: Sequence[_Spoken], pace: Pace, observer: Observer
    ) -> Generator[Uttered, None, _Spoken]:
        passage = script.passages[number]
        step_seconds: list[float] = []
        seconds = self._seconds(passage, script.prompt)
        began = time.perf_counter()

        def on_step(step: int, state: Tensor) -> None:
            observer.check()
            step_seconds.append(time.perf_counter() - began - sum(step_seconds))
            observer.step(
                StepReport(number, len(script.passages), step, script.steps, step_seconds[-1], audio_seconds=seconds)
            )

        state, evaluations = self.sampled(script, passage, on_step)
        devices.synchronise(self._device)
        sampled = time.perf_counter()
        decoded = self._decode(state, passage, script.prompt)
        heard = time.perf_counter()
        yield Uttered(decoded.samples)
        return _Spoken(
            tuple(step_seconds),
            decoded.mel,
            len(decoded.samples),
            sampled - began,
            heard - sampled,
            sum(evaluations.operations),
            self._reference_operations(script.plan, passage.frames),
            evaluations.saved,
            tuple(evaluations.shares),
        )

    def _traced(self, trace: Trace, spoken: Sequence[_Spoken], starts: tuple[float, ...]) -> Trace:
        return replace(trace, computed=tuple(one.shares for one in spoken))

    def readings(
        self, script: FlowScript, check: Callable[[], None] = lambda: None
    ) -> Iterator[tuple[Any, Any, Tensor]]:
        """Sample every passage without decoding: yield the family's own prompt and passage, and the last state (1,
        frames, bands), which begins with the prompt's frames. Raises :class:`PlainError`."""
        for passage in script.passages:
            yield script.prompt, passage, self._drawn(script, passage, check)

    @torch.inference_mode()
    def internals(self, script: FlowScript, check: Callable[[], None] = lambda: None) -> FlowInternals:
        """The first passage, for profiling by component. Raises :class:`PlainError`."""
        passage, options = script.passages[0], script.options
        times = self._evaluation_times(script.times, options)
        run, sampler = self._started(script, passage)
        evaluations = self._evaluations(script, passage, run)

        def integrate() -> Tensor:
            # Evaluators keep state between evaluations, so each sampling needs a new one.
            following = self._evaluations(script, passage, run)
            state = self._integrate(following, sampler, script.times, options, lambda step, state: check())
            evaluations.operations[:], evaluations.shares[:] = following.operations, following.shares
            return state

        return FlowInternals(
            script.backbone,
            script.plan,
            tuple(self._phases(script, passage, run)),
            evaluations,
            sampler,
            times,
            passage.frames,
            len(script.passages),
            self._seconds(passage, script.prompt),
            lambda: self._begin(script.backbone, passage, script.prompt, times, options),
            self._guided,
            integrate,
            lambda state: self._decode(state, passage, script.prompt),
        )
