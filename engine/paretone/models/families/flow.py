"""Base of all flow models: text and a voice to audio, with measuring, skipping and inspection; and what they share with
the flows of language models.

``Knob.trajectory`` marks the options that shape the trajectory, for which artefacts must have been made. All families
have the options ``steps``, ``spacing``, ``sway`` and ``cross_fade``; without an option ``solver``, the solver is
Euler's.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from paretone import device as devices
from paretone.audio.cross_fade import CrossFader, PassageJoiner
from paretone.errors import CheckpointError, SettingError
from paretone.last_used import LastUsed
from paretone.models.base import AttentionCapture, IntervalWeights, ModelInfo, Voice, WeightSet
from paretone.models.families import parts
from paretone.models.families.evaluations import (
    NO_LAYERS,
    Asking,
    Evaluations,
    FlowInternals,
    FlowNetwork,
    FlowScript,
    Phase,
    Stage,
    attention_of,
    grid_of,
    phase_at,
    require_layers,
)
from paretone.models.families.pacing import Pace
from paretone.models.families.passages import Decoded, FlowPrompt, FramedPassage, Sampler, Spoken, Uttered, cost_of
from paretone.models.families.speech import Account, Speech
from paretone.models.families.together import Ask
from paretone.models.files.trained_weights import interval_backbone, with_flow_weights
from paretone.models.kernels import products
from paretone.models.kernels.compiled import COMPILING, compiled_backbone, notes_of, warmed
from paretone.models.kernels.graphs import GraphCache, GraphedEvaluator
from paretone.models.kernels.precision import in_precision
from paretone.models.networks.diffusion import DiffusionTransformer
from paretone.observer import SILENT, Check, Observer, Status, StepReport
from paretone.sampling.branch_guidance import BranchGuidance
from paretone.sampling.calibration_target import CalibrationTarget
from paretone.sampling.flow import Evaluated, Evaluator, Run, Velocity, Whole, integrate
from paretone.sampling.guidance import branches_of, effects, most_branches
from paretone.sampling.operations import OperationCounts
from paretone.sampling.schedules import evaluation_times
from paretone.setting.knobs import Values
from paretone.setting.plan import FlowPlan
from paretone.setting.take import Trace


class Backbones:
    """Provides the warmed-up backbone for a synthesis."""

    def __init__(
        self,
        own: Evaluated,
        read_weights: Callable[[WeightSet | IntervalWeights], Evaluated],
        warm_up: Callable[[Evaluated], None],
    ) -> None:
        """``read_weights`` loads the backbone with other weights, in float32, ready for inference."""
        self.own = own
        self._read_weights = read_weights
        self._warm_up = warm_up
        self._others: LastUsed[Evaluated] = LastUsed(3)
        """By fingerprint of the weights, precision and compile mode."""

    def of(self, plan: FlowPlan, status: Status = lambda text: None) -> Any:
        """The backbone, a module of the model's own type, with the weights and precision of a plan."""
        weights, precision, mode = plan.weights, plan.precision, plan.launching.mode
        if weights is None and precision == "float32" and mode is None:
            return self.own

        def make() -> Evaluated:
            status("Preparing other weights …" if mode is None else COMPILING)
            in_full: Any = self.own if weights is None else self._read_weights(weights)
            narrowed = in_precision(in_full, precision)
            made = narrowed if mode is None else compiled_backbone(narrowed, mode)
            self._warm_up(made)
            warmed(made)
            return made

        return self._others.of((weights and weights.fingerprint, precision, mode), make)


class PlannedFlow(ABC):
    info: ModelInfo
    backbone: Any
    _backbones: Backbones
    _device: torch.device
    _frame_seconds: float
    graphs: GraphCache
    memory: dict[str, Any]

    # --- To be implemented by a family -------------------------------------------------------------------------------
    # The backbone has the model's own type (:class:`Evaluated`): Any.
    @abstractmethod
    def begin(
        self,
        backbone: Any,
        passage: Any,
        prompt: Any,
        times: np.ndarray,
        options: Values,
        branches: Sequence[int] | None = None,
    ) -> Run:
        """State shared by the evaluations of a passage, at ``times`` in order; ``branches`` from
        :data:`paretone.sampling.guidance.BRANCHES` replace those that the options need."""

    @abstractmethod
    def sampler(self, passage: Any, times: np.ndarray, seed: int, options: Values) -> Sampler:
        """The noise of a passage, and the step, on the grid ``times`` (steps + 1,)."""

    @abstractmethod
    def guided(self, velocities: Tensor, options: Values) -> Tensor:
        """Combine the velocities of the branches that ran, branch-major, into the velocity to follow."""

    @abstractmethod
    def _script_of(self, text: str, voice: Voice, plan: FlowPlan, observer: Observer) -> FlowScript:
        """``text`` ready to be sampled. Raises :class:`PlainError`."""

    @abstractmethod
    def evaluation_cost(self, passage: Any, options: Values, branches: int | None = None) -> OperationCounts:
        """Operations of one evaluation of a passage; ``branches`` replaces the number that the options need."""

    def ready(self, plan: FlowPlan, voice: Voice | None, observer: Observer) -> None:
        """Read the weights of ``plan``, and measure what its evaluator needs of ``voice``."""
        self._backbones.of(plan, observer.status)
        if voice is not None:
            self._evaluator(voice, plan, observer)

    # --- Networks ----------------------------------------------------------------------------------------------------
    def _network(self, plan: FlowPlan, voice: Voice, observer: Observer) -> FlowNetwork:
        return FlowNetwork(self._backbones.of(plan), self._evaluator(voice, plan, observer))

    def replanned(self, script: Any, plan: Any, observer: Observer = SILENT) -> Any:
        return replace(script, plan=plan, network=self._network(plan, script.voice, observer))

    def _evaluator(self, voice: Voice, plan: FlowPlan, observer: Observer) -> Callable[[], Evaluator]:
        """Factory of each passage's evaluator: the plan's own part, CUDA graphs, or plain computation."""
        backbone, graphs = self._backbones.of(plan), plan.launching.graphs
        if plan.evaluator is not None:
            whole = replace(plan, evaluator=None)

            def sample(text: str, evaluator: Evaluator) -> Tensor:
                script = self._script_of(text, voice, whole, observer)
                return self._drawn(script, script.passages[0], observer.check, evaluator)

            stage = Stage(plan, backbone, self.info.title, voice, self.memory, sample, observer.status)
            return parts.evaluators(plan.evaluator, stage)
        if graphs is None:
            return lambda: Whole(backbone)
        self.graphs.bound(graphs)
        return lambda: GraphedEvaluator(backbone, self.graphs, graphs.bucket)

    def _started(self, script: FlowScript, passage: FramedPassage) -> tuple[Run, Sampler]:
        evaluations = self._evaluation_times(script.times, script.options)
        run = self.begin(script.backbone, passage, script.prompt, evaluations, script.options)
        sampler = self.sampler(passage, script.times, script.seed, script.options)
        if script.plan.temperature != 1:
            sampler = replace(sampler, noise=script.plan.temperature * sampler.noise)
        stepper = script.plan.stepper
        if stepper is None:
            return run, sampler
        if len(evaluations) != script.steps:
            raise SettingError("This step takes one evaluation; choose a solver that takes one as well, such as Euler.")
        return run, replace(sampler, follow=parts.stepper(stepper, script.times, sampler.follow))

    def _evaluations(
        self, script: FlowScript, passage: FramedPassage, run: Run, evaluator: Evaluator | None = None
    ) -> Evaluations:
        plan, options, phases = script.plan, script.options, self._phases(script, passage, run)
        evaluator = evaluator or script.network.evaluator()
        combining = None if plan.combining is None else partial(parts.combining, plan.combining)

        def at(evaluation: int) -> tuple[Run, OperationCounts]:
            phase = phase_at(phases, evaluation)
            return phase.run, phase.counts

        def combined(velocities: Tensor, evaluation: int) -> Tensor:
            return self.guided(velocities, phase_at(phases, evaluation).options)

        if not plan.guidance.decides:
            return Evaluations(evaluator, at, combined, phases[0].counts.evaluation, combining)
        times, own = self._evaluation_times(script.times, options), self.info.guidance.strengths(options)
        strengths = plan.guidance.strengths or own
        deciding = BranchGuidance(times.tolist(), strengths, plan.guidance.saturation)
        # With the model's strengths, its own branches are combined as usual.
        usual = branches_of(effects(own, 0.0)) if strengths == own else None
        runs: dict[tuple[int, ...], Run] = {} if usual is None else {usual: run}

        def needed(evaluation: int) -> tuple[Run, OperationCounts]:
            branches = deciding.needed(evaluation)
            if branches not in runs:
                runs[branches] = self.begin(script.backbone, passage, script.prompt, times, options, branches)
            return runs[branches], self.evaluation_cost(passage, options, len(branches))

        def decided(velocities: Tensor, evaluation: int) -> Tensor:
            plain = partial(combined, evaluation=evaluation) if deciding.needed(evaluation) == usual else None
            return deciding.velocity(velocities, evaluation, plain)

        full = self.evaluation_cost(passage, options, most_branches(strengths)).evaluation
        return Evaluations(evaluator, needed, decided, full, combining)

    def _phases(self, script: FlowScript, passage: FramedPassage, run: Run) -> list[Phase]:
        options, guidance = script.options, script.plan.guidance
        phases = [Phase(0, run, options, self.evaluation_cost(passage, options))]
        if guidance.steps is not None and guidance.shortened(options["steps"]):
            guided = guidance.steps + script.plan.halves_first
            first = len(self._evaluation_times(script.times[: guided + 1], options))
            times, alone = self._evaluation_times(script.times, options), self.info.guidance.off(options)
            alone_run = self.begin(script.backbone, passage, script.prompt, times, alone)
            phases.append(Phase(first, alone_run, alone, self.evaluation_cost(passage, alone)))
        return phases

    @staticmethod
    def _evaluation_times(times: np.ndarray, options: Values) -> np.ndarray:
        return evaluation_times(times, options.get("solver", "euler"))

    @staticmethod
    def _integrate(
        velocity: Velocity, sampler: Sampler, times: np.ndarray, options: Values, on_step: Callable[[int, Tensor], None]
    ) -> Tensor:
        return integrate(velocity, sampler.noise, times, options.get("solver", "euler"), on_step, sampler.follow)

    def reference_operations(self, plan: FlowPlan, passage: Any) -> float:
        """Backbone operations of a passage under the same setting without techniques."""
        options = plan.reference
        return (
            len(self._evaluation_times(grid_of(options), options)) * self.evaluation_cost(passage, options).evaluation
        )

    # --- For benches and techniques -----------------------------------------------------------------------------------
    def sampling(self, script: FlowScript) -> Callable[[], Tensor]:
        """Sampling of the first passage, (1, frames, bands), for timing. Raises :class:`PlainError`."""
        return lambda: self._drawn(script, script.passages[0], lambda: None)

    @torch.inference_mode()
    def last_state(self, script: FlowScript, check: Check = lambda: None) -> np.ndarray:
        return self._drawn(script, script.passages[0], check)[0, script.prompt.frames :].float().cpu().numpy()

    def _drawn(
        self, script: FlowScript, passage: FramedPassage, check: Check, evaluator: Evaluator | None = None
    ) -> Tensor:
        return self.sampled(script, passage, lambda step, state: check(), evaluator)[0]

    @torch.inference_mode()
    def sampled(
        self,
        script: FlowScript,
        passage: FramedPassage,
        on_step: Callable[[int, Tensor], None],
        evaluator: Evaluator | None = None,
    ) -> tuple[Tensor, Evaluations]:
        """The last state (1, frames, bands) of a passage, and its evaluations."""
        run, sampler = self._started(script, passage)
        evaluations = self._evaluations(script, passage, run, evaluator)
        return self._integrate(evaluations, sampler, script.times, script.options, on_step), evaluations

    def operations(self, script: FlowScript) -> OperationCounts:
        return self.evaluation_cost(script.passages[0], script.options)

    @torch.inference_mode()
    def calibration_target(self, script: FlowScript) -> CalibrationTarget:
        passage, options = script.passages[0], script.options
        run, sampler = self._started(script, passage)
        backbone = require_layers(script.backbone, self.info.title)
        return CalibrationTarget(
            backbone,
            run,
            sampler.noise,
            script.times,
            lambda left: self.guided(backbone.project(left), options),
            sampler.follow,
            run.branches,
            script.plan.compatibility,
            script.prompt.frames,
        )

    @torch.inference_mode()
    def capture_attention(
        self, script: FlowScript, layer: int, step: int, observer: Observer = SILENT
    ) -> AttentionCapture:
        backbone, passage = require_layers(script.backbone, self.info.title), script.passages[0]
        if not (0 <= layer < backbone.layers and 0 <= step < script.steps):
            raise SettingError(
                f"There is no layer {layer + 1} at step {step + 1}: the model has {backbone.layers} layers, "
                f"the grid {script.steps} steps."
            )
        run, sampler = self._started(script, passage)

        def on_step(number: int, state: Tensor) -> None:
            observer.check()
            observer.step(StepReport(0, 1, number, step + 1, 0.0))

        evaluations = self._evaluations(script, passage, run)
        state = self._integrate(evaluations, sampler, script.times[: step + 1], script.options, on_step)
        evaluation = len(self._evaluation_times(script.times[: step + 1], script.options))
        seen = phase_at(self._phases(script, passage, run), evaluation).run
        maps, similar = attention_of(backbone, layer, state, evaluation, seen)
        return AttentionCapture(layer, step, passage.frames, script.prompt.frames, maps, similar, self._frame_seconds)

    @torch.inference_mode()
    def taken_apart(
        self, script: FlowScript, decode: Callable[[Tensor], Decoded], seconds: float, check: Check = lambda: None
    ) -> FlowInternals:
        """The first passage, of ``seconds`` of audio, for profiling; ``decode`` makes audio of its last state."""
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
            backbone=script.backbone,
            plan=script.plan,
            phases=tuple(self._phases(script, passage, run)),
            evaluations=evaluations,
            sampler=sampler,
            times=times,
            frames=passage.frames,
            passages=len(script.passages),
            audio_seconds=seconds,
            begin=lambda: self.begin(script.backbone, passage, script.prompt, times, options),
            guided=self.guided,
            integrate=integrate,
            decode=decode,
        )


@dataclass(frozen=True)
class _Spoken(Spoken):
    shares: tuple[float, ...]


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
        # Networks that run layer by layer, E2-TTS's too, have a method for what follows their last layer.
        if not hasattr(type(backbone), "leave"):
            info = replace(info, lacking=(("skipping", NO_LAYERS.format(info.title)),))
        Speech.__init__(self, info)
        self.backbone = backbone

        def read(weights: WeightSet | IntervalWeights) -> Evaluated:
            if isinstance(weights, IntervalWeights):
                return interval_backbone(require_layers(backbone, "The model"), weights)
            if read_weights is None:
                raise CheckpointError("The model takes no other weights.")
            return read_weights(weights)

        self._backbones = Backbones(backbone, read, self.first_run)
        self._device = device
        self._frame_seconds = frame_seconds

    @abstractmethod
    def decode(self, state: Tensor, passage: Any, prompt: Any) -> Decoded:
        """Last state (1, frames, bands) to the audio of the new speech."""

    def _fader(self, options: Values) -> CrossFader:
        return CrossFader(int(options["cross_fade"] * self.info.sample_rate))

    def _seconds(self, passage: FramedPassage, prompt: FlowPrompt) -> float:
        return (passage.frames - prompt.frames) * self._frame_seconds

    def _script_of(self, text: str, voice: Voice, plan: FlowPlan, observer: Observer) -> FlowScript:
        return self.script(text, voice, plan, observer)

    # --- Backbones ---------------------------------------------------------------------------------------------------
    def warm_up(self) -> None:
        self.first_run(self.backbone)

    def look_for_weights(self, check: Check = lambda: None) -> ModelInfo:
        """Find new weights, such as trained ones; ``check`` may raise to cancel."""
        self.info = with_flow_weights(self.info, Path(self.info.checkpoint), self.info.fingerprint, check)
        return self.info

    def make_ready(self, plan: FlowPlan, observer: Observer = SILENT, voice: Voice | None = None) -> None:
        if voice is not None and not voice.phones:
            self.prepare("Yes.", voice, plan.options, observer.check, plan.seed)  # Any text will do.
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

    def _account(self, script: FlowScript, spoken: Sequence[_Spoken], pace: Pace) -> Account:
        measured = replace(cost_of(spoken, pace), evaluations=sum(len(one.shares) for one in spoken))
        backbone = script.backbone
        return measured, (*notes_of(backbone), *products.notes_of(backbone), *self.graphs.notes())

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
        decoded = self.decode(state, passage, script.prompt)
        heard = time.perf_counter()
        yield Uttered(decoded.samples)
        return _Spoken(
            step_seconds=tuple(step_seconds),
            mel=decoded.mel,
            samples=len(decoded.samples),
            backbone_seconds=sampled - began,
            decoder_seconds=heard - sampled,
            operations=sum(evaluations.operations),
            reference_operations=self.reference_operations(script.plan, passage),
            saved=evaluations.saved,
            shares=tuple(evaluations.shares),
        )

    def _traced(self, trace: Trace, spoken: Sequence[_Spoken], starts: tuple[float, ...]) -> Trace:
        return replace(trace, computed=tuple(one.shares for one in spoken))

    def readings(self, script: FlowScript, check: Check = lambda: None) -> Iterator[tuple[Any, Any, Tensor]]:
        """Sample every passage without decoding: yield the family's own prompt and passage, and the last state (1,
        frames, bands), which begins with the prompt's frames. Raises :class:`PlainError`."""
        for passage in script.passages:
            yield script.prompt, passage, self._drawn(script, passage, check)

    def internals(self, script: FlowScript, check: Check = lambda: None) -> FlowInternals:
        """The first passage, for profiling by component. Raises :class:`PlainError`."""
        passage, prompt = script.passages[0], script.prompt

        def decode(state: Tensor) -> Decoded:
            return self.decode(state, passage, prompt)

        return self.taken_apart(script, decode, self._seconds(passage, prompt), check)
