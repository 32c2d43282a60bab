"""Speaking, and hearing a part of what was spoken."""

from __future__ import annotations

import contextlib

from engine.errors import SettingError
from engine.measure.audible import audible
from engine.measure.takes import make_take
from engine.models.base import FLOW, Synthesis, flow_model
from engine.models.families.masked import MaskedSpeech
from engine.session.commands import DecodePartial, Synthesise
from engine.session.events import AudioReady, PartialDecoded, TakeReady
from engine.session.executor import Executor
from engine.session.observers import JobObserver, RunningJob, SynthesisObserver


def synthesise(command: Synthesise, executor: Executor, job: RunningJob) -> TakeReady:
    """Speak; each piece is posted as soon as it can be played."""
    observer = SynthesisObserver(job, executor.device)
    model = executor.model_for(command.setting)
    model.make_ready(command.setting, observer, command.voice)
    observer.status("Synthesising …")
    observer.begin()
    pieces = model.synthesise(command.text, command.voice, command.setting, command.artefacts, observer)
    synthesis: Synthesis | None = None
    number = 0
    with contextlib.closing(pieces):
        while synthesis is None:
            try:
                piece = next(pieces)
            except StopIteration as end:
                synthesis = end.value
                continue
            observer.check()
            number += 1
            samples = audible(piece.samples, f"piece {number}", command.setting, model.info)
            observer.delivered(len(samples) / model.info.sample_rate)
            observer.post(AudioReady(command.job, samples, model.info.sample_rate, piece.passage, piece.trace))
    observer.check()
    audible(synthesis.samples, "the whole", command.setting, model.info)
    take = make_take(
        synthesis,
        command.text,
        command.voice,
        command.setting,
        executor.machine,
        executor.device,
        model.info.fingerprint,
        label=command.label,
        first_audio_seconds=observer.first_audio_seconds,
        peak_memory_bytes=observer.memory.peak_bytes,
    )
    operations = None
    if model.info.family == FLOW:
        flow = flow_model(model, "Counting operations")
        operations = flow.operations(command.text, command.voice, command.setting)
    return TakeReady(command.job, take, operations)


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
