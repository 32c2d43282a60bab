"""Common part of the three families: a text is cut into passages, spoken one by one and delivered as one sound."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from paretone.errors import Cancelled, PlainError, PlugInError
from paretone.front_end.markup import markup_notes
from paretone.measure.processor_time import ProcessorTime, processor_time
from paretone.models.base import ModelInfo, Observer, Piece, Synthesis, Voice, caution, keep_finished_part
from paretone.models.families.delivery import Delivery, Joiner
from paretone.models.families.pacing import Pace
from paretone.models.families.passages import Passage, Passages, Prompt, Spoken, Uttered, require_numbers, whole_mel
from paretone.models.kernels.graphs import GraphCache
from paretone.setting.knobs import Values
from paretone.setting.plan import Plan
from paretone.setting.setting import Artefact, Setting
from paretone.setting.take import Measurements, Trace
from paretone.stopping import stoppable
from paretone.techniques import resolve
from paretone.wording import grouped

LONG_TEXT = 2000
"""Characters of a text that takes a while to read."""


@dataclass(frozen=True)
class Script:
    """Everything one synthesis needs."""

    plan: Plan
    network: Any
    """The network under the plan, ready and warm."""
    prompt: Prompt
    passages: tuple[Passage, ...]
    notes: tuple[str, ...]
    seed: int

    @property
    def options(self) -> Values:
        return self.plan.options


AnyScript = TypeVar("AnyScript", bound=Script)
AnySpoken = TypeVar("AnySpoken", bound=Spoken)


@dataclass(frozen=True)
class _Moment:
    """A moment of a synthesis."""

    clock: float
    processor: ProcessorTime


class Speech(ABC, Generic[AnyScript, AnySpoken]):
    """A loaded model. See :class:`paretone.models.base.SpeechModel`."""

    script: type[AnyScript]
    silent: ClassVar[str]
    """Sentence, after the model's title, for a synthesis without audible speech."""
    elements: ClassVar[frozenset[str]] = frozenset()
    """Names of elements such as ``<strong>`` that the model reads; all other markup is spoken as words."""

    def __init__(self, info: ModelInfo) -> None:
        self.info = info
        self._graphs: GraphCache = GraphCache()
        self._memory: dict[str, Any] = {}
        """State that techniques keep between syntheses."""
        self.clock: Callable[[], float] = time.perf_counter
        """The clock."""

    # --- What a model fills in ---------------------------------------------------------------------------------------
    # Prompts and passages are the model's own (:class:`Prompt`, :class:`Passage`): Any.
    @abstractmethod
    def _prepare(
        self, text: str, voice: Voice, options: Values, check: Callable[[], None], seed: int | None = None
    ) -> tuple[Any, Passages]:
        """The voice made ready and the text cut into passages. ``check`` is called where that takes long, and may raise
        to cancel. What is random about a text, such as its pace, is drawn from ``seed``; without, it is the mean.
        Raises :class:`PlainError`."""

    # --- What a family fills in --------------------------------------------------------------------------------------
    @abstractmethod
    def _network(
        self, plan: Any, voice: Voice, setting: Setting, check: Callable[[], None], status: Callable[[str], None]
    ) -> Any:
        """The network under ``plan``. ``status`` is called with the present activity."""

    @abstractmethod
    def _joiner(self, script: Any) -> Joiner:
        """Joiner of the passages."""

    def _planned(self, script: AnyScript, pace: Pace) -> Pace:
        """Pace that limits steps, in addition to the measured ``pace``."""
        return pace

    @abstractmethod
    def _speak(
        self, script: AnyScript, number: int, before: Sequence[AnySpoken], pace: Pace, observer: Observer
    ) -> Generator[Uttered, None, AnySpoken]:
        """One passage: yields its audio as it becomes final."""

    @abstractmethod
    def _account(
        self, script: AnyScript, spoken: Sequence[AnySpoken], pace: Pace
    ) -> tuple[Measurements, tuple[str, ...]]:
        """Measurements of the passages beyond those of :meth:`synthesise`, and notes on them."""

    @abstractmethod
    def _traced(self, trace: Trace, spoken: Sequence[AnySpoken], starts: tuple[float, ...]) -> Trace:
        """``trace`` with what the family adds; each passage begins at one of ``starts``, in seconds."""

    # --- Speaking ----------------------------------------------------------------------------------------------------
    def synthesise(
        self,
        text: str,
        voice: Voice,
        setting: Setting,
        artefacts: tuple[Artefact, ...],
        observer: Observer,
    ) -> Generator[Piece, None, Synthesis]:
        started = _Moment(self.clock(), processor_time())
        plan = resolve(self.info, setting, artefacts)
        script = self._script(text, voice, setting, plan, observer.check, observer.status)
        for note in script.prompt.notes:
            caution(observer, note)
        text_seconds = self.clock() - started.clock
        pace = Pace(started.clock, self.clock)
        planned = self._planned(script, pace)
        delivery = Delivery(
            self._joiner(script), self.info.sample_rate, {pace, planned}, partial(self._require_sound, plan)
        )
        spoken: list[AnySpoken] = []
        ended = started
        try:
            for number in range(len(script.passages)):
                spoken.append((yield from delivery.passage(self._speak(script, number, spoken, planned, observer))))
                ended = _Moment(self.clock(), processor_time())
            yield from delivery.finish()
        except (Exception, KeyboardInterrupt) as error:
            samples = delivery.finished
            if not len(samples) or len(spoken) == len(script.passages):
                raise
            part = self._synthesis(script, spoken, pace, samples, delivery.starts, text_seconds, started, ended)
            keep_finished_part(error, _cut_short(part, error, len(spoken), len(script.passages)))
            raise
        samples = delivery.samples
        if not len(samples):
            raise PlainError(f"{self.info.title} {self.silent}; try another seed, or a text with more words.")
        ended = _Moment(self.clock(), processor_time())
        return self._synthesis(script, spoken, pace, samples, delivery.starts, text_seconds, started, ended)

    def _synthesis(
        self,
        script: AnyScript,
        spoken: Sequence[AnySpoken],
        pace: Pace,
        samples: np.ndarray,
        starts: tuple[float, ...],
        text_seconds: float,
        started: _Moment,
        ended: _Moment,
    ) -> Synthesis:
        """The passages ``spoken`` so far as a whole."""
        rate = self.info.sample_rate
        own, others = ended.processor.since(started.processor)
        measured, notes = self._account(script, spoken, pace)
        measurements = replace(
            measured,
            seconds=ended.clock - started.clock,
            audio_seconds=len(samples) / rate,
            first_audio_seconds=pace.first_audio_seconds,
            text_seconds=text_seconds,
            device=self.info.device,
            # The processor only feeds a GPU.
            cpu_seconds=own if self.info.device_type in ("", "cpu") else None,
            other_seconds=others,
            cores=ended.processor.cores,
        )
        trace = Trace(
            tuple(one.step_seconds for one in spoken),
            tuple(passage.text for passage in script.passages[: len(spoken)]),
            tuple(one.samples / rate for one in spoken),
            whole_mel(one.mel for one in spoken),
        )
        traced = self._traced(trace, spoken, starts)
        idle = script.plan.idle_notes({part for one in spoken for part in one.saved})
        return Synthesis(samples, rate, measurements, traced, (*script.notes, *notes, *idle))

    def _script(
        self,
        text: str,
        voice: Voice,
        setting: Setting,
        plan: Any,
        check: Callable[[], None] = lambda: None,
        status: Callable[[str], None] = lambda text: None,
    ) -> AnyScript:
        """Everything that must be known before the first passage is spoken. ``status`` is called with what is recorded
        or measured."""
        network = self._network(plan, voice, setting, check, status)
        self._graphs.status = status
        if len(text) >= LONG_TEXT:
            status(f"Reading {grouped(len(text))} characters …")
        with stoppable(check):
            prompt, prepared = self._prepare(text, voice, plan.options, check, setting.seed)
        if len(text) >= LONG_TEXT:
            status("Synthesising …")
        notes = (*plan.notes, *prompt.notes, *prepared.notes, *markup_notes(text, self.elements))
        return self.script(plan, network, prompt, prepared.passages, notes, setting.seed)

    @staticmethod
    def _require_numbers(samples: np.ndarray) -> None:
        require_numbers(samples)

    def _require_sound(self, plan: Plan, samples: np.ndarray) -> None:
        """The same, but that plug-ins whose parts ran are named."""
        owners = sorted({part.owner for part in plan.parts.values() if part.owner})
        try:
            self._require_numbers(samples)
        except PlainError as error:
            if not owners:
                raise
            raise PlugInError(
                f"The synthesis gave values that are not numbers, under a part of {' and of '.join(owners)}; do "
                "without it, or mend it."
            ) from error


def _cut_short(part: Synthesis, error: BaseException, spoken: int, passages: int) -> Synthesis:
    """``part`` as what is left of a synthesis that ``error`` ended."""
    cancelled = isinstance(error, Cancelled | KeyboardInterrupt)
    unfinished = f"{'cancelled' if cancelled else 'failed'} after {spoken} of {passages} passages"
    why = "the rest of the text is missing." if cancelled else str(error)
    note = f"{unfinished[0].upper()}{unfinished[1:]}: {why}"
    return replace(part, notes=(*part.notes, note), unfinished=unfinished)
