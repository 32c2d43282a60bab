"""Judging a take."""

from __future__ import annotations

from engine.measure.evaluation.judged_takes import judged_figures
from engine.session.commands import JudgeTake
from engine.session.events import TakeJudged
from engine.session.executor import Executor
from engine.session.observers import JobObserver, RunningJob


def judge_take(command: JudgeTake, executor: Executor, job: RunningJob) -> TakeJudged:
    """Ask the judges that are installed; their networks stay loaded."""
    check = JobObserver(job).check
    figures = judged_figures(command.samples, command.sample_rate, command.prompt, check)
    return TakeJudged(command.job, command.take, figures)
