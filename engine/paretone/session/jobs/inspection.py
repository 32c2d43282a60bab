"""Looking inside a model: attention, views, rooflines."""

from __future__ import annotations

from pathlib import Path

from paretone import views
from paretone.measure.signal import require_finite
from paretone.models.base import flow_model
from paretone.session.commands import CaptureAttention, ComputeView, MeasureRoofline
from paretone.session.events import AttentionCaptured, RooflineMeasured, ViewComputed
from paretone.session.executor import Executor
from paretone.session.observers import JobObserver, MeasuringObserver, RunningJob
from paretone.views.view import Task


def capture_attention(command: CaptureAttention, executor: Executor, job: RunningJob) -> AttentionCaptured:
    """Run up to a step and keep the attention of a layer there."""
    observer = JobObserver(job)
    model = flow_model(executor.model_for(command.setting), "Capturing attention at a step")
    found = model.capture_attention(
        command.text,
        command.voice,
        command.setting,
        command.artefacts,
        command.layer,
        command.step,
        observer,
    )
    observer.check()
    require_finite(found.maps, f"the attention of layer {found.layer + 1}", command.setting, model.info)
    return AttentionCaptured(command.job, found)


def compute_view(command: ComputeView, executor: Executor, job: RunningJob) -> ViewComputed:
    """Compute a view's figure."""
    model = executor.model_for(command.setting)
    task = Task(model, command.utterance, command.setting, command.knobs, JobObserver(job), command.records)
    return ViewComputed(command.job, views.compute_view(command.view, task))


def measure_roofline(command: MeasureRoofline, executor: Executor, job: RunningJob) -> RooflineMeasured:
    """Measure every component against the machine's ceilings."""
    # Imported on use: torch's profiler takes its time.
    from paretone.measure.roofline import measuring

    model = executor.model_for(command.setting)
    target = measuring.RooflineTarget(model, command.utterance, command.setting, command.artefacts)
    trace = Path(command.trace) if command.trace else None
    observer = MeasuringObserver(job)
    report = measuring.measure_roofline(target, observer, command.again, command.rounds, trace)
    return RooflineMeasured(command.job, report)
