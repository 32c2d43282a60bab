"""Judging a take."""

from __future__ import annotations

from paretone.measure.evaluation.judging import judged_figures
from paretone.session.commands import JudgeTake
from paretone.session.events import TakeJudged
from paretone.session.executor import Executor
from paretone.session.observers import JobObserver, RunningJob


def judge_take(command: JudgeTake, executor: Executor, job: RunningJob) -> TakeJudged:
    """Ask the judges that are installed; their networks stay loaded."""
    check = JobObserver(job).check
    figures = judged_figures(command.samples, command.sample_rate, command.prompt, check)
    return TakeJudged(command.job, command.take, figures)
