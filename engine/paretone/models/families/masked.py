"""Base of all masked models: text and a voice to a canvas of codes, filled in step by step, to audio.

All masked models have the options :data:`paretone.sampling.options.DEMASKING_OPTIONS`; with ``by_sentence``,
``_passages`` gives each sentence its own passage.

``ops_ratio`` of its takes is the network's operations over those of the same setting without techniques: all matrix and
attention products, including the head's, of all rows of all branches in each step, without the decoder. Blockwise
streaming is above 1, because it computes more steps.
"""

from __future__ import annotations

import contextlib
import math
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch

from paretone import device as devices
from paretone.audio.cross_fade import CrossFader, PassageJoiner
from paretone.errors import SettingError, enough_memory
from paretone.last_used import LastUsed
from paretone.models.base import ModelInfo, Script, Voice
from paretone.models.families import parts
from paretone.models.families.pacing import AssumedPace, Pace
from paretone.models.families.passages import FramedPassage, GridDecoder, Passages, Prompt, Spoken, Uttered, cost_of
from paretone.models.families.speech import Account, Joiner, Speech
from paretone.models.families.together import Ask
from paretone.models.kernels import precision
from paretone.models.kernels.compiled import COMPILING, compiled_masked, notes_of, warmed
from paretone.models.kernels.fused_masked import FusedMasked, MaskedRequest, MaskedRun
from paretone.models.kernels.graphs import with_graphs
from paretone.models.networks.masked_network import MaskedNetwork
from paretone.observer import SILENT, Check, Observer, Status, StepReport
from paretone.sampling.demasking import Canvas, CanvasRun, Guide, Rules, Schedule, SeededCanvasNoise, demask
from paretone.sampling.demasking_schedule import Block, block_bounds, commit_counts
from paretone.setting.knobs import Values
from paretone.setting.plan import WHOLE, GuidanceSchedule, MaskedPlan
from paretone.setting.take import DemaskedPassage, DemaskingTrace, Trace


def offered(device: torch.device) -> tuple[str, ...]:
    some = precision.offered(device)
    # On a GPU, converting between two types costs as much as the products gain.
    whole = (f"{one}{WHOLE}" for one in some if device.type == "cuda" and one in precision.DTYPES)
    return (*some, *whole)


class MaskedNetworks:
    """Provides the warmed-up network for a synthesis."""

    def __init__(self, plain: MaskedNetwork, precision: str, warm_up: Callable[[FusedMasked], None]) -> None:
        """``plain`` is on the model's device; ``precision`` is the model's default."""
        self.plain = plain
        self._precision = precision
        self.own = FusedMasked.of(plain, precision)
        self._warm_up = warm_up
        self._others: LastUsed[FusedMasked] = LastUsed(2)

    @contextlib.contextmanager
    def standing_in(self, other: FusedMasked) -> Iterator[None]:
        """Run ``other`` in place of the model's own network, so that benches can time the official implementation."""
        own, self.own = self.own, other
        try:
            yield
        finally:
            self.own = own

    def of(self, precision: str, status: Status = lambda text: None) -> FusedMasked:
        if precision == self._precision:
            return self.own

        def make() -> FusedMasked:
            status(f"Preparing {precision} …")
            made = FusedMasked.of(self.plain, precision)
            self._warm_up(made)
            return made

        return self._others.of(precision, make)


@dataclass(frozen=True)
class MaskedScript(Script):
    plan: MaskedPlan
    network: FusedMasked
    passages: tuple[FramedPassage, ...]

    @cached_property
    def noise(self) -> SeededCanvasNoise:
        return SeededCanvasNoise(self.seed, self.network.device)

    @property
    def rules(self) -> Rules:
        return rules_of(self.options)

    def bounds(self, number: int, passage: FramedPassage) -> tuple[tuple[int, int], ...]:
        """First and last frames of a passage's blocks."""
        blocks = self.plan.blocks
        if blocks is None:
            return ((0, passage.frames),)
        return block_bounds(passage.frames, blocks.size, 0 if number else blocks.first_size)

    @property
    def paced(self) -> bool:
        """Whether blocks take only as many steps as playback allows."""
        blocks = self.plan.blocks
        return blocks is not None and (blocks.adaptive or blocks.step_seconds > 0)

    def steps_of(self, number: int, place: int) -> int:
        blocks = self.plan.blocks
        if blocks is None:
            return int(self.options["steps"])
        return blocks.first_steps if number == place == 0 else blocks.later_steps

    def schedule(self, cells: int, steps: int) -> Schedule | None:
        """Codes to commit in each of at most ``steps`` steps over a block's ``cells``; ``None``: by the options."""
        part = self.plan.schedule
        return None if part is None else parts.schedule(part, cells, steps)

    def begin(self, request: MaskedRequest) -> CanvasRun:
        if self.plan.run is not None:
            return parts.masked_run(self.plan.run, self.network, request, self.rules.guidance)
        return self.network.begin(request, self.rules.guidance)


def rules_of(options: Values) -> Rules:
    return Rules(**{one.name: float(options[one.name]) for one in fields(Rules)})


def guide_of(schedule: GuidanceSchedule, step: int) -> Guide:
    """Guidance of a step, counted from 0 within its block."""
    if schedule.steps is not None and step >= schedule.steps:
        return Guide.ALONE
    if step % schedule.every == 0:
        return Guide.BOTH
    return Guide.REUSED if schedule.reuse else Guide.ALONE


class DemaskingProgress:
    def __init__(self, observer: Observer, planned: Sequence[Sequence[int]], number: int, seconds: float) -> None:
        """``planned``: most steps of each block, by passage; ``number`` of the running passage and its ``seconds``."""
        self._observer, self._number, self._passages = observer, number, len(planned)
        self._before, self._total = sum(map(sum, planned[:number])), sum(map(sum, planned))
        self._steps, self._blocks = sum(planned[number]), iter(planned[number])
        self._seconds = seconds
        self._start: int | None = None
        """First frame of the running block."""
        self._done = self._planned = 0
        """Planned steps of the blocks before the running one, and of the running one."""

    def tell(self, block: Block, step: int, seconds: float) -> None:
        """Report a step of ``block``, counted from 0 within it; its number of steps may have changed."""
        if block.start != self._start:
            self._done, self._planned, self._start = self._done + self._planned, next(self._blocks, 1), block.start
        # A block may take fewer steps than planned.
        reached = min(self._done + math.ceil((step + 1) / block.steps * self._planned), self._steps)
        at = self._number, self._passages, reached - 1, self._steps
        self._observer.step(StepReport(*at, seconds, self._seconds, self._before, self._total))


@dataclass(frozen=True)
class MaskedInternals:
    """The first passage of a synthesis and its processing, for profiling."""

    network: FusedMasked
    plan: MaskedPlan
    request: MaskedRequest
    begin: Callable[[MaskedRequest], CanvasRun]
    """Computes the shared state of all steps of a canvas, as planned."""
    rules: Rules
    blocks: tuple[Block, ...]
    """In filling order, with the maximum steps of each."""
    decoder: Callable[[], GridDecoder]
    """Makes a new decoder for its codes."""
    passages: int
    audio_seconds: float
    """Duration of the first passage, including silence at its ends."""


@dataclass(frozen=True)
class _Spoken(Spoken):
    passage: FramedPassage
    canvas: Canvas
    blocks: tuple[Block, ...]


class MaskedSpeech(Speech[MaskedScript, _Spoken]):
    """A loaded masked model. See :class:`paretone.models.base.SpeechModel`."""

    _script = MaskedScript
    silent = "said nothing but silence"

    def __init__(self, info: ModelInfo, network: MaskedNetwork, frame_seconds: float) -> None:
        """``network`` is on the model's device; one frame of its canvas is audible for ``frame_seconds``."""
        super().__init__(info)
        self.networks = MaskedNetworks(network, info.precision, self.first_run)
        self._device = self.networks.own.device
        self._frame_seconds = frame_seconds
        self._compiled: tuple[tuple[FusedMasked, str], FusedMasked] | None = None
        """The network compiled last, with its source and mode as the key."""

    # --- To be implemented by a model --------------------------------------------------------------------------------
    @abstractmethod
    def prompt(self, voice: Voice, options: Values, check: Check) -> Any:
        """Prepare a voice. ``check`` is called during long work and may raise to cancel. Raises :class:`PlainError`."""

    @abstractmethod
    def passages(self, text: str, voice: Voice, prompt: Any, options: Values, seed: int | None = None) -> Passages:
        """Passages, each with the length of its canvas; ``seed`` as in :meth:`prepare`. Raises :class:`PlainError`."""

    @abstractmethod
    def request(self, passage: Any, prompt: Any, options: Values) -> MaskedRequest:
        """The rows before a passage's canvas, on the model's device."""

    @abstractmethod
    def decoder(self, prompt: Any, options: Values) -> GridDecoder:
        """A new decoder for the codes of one passage."""

    def _joiner(self, script: MaskedScript) -> Joiner:
        # Without blocks, each passage arrives in one piece.
        return PassageJoiner(CrossFader(0))

    def _limiting(self, script: MaskedScript, pace: Pace) -> Pace:
        blocks = script.plan.blocks
        if blocks is None or blocks.adaptive or not blocks.step_seconds:
            return pace
        return AssumedPace(blocks.step_seconds)

    def following(
        self, passage: Any, prompt: Any, options: Values, first: Any, codes: torch.Tensor
    ) -> tuple[FramedPassage, Prompt]:
        """A later passage and its prompt, after the ``first`` one was filled in with ``codes`` (codebooks, frames)."""
        return passage, prompt

    def ready_voice(self, voice: Voice, options: Values, observer: Observer) -> None:
        """Prepare parts of ``voice`` that later syntheses reuse."""

    # --- Networks ----------------------------------------------------------------------------------------------------
    def warm_up(self) -> None:
        self.first_run(self.networks.own)

    def look_for_weights(self, check: Check = lambda: None) -> ModelInfo:
        """No further weights exist."""
        return self.info

    def make_ready(self, plan: MaskedPlan, observer: Observer = SILENT, voice: Voice | None = None) -> None:
        self._launched(self.networks.of(plan.precision, observer.status), plan, observer.status)
        if voice is not None:
            self.ready_voice(voice, plan.options, observer)

    # --- Speaking ----------------------------------------------------------------------------------------------------
    def internals(self, script: MaskedScript) -> MaskedInternals:
        """The first passage, for profiling by component. Raises :class:`PlainError`."""
        passage = script.passages[0]
        bounds = script.bounds(0, passage)
        return MaskedInternals(
            script.network,
            script.plan,
            self.request(passage, script.prompt, script.options),
            script.begin,
            script.rules,
            tuple(Block(start, end, script.steps_of(0, place)) for place, (start, end) in enumerate(bounds)),
            lambda: self.decoder(script.prompt, script.options),
            len(script.passages),
            passage.frames * self._frame_seconds,
        )

    def require_codebooks(self, count: int) -> None:
        """Raise :class:`SettingError` if there are fewer than ``count`` codebooks."""
        there = self.networks.plain.config.codebooks
        if not 0 <= count <= there:
            raise SettingError(f"{self.info.title} has {there} codebooks: decode 1 to {there}, not {count}.")

    @torch.inference_mode()
    def decode_partial(
        self, passage: DemaskedPassage, step: int, voice: Voice, plan: MaskedPlan, check: Check, codebooks: int = 0
    ) -> np.ndarray:
        """The audio (n,) of a passage as it was after ``step``, counted from 0, without a take's levelling or trimming.
        ``codebooks``: decode only this number of first codebooks; 0: all. Masked codes add nothing: a frame whose first
        codebooks alone are known is heard by these; a frame without any is the decoder's output for no codes. Raises
        :class:`SettingError` if the step or that many codebooks do not exist, or the codes are another model's."""
        if not 0 <= step < passage.steps:
            raise SettingError(f"There is no step {step + 1}: the passage was filled in in {passage.steps} steps.")
        config = self.networks.plain.config
        if len(passage.codes) != config.codebooks or passage.codes.max(initial=0) >= config.mask:
            raise SettingError(f"These codes are not {self.info.title}'s; load the model that the take was made with.")
        self.require_codebooks(codebooks)
        prompt = self.prompt(voice, plan.options, check)
        codes = torch.from_numpy(passage.known(step, config.mask)).long().to(self._device)
        codes[codebooks or config.codebooks :] = config.mask
        return self.decoder(prompt, plan.options).whole(codes).samples

    def prepare(
        self, text: str, voice: Voice, options: Values, check: Check, seed: int | None = None
    ) -> tuple[Prompt, Passages]:
        prompt = self.prompt(voice, options, check)
        check()
        return prompt, self.passages(text, voice, prompt, options, seed)

    def _network(self, plan: MaskedPlan, voice: Voice, observer: Observer) -> FusedMasked:
        return self._launched(self.networks.of(plan.precision), plan)

    def shared(self, script: MaskedScript, ask: Ask) -> MaskedScript:
        return replace(script, network=script.network.shared(ask))

    def _launched(self, network: FusedMasked, plan: MaskedPlan, status: Status = lambda text: None) -> FusedMasked:
        """``network`` with its passes recorded or compiled, if planned; compiled ones are warmed up."""
        graphs, mode = plan.launching.graphs, plan.launching.mode
        if graphs is not None:
            self.graphs.bound(graphs)
            return with_graphs(network, self.graphs, graphs.bucket)
        if mode is None:
            return network
        if self._compiled is None or self._compiled[0] != (network, mode):
            status(COMPILING)
            self._compiled = (network, mode), compiled_masked(network, mode)
            self.first_run(self._compiled[1])
            warmed(self._compiled[1])
        return self._compiled[1]

    @torch.inference_mode()
    def _speak_passage(
        self, script: MaskedScript, number: int, before: Sequence[_Spoken], pace: Pace, observer: Observer
    ) -> Generator[Uttered, None, _Spoken]:
        passage, prompt = script.passages[number], script.prompt
        if before:
            first = before[0]
            passage, prompt = self.following(passage, prompt, script.options, first.passage, first.canvas.codes)
        request = self.request(passage, prompt, script.options)
        decoder, config = self.decoder(prompt, script.options), script.network.config
        canvas = Canvas(config.codebooks, passage.frames, config.mask, self._device)
        blocks, bounds = script.plan.blocks, script.bounds(number, passage)
        planned = [
            [script.steps_of(index, place) for place in range(len(script.bounds(index, one)))]
            for index, one in enumerate(script.passages)
        ]
        progress = DemaskingProgress(observer, planned, number, script.passages[number].frames * self._frame_seconds)
        filled: list[Block] = []
        runs: list[CanvasRun] = []
        step_seconds: list[float] = []
        operations = decoder_seconds = 0.0
        samples = 0

        def seen(start: float) -> Trace:
            return Trace(demasking=self._demasking_trace((_demasked(canvas, len(step_seconds), start, tuple(filled)),)))

        look_ahead = None if blocks is None else blocks.look_ahead
        run = script.begin(request) if look_ahead is None else None
        for place, (start, end) in enumerate(bounds):
            block = Block(start, end, script.steps_of(number, place))
            with enough_memory(self.info.device, f"a canvas of {passage.frames} frames"):
                if run is None or look_ahead is not None:
                    run = script.begin(request.shortened(min(end + (look_ahead or 0), request.frames)))
                elif place:
                    run.begin_block()
                if blocks is not None and not pace.playing:
                    # Until the first audio, each block takes the steps of the first one.
                    block = replace(block, steps=blocks.first_steps)
                elif script.paced:
                    block = replace(block, steps=pace.affordable(block.steps, run.rows_of(Guide.BOTH), block.frames))
                if run not in runs:
                    runs.append(run)
                spent = run.operations
                seconds = self._fill(script, run, canvas, block, len(step_seconds), pace, progress, observer)
                began = self.clock()
                ready = decoder.push(canvas.codes[:, start:end])
                if end == passage.frames:
                    ready = np.concatenate([ready, decoder.finish()])
            took = self.clock() - began
            filled.append(replace(block, steps=len(seconds)))
            step_seconds.extend(seconds)
            operations += run.operations - spent
            decoder_seconds += took
            pace.decoded(block.frames, took)
            samples += len(ready)
            yield Uttered(ready, seen)
        return _Spoken(
            tuple(step_seconds),
            decoder.mel,
            samples,
            sum(step_seconds),
            decoder_seconds,
            operations,
            self._reference_operations(script, request),
            self._saved(script, runs, filled),
            passage,
            canvas,
            tuple(filled),
        )

    @staticmethod
    def _saved(script: MaskedScript, runs: Sequence[CanvasRun], blocks: Sequence[Block]) -> frozenset[str]:
        """Parts of the plan that saved operations; a plug-in's own runs count as saving."""
        counted = [one for one in runs if isinstance(one, MaskedRun)]
        guides = (guide_of(script.plan.guidance, step) for block in blocks for step in range(block.steps))
        found = {
            "skipping": len(counted) < len(runs) or any(one.operations < one.whole_operations for one in counted),
            "guidance": any(one is not Guide.BOTH for one in guides),
        }
        return frozenset(part for part, saves in found.items() if saves)

    def _fill(
        self,
        script: MaskedScript,
        run: CanvasRun,
        canvas: Canvas,
        block: Block,
        first_step: int,
        pace: Pace,
        progress: DemaskingProgress,
        observer: Observer,
    ) -> list[float]:
        """Fill in a block; return the seconds of each step: on a GPU launch times, the last one with the wait."""
        seconds: list[float] = []
        steps = block.steps

        def guide(step: int) -> Guide:
            return guide_of(script.plan.guidance, step - first_step)

        def still(taken: int) -> int:
            nonlocal steps
            steps = taken + pace.still(taken, steps - taken, run.rows_of(Guide.BOTH), block.frames)
            return steps - taken

        # Before the first audio there is no deadline.
        cut = still if script.paced and pace.playing else None
        at_once = self._device.type == "cpu"
        began = self.clock()
        schedule = script.schedule(canvas.codebooks * block.frames, block.steps)
        steps_of = demask(
            run, canvas, block, script.rules, script.noise, first_step, guide, observer.check, cut, schedule
        )
        for step in steps_of:
            seconds.append(self.clock() - began)
            if script.paced and at_once:
                pace.stepped(run.rows_of_last(guide(step)), seconds[-1])
            progress.tell(replace(block, steps=steps), step - first_step, seconds[-1])
            began = self.clock()
        devices.synchronise(self._device)
        seconds[-1] += self.clock() - began
        if script.paced and not at_once:
            for step in range(first_step, first_step + len(seconds)):
                pace.stepped(run.rows_of(guide(step)), sum(seconds) / len(seconds))
        return seconds

    @staticmethod
    def _reference_operations(script: MaskedScript, request: MaskedRequest) -> float:
        """The network's operations on the canvas under the same setting without techniques."""
        options, config = script.plan.reference, script.network.config
        counts = commit_counts(config.codebooks * request.frames, int(options["steps"]), float(options["shift"]))
        both = Guide.BOTH if options["guidance"] else Guide.ALONE
        return sum(map(bool, counts)) * request.operations(config, request.frames, both)

    def _account(self, script: MaskedScript, spoken: Sequence[_Spoken], pace: Pace) -> Account:
        measured = replace(cost_of(spoken, pace), evaluations=sum(len(one.step_seconds) for one in spoken))
        return measured, (*pace.remarks, *self.graphs.notes(), *notes_of(script.network))

    def _traced(self, trace: Trace, spoken: Sequence[_Spoken], starts: tuple[float, ...]) -> Trace:
        passages = tuple(
            _demasked(one.canvas, len(one.step_seconds), start, one.blocks)
            for one, start in zip(spoken, starts, strict=True)
        )
        return replace(trace, demasking=self._demasking_trace(passages))

    def _demasking_trace(self, passages: tuple[DemaskedPassage, ...]) -> DemaskingTrace:
        return DemaskingTrace(self._frame_seconds, self.networks.plain.config.mask, passages)


def _demasked(canvas: Canvas, steps: int, start: float, blocks: tuple[Block, ...]) -> DemaskedPassage:
    """Snapshot of a canvas after ``steps``, unaffected by further filling."""
    return DemaskedPassage(
        canvas.codes.to("cpu", torch.int32).numpy(),
        canvas.order.cpu().numpy().copy(),
        canvas.probability.cpu().numpy().copy(),
        steps,
        start,
        blocks,
    )
