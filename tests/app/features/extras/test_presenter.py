"""Optional packages in the window: what is missing disables with the reason, and one click installs it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from paretone import extras
from paretone.extras import Extra
from paretone.session.commands import Cancel, Command, InstallExtra
from paretone.session.events import JobCancelled, JobFailed, Progress
from paretone_app.features.training.panel import TrainingPanel
from paretone_app.shell.window import MainWindow
from paretone_app.state.jobs import Job, Jobs, Kind, Outcome
from paretone_app.state.machine import Installing
from paretone_app.widgets.panel_parts import InstallOffer
from tests.app.conftest import SMALL
from tests.app.sharing import borrowed  # noqa: F401
from tests.tiny_package import MODULE, REQUIREMENT, tiny_package

TRAIN = Extra("train", "Training", (MODULE,))
MISSING = replace(TRAIN, modules=("nowhere_to_be_found",))
needs_pip = pytest.mark.skipif(not extras.installer(), reason="neither pip nor uv is installed")
PARTS = f"{SMALL} training extras"


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Training lacks a package, which pip finds without the network."""
    monkeypatch.setattr(extras, "EXTRAS", (TRAIN,))
    monkeypatch.setattr(extras, "requirements", lambda name: (REQUIREMENT,))
    with tiny_package(tmp_path / "tiny", monkeypatch):
        yield


@needs_pip
def test_one_click_installs_what_lacks(window: MainWindow, tiny: None, qtbot: QtBot, tmp_path: Path) -> None:
    panel: TrainingPanel = window.panels["training"]
    panel.work.setText(str(tmp_path / "work"))
    window.features["training"].refresh()
    assert not panel.start_button.isEnabled()
    assert "pip install 'paretone[train]'" in panel.start_button.toolTip()
    assert panel.install.button.text() == f"Install {MODULE}" and panel.install.button.isEnabled()
    with qtbot.waitSignal(window.jobs.ended) as ended:
        qtbot.mouseClick(panel.install.button, Qt.MouseButton.LeftButton)
        assert panel.install.button.text() == "Cancel installing"
    assert ended.args[1:] == [Outcome.FINISHED, ""]
    qtbot.waitUntil(lambda: panel.start_button.isEnabled())
    assert panel.install.isHidden()
    assert window.notices.banner.text == "Installed: Training. It can be used now."
    window.notices.banner.clear()


def test_the_list_says_which_packages_are_there(window: MainWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    there = Extra("search", "Searches", ("json",))
    for place in ("paretone.extras.EXTRAS", "paretone_app.features.extras.EXTRAS"):
        monkeypatch.setattr(place, (there, MISSING))
    window.action["extras"].trigger()
    dialog = window.features["extras"].dialog
    offers = dialog.offers
    assert offers["search"].isHidden() and not offers["train"].isHidden()
    assert offers["train"].button.text() == "Install nowhere_to_be_found"
    dialog.reject()
    # What fails for lack of a package offers it.
    monkeypatch.setattr(extras, "why_no_installing", lambda: "")
    job = Job(1_000_000, Kind.EXPORT, InstallExtra(1_000_000, "train"))
    window.jobs.ended.emit(job, Outcome.FAILED, extras.NO_TRAINING)
    assert window.notices.banner.text == extras.NO_TRAINING
    assert [one.text().replace("&", "") for one in window.notices.banner.answers] == ["Install nowhere_to_be_found"]
    window.notices.banner.clear()


def test_the_button_installs_one_at_a_time_and_cancels(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "why_no_installing", lambda: "")
    monkeypatch.setattr(extras, "EXTRAS", (MISSING,))
    sent: list[Command] = []
    offer, jobs = InstallOffer(), Jobs(sent.append)
    qtbot.addWidget(offer)
    installing = Installing(jobs, offer)
    offer.follow(installing)
    offer.offer("Nothing is missing.")
    assert offer.isHidden()
    offer.offer(extras.NO_TRAINING)
    assert not offer.isHidden()
    qtbot.mouseClick(offer.button, Qt.MouseButton.LeftButton)
    assert sent == [InstallExtra(1, "train")]
    installing.show_progress(Progress(1, 1, 3, None, "Downloading one.whl (2 MB)"))
    assert offer.said.text() == "Downloading one.whl (2 MB)"
    qtbot.mouseClick(offer.button, Qt.MouseButton.LeftButton)
    assert sent[1] == Cancel(0, 1)
    jobs.handle(JobCancelled(1))
    assert offer.button.text() == "Install nowhere_to_be_found" and offer.said.text() == ""
    jobs.start(Kind.INSTALL, lambda job: InstallExtra(job, "other"))
    offer.offer(extras.NO_TRAINING)
    assert not offer.button.isEnabled() and "are being installed" in offer.button.toolTip()
    jobs.handle(JobCancelled(2))
    offer.offer(extras.NO_TRAINING)
    assert offer.button.isEnabled()
    qtbot.mouseClick(offer.button, Qt.MouseButton.LeftButton)
    jobs.handle(JobFailed(3, "It could not be installed."))
    assert offer.button.text() == "Install nowhere_to_be_found" and offer.button.isEnabled()
