"""Doing a study's tasks with a loaded model. The only module of studies that imports torch."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from paretone import device
from paretone.audio.spectrogram import drawn_or_heard
from paretone.checks.speech import seams_of
from paretone.errors import Cancelled, PlainError, SettingError, is_out_of_memory, sentence
from paretone.measure.evaluation.judges import Judge, Verdict, heard, judge_named
from paretone.measure.evaluation.judging import reference_speech
from paretone.measure.fidelity import with_difference
from paretone.measure.machine import describe
from paretone.measure.memory import PeakMemory
from paretone.measure.processor_time import clock_name
from paretone.measure.takes import make_take
from paretone.measure.timing import stopwatch
from paretone.models.base import SpeechModel, Synthesis
from paretone.models.families.together import Turn, speak_together
from paretone.observer import Observer, Passing
from paretone.setting.plan import Plan
from paretone.setting.setting import Setting
from paretone.setting.take import Trace
from paretone.studies.evaluation_sets import StudySentence
from paretone.studies.hooks import calibrated
from paretone.studies.study import (
    Equipment,
    Failed,
    Made,
    MeasureReference,
    Outcome,
    Prepare,
    Prepared,
    ReferenceMeasured,
    Speak,
    Task,
    take_id,
)
from paretone.techniques import resolve
from paretone.techniques.trained import with_named_weights


class TaskRunner:
    """A model and judges that do tasks, one at a time. ``load`` loads models; ``model`` is an already loaded one that
    may be used. Warm-up, calibration and judging never count in a take's own time."""

    def __init__(
        self, equipment: Equipment, load: Callable[..., SpeechModel], model: SpeechModel | None = None
    ) -> None:
        self._equipment, self._load, self._model = equipment, load, model
        self._judges: list[Judge] | None = None
        self._warm: set[tuple[str, str]] = set()
        self._preparers: dict[str, Callable[..., Any]] = {}
        self._device = str(device.choose(equipment.device))
        self._machine = describe().line

    def equip(self, observer: Observer) -> SpeechModel:
        """Load the model and the judges if necessary. Raises :class:`PlainError`."""
        wanted = self._equipment
        if self._model is None:
            observer.status(f"Loading {wanted.model}")
            self._model = self._load(
                wanted.model,
                folder=wanted.folder,
                variant=wanted.variant,
                device=self._device,
                status=observer.status,
                check=observer.check,
                **({"vocoder": wanted.vocoder} if wanted.vocoder else {}),
            )
            self._machine = describe().line
        self._ready_judges()
        return self._model

    def _ready_judges(self) -> list[Judge]:
        if self._judges is None:
            wanted = self._equipment
            self._judges = [judge_named(name).ready(wanted.texts, self._device) for name in wanted.judges]
        return self._judges

    def carry_out(self, task: Task, observer: Observer) -> Outcome:
        """Do ``task`` and report calibration progress to ``observer``; a failure of the task is returned as
        :class:`Failed`. Raises :class:`Cancelled`, and :class:`PlainError` if model or judges cannot be loaded."""
        model = self.equip(observer)
        started = time.perf_counter()
        try:
            match task:
                case Prepare():
                    quiet = Passing(observer, "caution", "progress")
                    setting = with_named_weights(task.setting, model.info)
                    artefact = calibrated(task.technique, model, task.utterances, setting, quiet, self._preparers)
                    return Prepared(task, artefact, time.perf_counter() - started)
                case MeasureReference():
                    return self._refer(task, started)
                case Speak():
                    return self._speak(model, task, observer, started)
        except Cancelled:
            raise
        except Exception as error:
            return self._failed(task, error, started)

    def _failed(self, task: Task, error: Exception, started: float) -> Failed:
        text = sentence(error, "making a take of a study", self._device)
        whole_setting = isinstance(error, PlainError) and not is_out_of_memory(error) and isinstance(task, Prepare)
        return Failed(task, text, time.perf_counter() - started, whole_setting)

    # --- Tasks --------------------------------------------------------------------------------------------------------
    def _refer(self, task: MeasureReference, started: float) -> ReferenceMeasured:
        spoken = task.spoken
        try:
            samples, rate = reference_speech(spoken.text, spoken.voice, spoken.reference)
        except PlainError as error:
            return ReferenceMeasured(task, (), time.perf_counter() - started, str(error))
        return ReferenceMeasured(task, self.hear(spoken, samples, rate), time.perf_counter() - started)

    def _speak(self, model: SpeechModel, task: Speak, observer: Observer, started: float) -> Made | Failed:
        spoken, quiet = task.spoken, Passing(observer, "caution")
        try:
            setting, plan = self._planned(model, task)
        except PlainError as error:
            return Failed(task, str(error), 0.0, whole_setting=True)

        def said() -> Synthesis:
            return model.speak(model.script(spoken.text, spoken.voice, plan, quiet), quiet)

        # Some artefacts depend on the voice.
        warmed = task.cell.setting, spoken.voice.id
        if warmed not in self._warm:
            model.make_ready(plan, quiet, spoken.voice)
            said()
            self._warm.add(warmed)
        memory = PeakMemory(self._device)
        with stopwatch(self._device) as watch:
            synthesis = said()
        return self._made(task, setting, synthesis, started, watch.seconds, memory.peak_bytes)

    def carry_out_together(self, tasks: Sequence[Task], observer: Observer, found: dict[int, Outcome]) -> None:
        """As :meth:`carry_out` each of ``tasks``, with all takes among them spoken at once and not timed. ``found``
        gets the outcomes by place as they come, so that an interruption leaves those that are finished."""
        model, started = self.equip(observer), time.perf_counter()
        turns: list[Turn] = []
        quiet = Passing(observer, "caution")

        def ended(place: int, task: Speak, setting: Setting, result: Synthesis | BaseException) -> None:
            try:
                if isinstance(result, BaseException):
                    raise result
                made = self._made(task, setting, result, started)
                if isinstance(made, Made):
                    made = replace(made, busy_seconds=made.busy_seconds / len(turns))
                found[place] = made
            except Cancelled:
                pass
            except Exception as error:
                found[place] = self._failed(task, error, started)

        for place, task in enumerate(tasks):
            if not isinstance(task, Speak):
                found[place] = self.carry_out(task, observer)
                continue
            spoken = task.spoken
            try:
                setting, plan = self._planned(model, task)
            except PlainError as error:
                found[place] = Failed(task, str(error), 0.0, whole_setting=True)
                continue
            try:
                model.make_ready(plan, quiet, spoken.voice)
                script = model.script(spoken.text, spoken.voice, plan, quiet)
                turns.append(Turn(script, partial(ended, place, task, setting), quiet))
            except Cancelled:
                raise
            except Exception as error:
                found[place] = self._failed(task, error, started)
        for paced, most in (False, max(len(turns), 1)), (True, 1):
            waiting = iter([one for one in turns if one.script.paced == paced])
            speak_together(model, partial(next, waiting, None), most)
        observer.check()

    def _planned(self, model: SpeechModel, task: Speak) -> tuple[Setting, Plan]:
        """Raises :class:`PlainError` for a setting that cannot be run."""
        setting = with_named_weights(task.setting, model.info)
        return setting, resolve(model.info, task.spoken.instructed(setting), task.artefacts)

    def _made(
        self,
        task: Speak,
        setting: Setting,
        synthesis: Synthesis,
        started: float,
        clock_seconds: float = 0.0,
        peak_bytes: int = 0,
    ) -> Made | Failed:
        """``clock_seconds`` of 0: it was not timed."""
        spoken = task.spoken
        if not np.isfinite(synthesis.samples).all():
            return Failed(task, "The model produced invalid numbers (NaN).", time.perf_counter() - started)
        first = task.cell.round == 0
        assert self._model is not None
        take = make_take(
            synthesis,
            spoken.text,
            spoken.voice,
            setting,
            self._machine,
            self._device,
            self._model.info.all_weights,
            name=take_id(task.cell),
            peak_memory_bytes=peak_bytes,
            listen=first,
        )
        if not clock_seconds:
            take = replace(take, measurements=take.measurements.untimed)
        verdicts: tuple[Verdict, ...] = ()
        seams = seams_of(take)
        if first:
            verdicts = self.hear(spoken, take.samples, take.sample_rate, seams)
            mel = drawn_or_heard(synthesis.trace.mel, take.samples, take.sample_rate)
            take = replace(take, trace=Trace(mel=mel, decoding=synthesis.trace.decoding))
            if task.baseline is not None:
                with suppress(SettingError):
                    this = mel, (take.samples, take.sample_rate)
                    distance, metrics = with_difference(take.metrics, task.baseline, this)
                    take = replace(take, log_mel_distance=distance, metrics=metrics)
        else:
            take = replace(take, samples=take.samples[:0], trace=Trace())
        seconds = time.perf_counter() - started
        # The requester has the baseline.
        task = replace(task, baseline=None)
        clock = clock_name(self._device) if clock_seconds else ""
        return Made(task, take, clock_seconds, clock, seconds, verdicts, seams)

    def hear(
        self, spoken: StudySentence, samples: np.ndarray, rate: int, seams: Sequence[float] = ()
    ) -> tuple[Verdict, ...]:
        given = spoken.text, spoken.voice, samples, rate
        return tuple(heard(one, *given, seams) for one in self._ready_judges())
