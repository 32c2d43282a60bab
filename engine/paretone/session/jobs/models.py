"""Loading and downloading models."""

from __future__ import annotations

import time
from pathlib import Path

from paretone.models.files.downloads import download
from paretone.session.commands import DownloadModel, LoadModel
from paretone.session.events import ModelDownloaded, ModelLoaded
from paretone.session.executor import Executor
from paretone.session.observers import JobObserver, RunningJob


def load_model(command: LoadModel, executor: Executor, job: RunningJob) -> ModelLoaded:
    """Load the model and let the executor have it."""
    started = time.perf_counter()
    info = executor.load_model(command, JobObserver(job))
    return ModelLoaded(command.job, info, time.perf_counter() - started)


def download_model(command: DownloadModel, executor: Executor, job: RunningJob) -> ModelDownloaded:
    """Fetch what of the checkpoint is not there yet."""
    observer = JobObserver(job)
    files = download(command.model, Path(command.folder), command.licence, observer.progress, observer.check)
    return ModelDownloaded(command.job, tuple(map(str, files)))
