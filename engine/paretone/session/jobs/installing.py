"""Installing optional packages."""

from __future__ import annotations

from paretone.extras import extra
from paretone.installing import install
from paretone.session.commands import InstallExtra
from paretone.session.events import ExtraInstalled, Progress
from paretone.session.executor import Executor
from paretone.session.observers import JobObserver, RunningJob


def install_extra(command: InstallExtra, executor: Executor, job: RunningJob) -> ExtraInstalled:
    """Install an extra into the running environment."""
    observer = JobObserver(job)

    def tell(phase: int, phases: int, line: str) -> None:
        # Without an estimate: how long one phase takes says nothing of the next.
        job.post(Progress(command.job, phase, phases, None, line))

    ready = install(extra(command.extra), tell, observer.check)
    return ExtraInstalled(command.job, command.extra, ready)
