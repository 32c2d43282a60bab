"""Speaking, and hearing a part of what was spoken."""

from __future__ import annotations

from paretone.errors import SettingError
from paretone.measure.audible import audible
from paretone.measure.takes import make_take
from paretone.models.base import (
    FLOW,
    Piece,
    SpeechModel,
    Synthesis,
    Utterance,
    finished_part,
    flow_model,
    run_to_completion,
)
from paretone.models.families.masked import MaskedSpeech
from paretone.models.silent_observer import ProgressingObserver
from paretone.session.commands import DecodePartial, MakeTake, Synthesise, TimeAgain
from paretone.session.events import AudioReady, PartialDecoded, TakeMade, TakeReady, TimedAgain
from paretone.session.executor import Executor
from paretone.session.observers import JobObserver, RepeatingObserver, RunningJob, SynthesisObserver
from paretone.setting.setting import Artefact, Setting
from paretone.setting.take import Measurements, Take
from paretone.studies.hooks import preparer
from paretone.studies.study import Candidate, seeded
from paretone.techniques import technique


def synthesise(command: Synthesise, executor: Executor, job: RunningJob) -> TakeReady:
    """Speak; each piece is posted as soon as it can be played. If that is cancelled or fails, the passages that were
    finished until then are posted as a take first."""
    observer = SynthesisObserver(job, executor.device)
    model = executor.model_for(command.setting)
    model.make_ready(command.setting, observer, command.voice)
    observer.status("Synthesising …")
    observer.begin()
    pieces = model.synthesise(command.text, command.voice, command.setting, command.artefacts, observer)
    number = 0

    def play(piece: Piece) -> None:
        nonlocal number
        number += 1
        samples = audible(piece.samples, f"piece {number}", command.setting, model.info)
        observer.delivered(len(samples) / model.info.sample_rate)
        observer.post(AudioReady(command.job, samples, model.info.sample_rate, piece.passage, piece.trace))

    def take_of(synthesis: Synthesis) -> Take:
        audible(synthesis.samples, "the whole", command.setting, model.info)
        return make_take(
            synthesis,
            command.text,
            command.voice,
            command.setting,
            executor.machine,
            executor.device,
            model.info.all_weights,
            label=command.label,
            first_audio_seconds=observer.first_audio_seconds,
            peak_memory_bytes=observer.memory.peak_bytes,
        )

    try:
        take = take_of(run_to_completion(pieces, play))
    except (Exception, KeyboardInterrupt) as error:
        finished = finished_part(error)
        if finished is not None:
            observer.post(TakeReady(command.job, take_of(finished)))
        raise
    operations = None
    if model.info.family == FLOW:
        flow = flow_model(model, "Counting operations")
        operations = flow.operations(command.text, command.voice, command.setting)
    return TakeReady(command.job, take, operations)


def time_again(command: TimeAgain, executor: Executor, job: RunningJob) -> TimedAgain:
    """Speak several times without being heard, for the times only. If that is cancelled or fails, the runs that were
    finished until then count."""
    observer = RepeatingObserver(job, command.times)
    model = executor.model_for(command.setting)
    model.make_ready(command.setting, observer, command.voice)
    observer.status(f"Timing again, {command.times} times …")
    runs: list[Measurements] = []
    try:
        while observer.done < command.times:
            speech = model.synthesise(command.text, command.voice, command.setting, command.artefacts, observer)
            runs.append(run_to_completion(speech).measurements)
            observer.done += 1
    except (Exception, KeyboardInterrupt):
        if runs:
            observer.post(TimedAgain(command.job, command.take, tuple(runs)))
        raise
    return TimedAgain(command.job, command.take, tuple(runs))


def make_take_for_later(command: MakeTake, executor: Executor, job: RunningJob) -> TakeMade:
    """Speak without being heard, under a setting whose artefact is prepared if it has none."""
    observer = SynthesisObserver(job, executor.device, live=False)
    model = executor.model_for(command.setting)
    setting, artefacts = _prepared(command, model, observer)
    model.make_ready(setting, observer, command.voice)
    observer.status("Making a take …")
    synthesis = run_to_completion(model.synthesise(command.text, command.voice, setting, artefacts, observer))
    observer.check()
    audible(synthesis.samples, "the whole", setting, model.info)
    take = make_take(
        synthesis,
        command.text,
        command.voice,
        setting,
        executor.machine,
        executor.device,
        model.info.all_weights,
        label=command.label,
        peak_memory_bytes=observer.memory.peak_bytes,
    )
    return TakeMade(command.job, take, artefacts)


def _prepared(
    command: MakeTake, model: SpeechModel, observer: SynthesisObserver
) -> tuple[Setting, tuple[Artefact, ...]]:
    """The setting with the artefact that it lacks, if it lacks one, and all its artefacts."""
    candidate = Candidate(command.setting, origin="")
    lacking = candidate.unprepared
    if not lacking:
        return command.setting, command.artefacts
    observer.status(f"Calibrating {technique(lacking).title} …")
    utterances = (Utterance(command.text, command.voice),)
    artefact = preparer(lacking)(model, utterances, command.setting, ProgressingObserver(observer))
    setting = seeded(candidate, command.setting.seed, artefact.fingerprint)
    return setting, (*command.artefacts, artefact)


def decode_partial(command: DecodePartial, executor: Executor, job: RunningJob) -> PartialDecoded:
    """Decode a passage as it was after a step."""
    observer = JobObserver(job)
    model = executor.model_for(command.setting)
    if not isinstance(model, MaskedSpeech):
        raise SettingError(f"{model.info.title} is not a masked model; load the model of the take.")
    samples = model.decode_partial(command.passage, command.step, command.voice, command.setting, observer.check)
    observer.check()
    samples = audible(samples, f"the speech after step {command.step + 1}", command.setting, model.info)
    return PartialDecoded(command.job, samples, model.info.sample_rate, command.step)
