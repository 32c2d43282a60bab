"""A newcomer's way to a host, as ``resources/docs/gpu-server.md`` says it: a real ``sshd``, installing, cancelling."""

import os
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMenu
from pytestqt.qtbot import QtBot

pytest.importorskip("msgspec", reason="msgspec comes with the extra serve")

from paretone import __version__
from paretone.paths import CHECKOUT
from paretone.remote import ssh
from paretone_app.engines.dialogs import HostDialog, InstallDialog
from paretone_app.engines.presenter import EnginesPresenter
from tests.app.conftest import SMALL, MakeWindow, ready
from tests.engine.remote.test_ssh import Sshd, engines, pytestmark, small_wheel

__all__ = ["pytestmark"]


@pytest.fixture
def sshd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sshd]:
    """A host named ``gpu`` in the user's configuration of ssh."""
    made, ssh_here = Sshd(tmp_path / "sshd"), shutil.which("ssh")
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {ssh_here} -F {made.folder}/config "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    yield made
    made.close()


def test_from_add_host_to_the_first_sentence(
    make_window: MakeWindow, sshd: Sshd, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What is installed runs this checkout: the real wheel takes minutes to make (tests/engine/remote/test_ssh.py).
    path = [str(CHECKOUT), *sys.path]
    run = f"import sys; sys.modules['PySide6'] = None; sys.path[:0] = {path!r}; from paretone.cli import main; main()"
    with zipfile.ZipFile(small_wheel(tmp_path, __version__, run)) as wheel:
        wheel.extractall(tmp_path / "installed")
    monkeypatch.syspath_prepend(tmp_path / "installed")
    monkeypatch.setattr(ssh, "PROJECT", tmp_path / "none")  # What is installed is packed again.
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    window = ready(make_window(parts=f"{SMALL} engines"), qtbot)
    notices, machine = window.notices, window.state.machine

    def until(met: Callable[[], object]) -> None:
        qtbot.waitUntil(lambda: bool(met()))

    def answer(choice: str) -> None:
        until(lambda: any(one.text().replace("&", "") == choice for one in notices.banner.answers))
        next(one for one in notices.banner.answers if one.text().replace("&", "") == choice).click()

    window.action["add_host"].trigger()
    dialog = window.findChild(HostDialog)
    QTest.keyClicks(dialog.host, "gpu")
    dialog.start.setText(f"env PARETONE_DATA={sshd.home}/data paretone serve --grace 1")
    dialog.python.setText(sys.executable)
    QTest.keyClick(dialog.host, Qt.Key.Key_Return)
    until(lambda: "Have Paretone installed there" in notices.banner.text)
    answer("Install there")
    shown = window.findChild(InstallDialog)
    until(lambda: shown.progress.value() > 10 and shown.step.text())
    assert shown.progress.accessibleName() == "Installing on gpu"
    QTest.keyClick(shown, Qt.Key.Key_Escape)
    until(lambda: window.status.text == "Nothing was installed on gpu.")
    assert not window.findChildren(InstallDialog) and engines(sshd) == []

    menu = next(one for one in window.menuBar().findChildren(QMenu) if one.title() == "&Engine")
    next(one for one in menu.actions() if one.text() == "gpu").trigger()
    answer("Install there")
    until(lambda: machine.connected and window.state.selection.ready and not window.jobs.busy)
    start = window.features.find(EnginesPresenter).known["gpu"][0]
    assert start == f"env PARETONE_DATA={sshd.home}/data .local/share/paretone/engine/bin/paretone serve --grace 1"
    takes: list[object] = []
    window.state.synthesis.take_added.connect(takes.append)
    window.action.baseline.trigger()
    until(lambda: takes and not window.jobs.busy)
    until(lambda: machine.round_trip is not None)
    assert window.header.device.text().startswith("gpu · CPU") and window.header.device.text().endswith(" ms")
    if folder := os.environ.get("PARETONE_PICTURES"):
        window.grab().save(f"{folder}/engine-elsewhere.png")
