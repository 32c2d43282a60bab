"""Commands with the loaded model: speaking, decoding tokens and unfinished canvases, internals. Other commands and the
common interface are in :mod:`paretone.session.jobs`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from paretone import views as computing
from paretone.checks.beforehand import cautions
from paretone.errors import SettingError
from paretone.measure.loudness import audible, require_finite
from paretone.measure.takes import make_take
from paretone.models.base import FLOW, Piece, SpeechModel, Synthesis, Utterance, finished_part, flow_model
from paretone.models.families.language import LanguageSpeech
from paretone.models.families.masked import MaskedSpeech
from paretone.models.families.together import Turn
from paretone.session import commands, events
from paretone.session.executor import (
    Executor,
    JobObserver,
    MeasuringObserver,
    RepeatingObserver,
    RunningJob,
    SynthesisObserver,
)
from paretone.setting.setting import Setting
from paretone.setting.take import Measurements, Take
from paretone.speaking import scripted
from paretone.studies.hooks import calibrated
from paretone.studies.study import Candidate, seeded
from paretone.techniques import resolve
from paretone.views.view import Task


def synthesise(command: commands.Synthesise, executor: Executor, job: RunningJob) -> events.TakeReady:
    """Speak; pieces are posted as soon as they are playable; after an error, the finished passages as a take."""
    observer = SynthesisObserver(job, executor.device)
    model, plan = _ready(command, executor, observer)
    observer.status("Synthesising …")
    observer.begin()
    script = model.script(command.text, command.voice, plan, observer)
    number = 0

    def play(piece: Piece) -> None:
        nonlocal number
        number += 1
        samples = audible(piece.samples, f"piece {number}", command.setting, model.info)
        observer.delivered(len(samples) / model.info.sample_rate)
        observer.post(events.AudioReady(command.job, samples, model.info.sample_rate, piece.passage, piece.trace))

    try:
        take = _take(model.speak(script, observer, play), command, executor, observer)
    except (Exception, KeyboardInterrupt) as error:
        finished = finished_part(error)
        if finished is not None:
            observer.post(events.TakeReady(command.job, _take(finished, command, executor, observer)))
        raise
    operations = flow_model(model, "Counting operations").operations(script) if model.info.family == FLOW else None
    return events.TakeReady(command.job, take, operations)


def spoken_with_others(
    command: commands.Synthesise, executor: Executor, job: RunningJob, done: Callable[[Synthesis | BaseException], None]
) -> Turn:
    """``command`` as one of several texts that are spoken at once; pieces are posted as by :func:`synthesise`, and
    ``done`` gets the end. Raises :class:`PlainError`."""
    observer = JobObserver(job)
    model, plan = _ready(command, executor, observer)

    def play(piece: Piece) -> None:
        samples = audible(piece.samples, "a piece", command.setting, model.info)
        observer.post(events.AudioReady(command.job, samples, model.info.sample_rate, piece.passage, piece.trace))

    return Turn(model.script(command.text, command.voice, plan, observer), done, observer, play)


def _ready(command: commands.Synthesise, executor: Executor, observer: JobObserver) -> tuple[SpeechModel, Any]:
    """The loaded model, made ready for the command, and its plan."""
    model = executor.model_for(command.setting)
    plan = resolve(model.info, command.setting, command.artefacts)
    for sentence in cautions(plan, model.info, command.voice):
        observer.caution(sentence)
    model.make_ready(plan, observer, command.voice)
    return model, plan


def _take(synthesis: Synthesis, command: commands.Synthesise, executor: Executor, observer: SynthesisObserver) -> Take:
    info = executor.model_for(command.setting).info
    audible(synthesis.samples, "the whole", command.setting, info)
    return make_take(
        synthesis,
        command.text,
        command.voice,
        command.setting,
        executor.machine,
        executor.device,
        info.all_weights,
        label=command.label,
        first_audio_seconds=observer.first_audio_seconds,
        peak_memory_bytes=observer.memory.peak_bytes,
    )


def time_again(command: commands.TimeAgain, executor: Executor, job: RunningJob) -> events.TimedAgain:
    """Speak several times without playback, for timing. After cancellation or failure, the finished runs count."""
    observer = RepeatingObserver(job, command.times)
    model, plan = _ready(command, executor, observer)
    observer.status(f"Timing again, {command.times} times …")
    runs: list[Measurements] = []
    try:
        while observer.done < command.times:
            runs.append(model.speak(model.script(command.text, command.voice, plan, observer), observer).measurements)
            observer.done += 1
    except (Exception, KeyboardInterrupt):
        if runs:
            observer.post(events.TimedAgain(command.job, command.take, tuple(runs)))
        raise
    return events.TimedAgain(command.job, command.take, tuple(runs))


def make_take_for_later(command: commands.MakeTake, executor: Executor, job: RunningJob) -> events.TakeMade:
    """Speak without playback; a missing artefact is prepared first."""
    observer = SynthesisObserver(job, executor.device, live=False)
    candidate = Candidate(command.setting, origin="")
    if lacking := candidate.unprepared:
        model, spoken = executor.model_for(command.setting), [Utterance(command.text, command.voice)]
        artefact = calibrated(lacking, model, spoken, command.setting, observer)
        setting = seeded(candidate, command.setting.seed, artefact.fingerprint)
        command = replace(command, setting=setting, artefacts=(*command.artefacts, artefact))
    model, plan = _ready(command, executor, observer)
    observer.status("Making a take …")
    synthesis = model.speak(model.script(command.text, command.voice, plan, observer), observer)
    observer.check()
    return events.TakeMade(command.job, _take(synthesis, command, executor, observer), command.artefacts)


def decode_partial(command: commands.DecodePartial, executor: Executor, job: RunningJob) -> events.PartialDecoded:
    observer = JobObserver(job)
    model = executor.model_for(command.setting)
    if not isinstance(model, MaskedSpeech):
        raise SettingError(f"{model.info.title} is not a masked model; load the model of the take.")
    plan = resolve(model.info, command.setting)
    samples = model.decode_partial(
        command.passage, command.step, command.voice, plan, observer.check, command.codebooks
    )
    observer.check()
    samples = audible(samples, f"the speech after step {command.step + 1}", command.setting, model.info)
    return events.PartialDecoded(command.job, samples, model.info.sample_rate, command.step)


def encode(command: commands.EncodePrompts, executor: Executor, job: RunningJob) -> events.PromptsEncoded:
    """Prepare voice and text, and list the prompts to continue."""
    model, check = _language_model(executor, command.setting), JobObserver(job).check
    prompts = model.official_prompts(command.text, command.voice, resolve(model.info, command.setting), check)
    return events.PromptsEncoded(command.job, prompts, model.official_ids)


def hear(command: commands.HearTokens, executor: Executor, job: RunningJob) -> events.TokensHeard:
    model, check = _language_model(executor, command.setting), JobObserver(job).check
    samples = model.heard(command.tokens, command.text, command.voice, resolve(model.info, command.setting), check)
    return events.TokensHeard(command.job, samples, model.info.sample_rate)


def _language_model(executor: Executor, setting: Setting) -> LanguageSpeech:
    """The loaded model. Raises :class:`SettingError` unless it is a language model."""
    model = executor.model_for(setting)
    if not isinstance(model, LanguageSpeech):
        raise SettingError(f"{model.info.title} decodes no tokens one by one; choose a speech language model.")
    return model


def capture_attention(
    command: commands.CaptureAttention, executor: Executor, job: RunningJob
) -> events.AttentionCaptured:
    observer = JobObserver(job)
    model = flow_model(executor.model_for(command.setting), "Capturing attention at a step")
    script = scripted(model, command.text, command.voice, command.setting, command.artefacts, observer)
    found = model.capture_attention(script, command.layer, command.step, observer)
    observer.check()
    require_finite(found.maps, f"the attention of layer {found.layer + 1}", command.setting, model.info)
    return events.AttentionCaptured(command.job, found)


def compute_view(command: commands.ComputeView, executor: Executor, job: RunningJob) -> events.ViewComputed:
    model = executor.model_for(command.setting)
    task = Task(model, command.utterance, command.setting, command.knobs, JobObserver(job), command.records)
    return events.ViewComputed(command.job, computing.compute_view(command.view, task))


def measure_roofline(command: commands.MeasureRoofline, executor: Executor, job: RunningJob) -> events.RooflineMeasured:
    # Imported on use: torch's profiler is slow to import.
    from paretone.measure.roofline import measuring

    model = executor.model_for(command.setting)
    target = measuring.RooflineTarget(model, command.utterance, command.setting, command.artefacts)
    trace = Path(command.trace) if command.trace else None
    observer = MeasuringObserver(job)
    report = measuring.measure_roofline(target, observer, command.again, command.rounds, trace, command.card)
    return events.RooflineMeasured(command.job, report)
