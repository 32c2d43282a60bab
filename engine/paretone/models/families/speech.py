"""Common part of the three families: cut a text into passages, speak them one by one, deliver them as one signal."""

from __future__ import annotations

import copy
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np

from paretone.errors import Cancelled, PlainError, PlugInError
from paretone.front_end.speakable import markup_notes
from paretone.measure.processor_time import ProcessorTime, processor_time
from paretone.models.base import FINISHED, ModelInfo, Piece, Script, Synthesis, Voice
from paretone.models.families.pacing import Pace
from paretone.models.families.passages import Passages, Spoken, Uttered, require_numbers, whole_mel
from paretone.models.families.together import Ask
from paretone.models.kernels.graphs import GraphCache
from paretone.observer import SILENT, Check, Observer, stoppable
from paretone.setting.knobs import Values
from paretone.setting.plan import Part, Plan
from paretone.setting.take import Measurements, Trace
from paretone.wording import grouped

Ended = TypeVar("Ended")


class Joiner(Protocol):
    """Joins passages, which arrive in pieces, into one signal."""

    lead: int
    """Delay of the last passage's audio relative to :meth:`begin`, in samples; negative if earlier."""

    def begin(self) -> int:
        """Begin another passage; return its first sample."""

    def push(self, samples: np.ndarray) -> np.ndarray:
        """Add the next piece of the passage; return the samples that are now final."""

    def finish(self) -> np.ndarray:
        """End the last passage; return the rest."""


class Delivery:
    """Delivers and keeps the audio, passage by passage. ``check`` sees each piece first; then all ``paces`` do."""

    def __init__(self, joiner: Joiner, sample_rate: int, paces: set[Pace], check: Callable[[np.ndarray], None]) -> None:
        self._joiner, self._sample_rate, self._paces, self._check = joiner, sample_rate, paces, check
        self._pieces: list[np.ndarray] = []
        self._starts: list[float] = []
        self._whole = 0, np.zeros(0, np.float32)
        """Number of pieces delivered at the end of the last passage, and the audio that the joiner held back."""

    def passage(self, speaking: Generator[Uttered, None, Ended]) -> Generator[Piece, None, Ended]:
        """Deliver the next passage while it is spoken: yield its pieces, return the result of ``speaking``. Raises
        :class:`PlainError` for samples that are not numbers."""
        began = self._joiner.begin()
        while True:
            try:
                uttered = next(speaking)
            except StopIteration as end:
                self._starts.append((began + self._joiner.lead) / self._sample_rate)
                # A copy of the joiner ends here, in case no passage follows.
                self._whole = len(self._pieces), copy.deepcopy(self._joiner).finish()
                return end.value
            samples, start = self._joiner.push(uttered.samples), (began + self._joiner.lead) / self._sample_rate
            trace = uttered.seen(start) if uttered.seen is not None and len(samples) else None
            yield from self._heard(samples, len(self._starts), trace)

    def finish(self) -> Generator[Piece, None, None]:
        """Deliver the audio held back until the last passage ended."""
        yield from self._heard(self._joiner.finish(), max(0, len(self._starts) - 1))

    @property
    def samples(self) -> np.ndarray:
        """All delivered audio, (n,) float32."""
        return np.concatenate(self._pieces) if self._pieces else np.zeros(0, np.float32)

    @property
    def finished(self) -> np.ndarray:
        """The finished passages without the running one, (n,) float32."""
        delivered, rest = self._whole
        return np.concatenate([*self._pieces[:delivered], rest])

    @property
    def starts(self) -> tuple[float, ...]:
        return tuple(self._starts)

    def _heard(self, samples: np.ndarray, passage: int, trace: Trace | None = None) -> Generator[Piece, None, None]:
        if len(samples):
            self._check(samples)
            self._pieces.append(samples)
            for pace in self._paces:
                pace.delivered(len(samples) / self._sample_rate)
            yield Piece(samples, passage, trace)


LONG_TEXT = 2000
Account = tuple[Measurements, tuple[str, ...]]
AnyScript = TypeVar("AnyScript", bound=Script)
AnySpoken = TypeVar("AnySpoken", bound=Spoken)


@dataclass(frozen=True)
class _Moment:
    clock: float
    processor: ProcessorTime


class Speech(ABC, Generic[AnyScript, AnySpoken]):
    """A loaded model. See :class:`paretone.models.base.SpeechModel`."""

    _script: type[AnyScript]
    silent: ClassVar[str]
    """Predicate, after the model's title, for a synthesis without audible speech."""
    gains_on_one_thread: ClassVar[bool] = False
    """Whether a thread speaks several texts, in shared passes, in much less time than one after another."""
    elements: ClassVar[frozenset[str]] = frozenset()
    """Names of elements such as ``<strong>`` that the model reads; all other markup is spoken as words."""

    def __init__(self, info: ModelInfo) -> None:
        self.info = info
        self.graphs: GraphCache = GraphCache()
        self.memory: dict[str, Any] = {}
        """State that techniques keep between syntheses."""
        self.clock: Callable[[], float] = time.perf_counter
        self.source = Part("")
        """The function that loaded it, with its plug-in, which unexpected errors are blamed on."""

    # --- To be implemented by a model --------------------------------------------------------------------------------
    # Prompts and passages have the model's own types (:class:`Prompt`, :class:`Passage`): Any.
    @abstractmethod
    def prepare(
        self, text: str, voice: Voice, options: Values, check: Check, seed: int | None = None
    ) -> tuple[Any, Passages]:
        """Prepare the voice and cut the text into passages. ``check`` is called during long work and may raise to
        cancel. Random properties, such as pace, are drawn from ``seed``, or the mean. Raises :class:`PlainError`."""

    @abstractmethod
    def first_run(self, network: Any) -> None:
        """Run all once with ``network``: first runs choose kernels and allocate memory, which should not slow takes."""

    # --- To be implemented by a family -------------------------------------------------------------------------------
    @abstractmethod
    def _network(self, plan: Any, voice: Voice, observer: Observer) -> Any:
        """The network under ``plan``. ``observer`` gets status messages."""

    @abstractmethod
    def _joiner(self, script: Any) -> Joiner: ...

    def _limiting(self, script: AnyScript, pace: Pace) -> Pace:
        """The pace that limits steps, by default the measured ``pace``."""
        return pace

    @abstractmethod
    def _speak_passage(
        self, script: AnyScript, number: int, before: Sequence[AnySpoken], pace: Pace, observer: Observer
    ) -> Generator[Uttered, None, AnySpoken]:
        """Speak one passage: yield its audio as it becomes final."""

    @abstractmethod
    def _account(self, script: AnyScript, spoken: Sequence[AnySpoken], pace: Pace) -> Account:
        """Measurements of the passages beyond those of :meth:`stream`, and notes on them."""

    @abstractmethod
    def _traced(self, trace: Trace, spoken: Sequence[AnySpoken], starts: tuple[float, ...]) -> Trace:
        """``trace`` with the family's additions; ``starts`` are the passages' starts in seconds."""

    @property
    def spreads_texts(self) -> bool:
        """Whether of several texts, each is best spoken on one thread, not each operator computed on all of them."""
        return self.info.device_type in ("", "cpu")

    def shared(self, script: AnyScript, ask: Ask) -> AnyScript:
        """``script`` with passes shared where its plan allows: see :mod:`paretone.models.families.together`."""
        return script

    # --- Speaking ----------------------------------------------------------------------------------------------------
    def script(self, text: str, voice: Voice, plan: Any, observer: Observer = SILENT) -> AnyScript:
        began = self._now()
        network = self._network(plan, voice, observer)
        self.graphs.status = observer.status
        if len(text) >= LONG_TEXT:
            observer.status(f"Reading {grouped(len(text))} characters …")
        with stoppable(observer.check), self.source.blamed():
            prompt, prepared = self.prepare(text, voice, plan.options, observer.check, plan.seed)
        if len(text) >= LONG_TEXT:
            observer.status("Synthesising …")
        notes = (*plan.notes, *prompt.notes, *prepared.notes, *markup_notes(text, self.elements))
        now = self._now()
        seconds, cpu_seconds = now.clock - began.clock, now.processor.since(began.processor)
        return self._script(voice, plan, network, prompt, prepared.passages, notes, seconds, cpu_seconds)

    def speak(
        self, script: AnyScript, observer: Observer = SILENT, play: Callable[[Piece], None] = lambda piece: None
    ) -> Synthesis:
        speech = self.stream(script, observer)
        while True:
            try:
                piece = next(speech)
            except StopIteration as end:
                return end.value
            try:
                play(piece)
            except (Exception, KeyboardInterrupt) as error:
                # Raised again inside the generator, so that it carries the finished part.
                speech.throw(error)

    def stream(self, script: AnyScript, observer: Observer = SILENT) -> Generator[Piece, None, Synthesis]:
        now = self._now()
        started = _Moment(now.clock - script.seconds, now.processor.earlier(*script.cpu_seconds))
        self.graphs.status = observer.status
        for note in script.prompt.notes:
            observer.caution(note)
        pace = Pace(started.clock, self.clock)
        limiting = self._limiting(script, pace)
        require_sound = partial(self._require_sound, script.plan)
        delivery = Delivery(self._joiner(script), self.info.sample_rate, {pace, limiting}, require_sound)
        spoken: list[AnySpoken] = []
        ended = started
        try:
            for number in range(len(script.passages)):
                speaking = self._speak_passage(script, number, spoken, limiting, observer)
                spoken.append((yield from delivery.passage(self._blamed(speaking))))
                ended = self._now()
            yield from delivery.finish()
        except (Exception, KeyboardInterrupt) as error:
            samples = delivery.finished
            if not len(samples) or len(spoken) == len(script.passages):
                raise
            part = self._synthesis(script, spoken, pace, samples, delivery.starts, started, ended)
            how = "cancelled" if isinstance(error, Cancelled | KeyboardInterrupt) else "failed"
            unfinished = f"{how} after {len(spoken)} of {len(script.passages)} passages"
            why = "the rest of the text is missing." if how == "cancelled" else str(error)
            notes = (*part.notes, f"{unfinished.capitalize()}: {why}")
            setattr(error, FINISHED, replace(part, notes=notes, unfinished=unfinished))
            raise
        samples = delivery.samples
        if not len(samples):
            raise PlainError(f"{self.info.title} {self.silent}; try another seed, or a text with more words.")
        return self._synthesis(script, spoken, pace, samples, delivery.starts, started, self._now())

    def _blamed(self, speaking: Generator[Uttered, None, Ended]) -> Generator[Uttered, None, Ended]:
        """``speaking``, whose unexpected errors are those of :attr:`source`; what listeners raise is not."""
        while True:
            with self.source.blamed():
                try:
                    uttered = next(speaking)
                except StopIteration as end:
                    return end.value
            yield uttered

    def _now(self) -> _Moment:
        return _Moment(self.clock(), processor_time())

    def _synthesis(
        self,
        script: AnyScript,
        spoken: Sequence[AnySpoken],
        pace: Pace,
        samples: np.ndarray,
        starts: tuple[float, ...],
        started: _Moment,
        ended: _Moment,
    ) -> Synthesis:
        rate = self.info.sample_rate
        own, others = ended.processor.since(started.processor)
        measured, notes = self._account(script, spoken, pace)
        measurements = replace(
            measured,
            seconds=ended.clock - started.clock,
            audio_seconds=len(samples) / rate,
            first_audio_seconds=pace.first_audio_seconds,
            text_seconds=script.seconds,
            device=self.info.device,
            # With a GPU, the processor only feeds it.
            cpu_seconds=own if self.info.device_type in ("", "cpu") else None,
            other_seconds=others,
            cores=ended.processor.cores,
        )
        trace = Trace(
            step_seconds=tuple(one.step_seconds for one in spoken),
            chunk_texts=tuple(passage.text for passage in script.passages[: len(spoken)]),
            chunk_seconds=tuple(one.samples / rate for one in spoken),
            mel=whole_mel(one.mel for one in spoken),
            phones=tuple(
                (name, round(start + first, 4), round(start + last, 4))
                for passage, start in zip(script.passages, starts, strict=False)
                for name, first, last in getattr(passage, "timed", ())
            ),
        )
        traced = self._traced(trace, spoken, starts)
        idle = script.plan.idle_notes({part for one in spoken for part in one.saved})
        return Synthesis(samples, rate, traced, (*script.notes, *notes, *idle), measurements=measurements)

    @staticmethod
    def _require_sound(plan: Plan, samples: np.ndarray) -> None:
        """:func:`require_numbers`, but name the plug-ins whose parts ran."""
        owners = sorted({part.owner for part in plan.parts.values() if part.owner})
        try:
            require_numbers(samples)
        except PlainError as error:
            if not owners:
                raise
            raise PlugInError(
                f"The synthesis gave values that are not numbers, under a part of {' and of '.join(owners)}; do "
                "without it, or mend it."
            ) from error
