"""Training CFG-free weights as a job: see :class:`engine.techniques.base.Job`."""

from __future__ import annotations

from pathlib import Path

from engine.setting.knobs import Values
from engine.techniques.base import JobTask
from engine.techniques.guidance_free.fine_tuning import FineTuning, fine_tune
from engine.techniques.guidance_free.recipe import GuidanceFreeOptions, equivalent_guidance
from engine.training.reporting import Reporting, manner_of, run_of
from engine.training.requests import Trained


def train(task: JobTask) -> Trained:
    """Do a :class:`engine.techniques.guidance_free.requests.GuidanceFreeRequest`."""
    request = task.request
    job = FineTuning(
        model=request.model,
        manifest=Path(request.manifest) if request.manifest else None,
        options=GuidanceFreeOptions(
            request.weight,
            request.method,
            matrix_rate=request.matrix_rate,
            frames=request.frames,
            weight_warm_up=request.weight_warm_up,
            latest=request.latest,
            average_difference=request.average_difference,
            seed=request.seed,
            **manner_of(request),
        ),
        learning_rate=request.learning_rate,
        folder=request.folder,
        variant=request.variant,
        **run_of(request),
    )
    tuned = fine_tune(job, Reporting(task.observer))
    strength = equivalent_guidance(request.weight)
    summary = f"w = {request.weight:.2f} stands for guidance {strength:.2f}"
    if tuned.is_first:  # The others have validated nothing.
        summary += f"; one branch has taken on {tuned.validation['learnt']:.0%} of it."
    figures = Values(weight=request.weight, equivalent_guidance=strength, method=request.method)
    return Trained(
        str(tuned.checkpoint), summary, figures, tuned.steps, tuned.seconds, tuned.validation, tuned.is_first
    )
