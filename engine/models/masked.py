"""What all masked models have in common: text and a voice in, a canvas of codes filled in step by step, audio out.

A model derives from :class:`MaskedSpeech` and fills in what is its own:

* :meth:`MaskedSpeech._prompt`: a voice made ready;
* :meth:`MaskedSpeech._passages`: a text to passages, with the length of each canvas;
* :meth:`MaskedSpeech._request`: a passage to what stands before its canvas;
* :meth:`MaskedSpeech._decoder`: what makes the codes of one passage heard;
* :meth:`MaskedSpeech._warm_up`: everything once;
* where its own way differs: ``_joiner`` (how passages are joined, and what is done to their sound), ``_following``
  (what a passage takes over from the first one), ``_ready_voice`` (what of a voice is worth preparing before the clock
  runs).

All masked models have the options :data:`engine.sampling.masked_options.DEMASKING_OPTIONS`; where ``by_sentence`` is
set, ``_passages`` gives every sentence a passage of its own.

``ops_ratio`` of its takes is the network's operations over those of the same setting without techniques. Counted are
all matrix and attention products, those of the head included, of all rows of all branches that a step computed; not the
decoder. Blockwise streaming comes out above 1: it computes more steps.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch

from engine import device as devices
from engine.audio.cross_fade import PassageJoiner
from engine.errors import PlainError, SettingError
from engine.failures import enough_memory
from engine.knobs import Values
from engine.models.base import ModelInfo, Observer, Piece, StepReport, Synthesis, Voice
from engine.models.compiled import compiled_masked, notes_of
from engine.models.frozen_prefix import FrozenPrefixRun
from engine.models.fused_masked import FusedMasked, MaskedRequest, MaskedRun
from engine.models.graphs import Shelf, with_graphs
from engine.models.grid_decoder import GridDecoder
from engine.models.masked_network import MaskedNetwork
from engine.models.masked_networks import MaskedNetworks
from engine.models.pacing import Pace
from engine.models.passages import MaskedPassage, MaskedPassages, MaskedPrompt, require_numbers
from engine.sampling.demasking import Canvas, Guide, Rules, SeededNoise, demask
from engine.sampling.demasking_schedule import Block, block_bounds, commit_counts
from engine.setting import Setting
from engine.take import DemaskedPassage, DemaskingTrace, Measurements, Trace
from engine.techniques.ditreducio.table import StrategyTable
from engine.techniques.masked_engagement import MaskedEngagement, engage


class Joiner(Protocol):
    """Makes one sound of the passages, of which each comes in pieces."""

    lead: int
    """By how many samples the sound of the last passage begins later than :meth:`begin` said; below 0: earlier."""

    def begin(self) -> int:
        """Another passage begins; at which sample of the whole."""

    def push(self, samples: np.ndarray) -> np.ndarray:
        """Take the next piece of the passage, and return the samples that are final now."""

    def finish(self) -> np.ndarray:
        """The last passage has ended: the rest."""


@dataclass(frozen=True)
class _Script:
    """What one synthesis speaks, and with what."""

    engagement: MaskedEngagement
    network: FusedMasked
    prompt: MaskedPrompt
    passages: tuple[MaskedPassage, ...]
    notes: tuple[str, ...]
    seed: int

    @property
    def options(self) -> Values:
        return self.engagement.options

    @property
    def rules(self) -> Rules:
        return rules_of(self.options)

    def bounds(self, number: int, passage: MaskedPassage) -> tuple[tuple[int, int], ...]:
        """Where the blocks of a passage begin and end."""
        plan = self.engagement.blocks
        if plan is None:
            return ((0, passage.frames),)
        return block_bounds(passage.frames, plan.size, 0 if number else plan.first_size)

    def steps_of(self, number: int, place: int, pace: Pace | None = None) -> int:
        """How many steps a block takes; without ``pace``, at most."""
        plan = self.engagement.blocks
        if plan is None:
            return int(self.options["steps"])
        if number == place == 0:
            return plan.first_steps
        return pace.affordable(plan.later_steps) if pace is not None and plan.adaptive else plan.later_steps

    def begin(self, request: MaskedRequest) -> MaskedRun:
        """What all steps of a canvas share."""
        if self.engagement.prefix_every > 1:
            return FrozenPrefixRun(self.network, request, self.rules.guidance, self.engagement.prefix_every)
        return self.network.begin(request, self.rules.guidance)

    def planned_steps(self, number: int, passage: MaskedPassage) -> list[int]:
        """How many steps each block of a passage takes at most."""
        return [self.steps_of(number, place) for place in range(len(self.bounds(number, passage)))]


@dataclass(frozen=True)
class _Spoken:
    """One passage, spoken: what came out and what it cost."""

    passage: MaskedPassage
    canvas: Canvas
    blocks: tuple[Block, ...]
    step_seconds: tuple[float, ...]
    mel: np.ndarray | None
    samples: int
    backbone_seconds: float
    decoder_seconds: float
    operations: float
    reference_operations: float


@dataclass(frozen=True)
class MaskedWorkings:
    """The first passage of a synthesis, and what is done with it: for whoever takes it apart."""

    network: FusedMasked
    engagement: MaskedEngagement
    request: MaskedRequest
    rules: Rules
    blocks: tuple[Block, ...]
    """In the order in which they are filled in, with the most steps that each may take."""
    decoder: Callable[[], GridDecoder]
    """Gives what makes its codes heard, anew."""
    passages: int
    """How many there are in all."""
    audio_seconds: float
    """How long the first one will be heard, silence at its ends included."""


class MaskedSpeech(ABC):
    """A loaded masked model. See :class:`engine.models.base.SpeechModel`."""

    def __init__(self, info: ModelInfo, network: MaskedNetwork, frame_seconds: float) -> None:
        """``network`` is on the model's device; one frame of its canvas is heard for ``frame_seconds``."""
        self.info = info
        self._networks = MaskedNetworks(network, info.precision, self._warm_up)
        self._device = self._networks.own.device
        self._frame_seconds = frame_seconds
        self._graphs: Shelf = Shelf()
        self._compiled: tuple[tuple[FusedMasked, str], FusedMasked] | None = None
        """The network that was compiled last, by what it was made of."""

    # --- What a model fills in ---------------------------------------------------------------------------------------
    @abstractmethod
    def _warm_up(self, network: FusedMasked) -> None:
        """Run everything once with ``network``: first runs choose kernels and allocate, which no take should pay
        for."""

    @abstractmethod
    def _prompt(self, voice: Voice, options: Values, check: Callable[[], None]) -> MaskedPrompt:
        """The voice made ready. ``check`` is called where that takes long, and may raise to cancel. Raises
        :class:`PlainError`."""

    @abstractmethod
    def _passages(self, text: str, voice: Voice, prompt: MaskedPrompt, options: Values) -> MaskedPassages:
        """The text cut into passages, each with the length of its canvas. Raises :class:`PlainError`."""

    @abstractmethod
    def _request(self, passage: MaskedPassage, prompt: MaskedPrompt, options: Values) -> MaskedRequest:
        """What stands before the canvas of a passage, on the model's device."""

    @abstractmethod
    def _decoder(self, prompt: MaskedPrompt, options: Values) -> GridDecoder:
        """What makes the codes of one passage heard; a new one every time."""

    def _joiner(self, prompt: MaskedPrompt, options: Values, *, whole: bool) -> Joiner:
        """What makes one sound of the passages. Where ``whole``, each passage comes in a single piece."""
        return PassageJoiner(0)

    def _following(
        self,
        passage: MaskedPassage,
        prompt: MaskedPrompt,
        options: Values,
        first: MaskedPassage,
        codes: torch.Tensor,
    ) -> tuple[MaskedPassage, MaskedPrompt]:
        """What becomes of a later passage and its prompt once the ``first`` one has been filled in with ``codes``
        (codebooks, frames)."""
        return passage, prompt

    def _ready_voice(self, voice: Voice, options: Values, observer: Observer) -> None:  # noqa: B027 (most have none)
        """Prepare of ``voice`` what later syntheses find again."""

    # --- Networks ----------------------------------------------------------------------------------------------------
    @property
    def networks(self) -> MaskedNetworks:
        """The network as it was loaded, and as it runs."""
        return self._networks

    def warm_up(self) -> None:
        """Run everything once."""
        self._warm_up(self._networks.own)

    def look_for_weights(self, check: Callable[[], None] = lambda: None) -> ModelInfo:
        """There are no further weights to look for."""
        return self.info

    def make_ready(self, setting: Setting, observer: Observer, voice: Voice | None = None) -> None:
        engagement = engage(self.info, setting)
        self._networks.of(engagement.precision, observer.status)
        if voice is not None:
            self._ready_voice(voice, engagement.options, observer)

    # --- Speaking ----------------------------------------------------------------------------------------------------
    def synthesise(
        self,
        text: str,
        voice: Voice,
        setting: Setting,
        artefacts: tuple[StrategyTable, ...],
        observer: Observer,
    ) -> Generator[Piece, None, Synthesis]:
        pace = Pace(time.perf_counter())
        script = self._script(text, voice, setting, observer.check)
        text_seconds = time.perf_counter() - pace.started
        joiner = self._joiner(script.prompt, script.options, whole=script.engagement.blocks is None)
        noise = SeededNoise(script.seed, self._device)
        pieces: list[np.ndarray] = []
        spoken: list[_Spoken] = []
        starts: list[float] = []

        def heard(samples: np.ndarray) -> Generator[Piece, None, None]:
            if len(samples):
                require_numbers(samples)
                pieces.append(samples)
                pace.delivered(len(samples) / self.info.sample_rate)
                yield Piece(samples)

        for number in range(len(script.passages)):
            began = joiner.begin()
            speaking = self._speak(script, number, spoken, noise, pace, observer)
            passage: _Spoken | None = None
            while passage is None:
                try:
                    samples = next(speaking)
                except StopIteration as end:
                    passage = end.value
                else:
                    yield from heard(joiner.push(samples))
            starts.append((began + joiner.lead) / self.info.sample_rate)
            spoken.append(passage)
        yield from heard(joiner.finish())
        if not pieces:
            raise PlainError(
                f"{self.info.title} said nothing but silence; try another seed, or a text with more words."
            )
        samples = np.concatenate(pieces)
        measurements = Measurements(
            seconds=time.perf_counter() - pace.started,
            audio_seconds=len(samples) / self.info.sample_rate,
            first_audio_seconds=pace.first_audio_seconds,
            largest_gap_seconds=pace.largest_gap,
            text_seconds=text_seconds,
            backbone_seconds=sum(one.backbone_seconds for one in spoken),
            decoder_seconds=sum(one.decoder_seconds for one in spoken),
            evaluations=sum(len(one.step_seconds) for one in spoken),
            ops_ratio=sum(one.operations for one in spoken) / sum(one.reference_operations for one in spoken),
            device=self.info.device,
        )
        notes = (*script.notes, *pace.remarks, *self._graphs.notes(), *notes_of(script.network))
        return Synthesis(samples, self.info.sample_rate, measurements, self._trace(spoken, starts), notes)

    def workings(
        self, text: str, voice: Voice, setting: Setting, check: Callable[[], None] = lambda: None
    ) -> MaskedWorkings:
        """The first passage, to be taken apart. Raises :class:`PlainError`."""
        script = self._script(text, voice, setting, check)
        passage = script.passages[0]
        bounds = script.bounds(0, passage)
        return MaskedWorkings(
            script.network,
            script.engagement,
            self._request(passage, script.prompt, script.options),
            script.rules,
            tuple(Block(start, end, script.steps_of(0, place)) for place, (start, end) in enumerate(bounds)),
            lambda: self._decoder(script.prompt, script.options),
            len(script.passages),
            passage.frames * self._frame_seconds,
        )

    @torch.inference_mode()
    def decode_partial(
        self, passage: DemaskedPassage, step: int, voice: Voice, setting: Setting, check: Callable[[], None]
    ) -> np.ndarray:
        """The sound (n,) of a passage as it stood behind ``step``, from 0; not levelled or trimmed as a take is.

        Codes that were not there yet add nothing: of a frame of which only the first codebooks were known, what these
        say is heard; a frame without any is what the decoder makes of nothing. Raises :class:`SettingError` where there
        is no such step, or the codes are of another model.
        """
        if not 0 <= step < passage.steps:
            raise SettingError(f"There is no step {step + 1}: the passage was filled in in {passage.steps} steps.")
        config = self._networks.plain.config
        if len(passage.codes) != config.codebooks or passage.codes.max(initial=0) >= config.mask:
            raise SettingError(f"These codes are not {self.info.title}'s; load the model that the take was made with.")
        engagement = engage(self.info, setting)
        prompt = self._prompt(voice, engagement.options, check)
        codes = torch.from_numpy(passage.known(step, config.mask)).long().to(self._device)
        return self._decoder(prompt, engagement.options).whole(codes).samples

    def _script(self, text: str, voice: Voice, setting: Setting, check: Callable[[], None]) -> _Script:
        """Everything that must be known before the first passage is spoken."""
        engagement = engage(self.info, setting)
        network = self._launched(self._networks.of(engagement.precision), engagement)
        prompt = self._prompt(voice, engagement.options, check)
        check()
        prepared = self._passages(text, voice, prompt, engagement.options)
        notes = (*engagement.notes, *prompt.notes, *prepared.notes)
        return _Script(engagement, network, prompt, prepared.passages, notes, setting.seed)

    def _launched(self, network: FusedMasked, engagement: MaskedEngagement) -> FusedMasked:
        """``network``, its passes recorded or compiled where that is engaged."""
        graphs, mode = engagement.launching.graphs, engagement.launching.mode
        if graphs is not None:
            self._graphs.most = graphs.most
            return with_graphs(network, self._graphs)
        if mode is None:
            return network
        if self._compiled is None or self._compiled[0] != (network, mode):
            self._compiled = (network, mode), compiled_masked(network, mode)
        return self._compiled[1]

    @torch.inference_mode()
    def _speak(
        self,
        script: _Script,
        number: int,
        before: Sequence[_Spoken],
        noise: SeededNoise,
        pace: Pace,
        observer: Observer,
    ) -> Generator[np.ndarray, None, _Spoken]:
        """One passage: yields its audio as it becomes final."""
        passage, prompt = script.passages[number], script.prompt
        if before:
            first = before[0]
            passage, prompt = self._following(passage, prompt, script.options, first.passage, first.canvas.codes)
        request = self._request(passage, prompt, script.options)
        decoder, config = self._decoder(prompt, script.options), script.network.config
        canvas = Canvas(config.codebooks, passage.frames, config.mask, self._device)
        plan, bounds = script.engagement.blocks, script.bounds(number, passage)
        progress = _Progress(observer, script, number, self._frame_seconds)
        filled: list[Block] = []
        step_seconds: list[float] = []
        operations = decoder_seconds = 0.0
        samples = 0
        run = script.begin(request)
        for place, (start, end) in enumerate(bounds):
            block = Block(start, end, script.steps_of(number, place, pace))
            with enough_memory(self.info.device, f"a canvas of {passage.frames} frames"):
                if plan is not None and plan.look_ahead is not None:
                    visible = request.shortened(min(end + plan.look_ahead, request.frames))
                    run = script.begin(visible)
                spent = run.operations
                seconds = self._fill(script, run, canvas, block, noise, len(step_seconds), progress, observer)
                began = time.perf_counter()
                ready = decoder.push(canvas.codes[:, start:end])
                if end == passage.frames:
                    ready = np.concatenate([ready, decoder.finish()])
            filled.append(block)
            step_seconds.extend(seconds)
            operations += run.operations - spent
            decoder_seconds += time.perf_counter() - began
            pace.measured(len(seconds), sum(seconds), time.perf_counter() - began)
            samples += len(ready)
            yield ready
        return _Spoken(
            passage,
            canvas,
            tuple(filled),
            tuple(step_seconds),
            decoder.mel,
            samples,
            sum(step_seconds),
            decoder_seconds,
            operations,
            self._reference_operations(script, request),
        )

    def _fill(
        self,
        script: _Script,
        run: MaskedRun,
        canvas: Canvas,
        block: Block,
        noise: SeededNoise,
        first_step: int,
        progress: _Progress,
        observer: Observer,
    ) -> list[float]:
        """Fill in a block; returns what each step took. On a graphics card that is the time to ask for it, and the last
        one's holds the wait until all is done."""
        engagement, seconds = script.engagement, []
        began = time.perf_counter()
        for step in demask(
            run,
            canvas,
            block,
            script.rules,
            noise,
            first_step,
            lambda step: guide_of(engagement, step - first_step),
            observer.check,
        ):
            seconds.append(time.perf_counter() - began)
            progress.tell(block, step - first_step, seconds[-1])
            began = time.perf_counter()
        devices.synchronise(self._device)
        seconds[-1] += time.perf_counter() - began
        return seconds

    @staticmethod
    def _reference_operations(script: _Script, request: MaskedRequest) -> float:
        """The network's operations on the canvas under the same setting without techniques."""
        options, config = script.engagement.reference, script.network.config
        counts = commit_counts(config.codebooks * request.frames, int(options["steps"]), float(options["shift"]))
        both = Guide.BOTH if options["guidance"] else Guide.ALONE
        return sum(map(bool, counts)) * request.operations(config, request.frames, both)

    def _trace(self, spoken: Sequence[_Spoken], starts: Sequence[float]) -> Trace:
        mels = [one.mel for one in spoken if one.mel is not None]
        passages = tuple(
            DemaskedPassage(
                one.canvas.codes.to("cpu", torch.int32).numpy(),
                one.canvas.order.cpu().numpy(),
                one.canvas.probability.cpu().numpy(),
                len(one.step_seconds),
                start,
                one.blocks,
            )
            for one, start in zip(spoken, starts, strict=True)
        )
        return Trace(
            tuple(one.step_seconds for one in spoken),
            tuple(one.passage.text for one in spoken),
            tuple(one.samples / self.info.sample_rate for one in spoken),
            np.concatenate(mels) if mels else None,
            demasking=DemaskingTrace(self._frame_seconds, self._networks.plain.config.mask, passages),
        )


def rules_of(options: Values) -> Rules:
    """How codes are chosen and committed under ``options``."""
    return Rules(
        float(options["guidance"]),
        float(options["shift"]),
        float(options["layer_penalty"]),
        float(options["position_temperature"]),
        float(options["class_temperature"]),
    )


def guide_of(engagement: MaskedEngagement, step: int) -> Guide:
    """How a step, counted from 0 within its block, is guided."""
    if engagement.guided_steps is not None and step >= engagement.guided_steps:
        return Guide.ALONE
    if step % engagement.guided_every == 0:
        return Guide.BOTH
    return Guide.REUSED if engagement.reuses_guidance else Guide.ALONE


class _Progress:
    """Tells an observer how far the steps of one passage are."""

    def __init__(self, observer: Observer, script: _Script, number: int, frame_seconds: float) -> None:
        planned = [script.planned_steps(place, passage) for place, passage in enumerate(script.passages)]
        self._observer, self._number, self._passages = observer, number, len(planned)
        self._before, self._total = sum(map(sum, planned[:number])), sum(map(sum, planned))
        self._steps, self._blocks = sum(planned[number]), iter(planned[number])
        self._seconds = script.passages[number].frames * frame_seconds
        self._block: Block | None = None
        self._done = self._planned = 0
        """Steps of the blocks before the running one, and of this, as they were planned."""

    def tell(self, block: Block, step: int, seconds: float) -> None:
        """A step of ``block`` is done, counted from 0 within it."""
        if block is not self._block:
            self._done, self._planned, self._block = self._done + self._planned, next(self._blocks, 1), block
        # A block may take fewer steps than was planned.
        reached = min(self._done + math.ceil((step + 1) / block.steps * self._planned), self._steps)
        self._observer.step(
            StepReport(
                self._number,
                self._passages,
                reached - 1,
                self._steps,
                seconds,
                self._seconds,
                self._before,
                self._total,
            )
        )
