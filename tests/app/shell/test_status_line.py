"""The status bar describes a job while it runs."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QMainWindow
from pytestqt.qtbot import QtBot

from paretone.session.commands import ShutDown
from paretone.session.events import EngineStatus, JobFinished, Progress
from paretone_app.shell.bars import StatusLine
from paretone_app.state.jobs import Jobs, Kind


@pytest.fixture
def jobs() -> Jobs:
    return Jobs(lambda command: None)


@pytest.fixture
def window(qtbot: QtBot) -> QMainWindow:
    made = QMainWindow()
    qtbot.addWidget(made)
    return made


@pytest.fixture
def status(window: QMainWindow, jobs: Jobs) -> StatusLine:
    return StatusLine(window, jobs)


def test_it_says_what_a_job_is_at_until_there_is_progress(status: StatusLine, jobs: Jobs) -> None:
    job = jobs.start(Kind.ACCELERATED, ShutDown)
    assert status.text == "Synthesising with techniques…"
    status.follow(EngineStatus(job.number, "Compiling …"))
    assert status.text == "Synthesising with techniques: Compiling …"
    status.show_progress(Progress(job.number, 0, 16, 12.0, ""))
    assert status.text == "Synthesising with techniques…", "it is no longer compiling"
    status.show_progress(Progress(job.number, 1, 16, 11.0, "Step 1 of 16"))
    status.show_progress(Progress(job.number, 2, 16, 10.0, ""))
    assert status.text == "Step 1 of 16"
    jobs.handle(JobFinished(job.number))
    assert status.text == "Synthesising with techniques: finished"


def test_what_belongs_to_no_running_job_is_passed_over(status: StatusLine, jobs: Jobs) -> None:
    job = jobs.start(Kind.BASELINE, ShutDown)
    status.follow(EngineStatus(job.number + 1, "Compiling …"))
    status.follow(EngineStatus(0, "Loading PyTorch…"))
    assert status.text == "Synthesising the baseline…"
    jobs.handle(JobFinished(job.number))
    status.follow(EngineStatus(job.number, "Compiling …"))
    assert status.text == "Synthesising the baseline: finished"
