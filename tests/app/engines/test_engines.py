"""The window with an engine in another process: used, lost, left."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QSettings
from PySide6.QtWidgets import QMenu
from pytestqt.qtbot import QtBot

pytest.importorskip("msgspec", reason="msgspec comes with the extra serve")

from paretone.remote import ssh
from paretone_app.engines.dialogs import HostDialog, HostFolder
from paretone_app.engines.presenter import EnginesPresenter
from paretone_app.shell.window import MainWindow
from tests.app.conftest import PATIENCE_MILLISECONDS, SMALL, ready
from tests.engine.remote.elsewhere import Host, Local, Relay

PARTS = f"{SMALL} engines"


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    made = Host(tmp_path / "host")
    yield made
    made.kill()


@pytest.fixture
def relay(host: Host, monkeypatch: pytest.MonkeyPatch) -> Iterator[Relay]:
    """The way to the host: ``tests/engine/remote/test_ssh.py`` has the one by ssh."""
    made = Relay(host.port)
    monkeypatch.setattr(ssh, "SshLink", lambda target: Local(made.port, host.token, target.target))
    yield made
    made.close()


def test_a_host_is_added_used_lost_and_left(
    make_window: Callable[..., MainWindow], relay: Relay, host: Host, qtbot: QtBot, tmp_path: Path
) -> None:
    QSettings(str(tmp_path / "window.ini"), QSettings.Format.IniFormat).setValue("engines/hosts", '["damaged"]')
    window = ready(make_window(parts=PARTS), qtbot)
    engines, machine = window.features.find(EnginesPresenter), window.state.machine

    def until(met: Callable[[], bool]) -> None:
        qtbot.waitUntil(met, timeout=PATIENCE_MILLISECONDS)

    menu = next(one for one in window.menuBar().findChildren(QMenu) if one.title() == "&Engine")
    assert window.action["this_machine"].isChecked() and not window.action["forget_host"].isEnabled()
    window.action["add_host"].trigger()
    dialog = window.findChild(HostDialog)
    assert not dialog.connect_button.isEnabled()
    dialog.host.setText("gpu1")
    dialog.connect_button.click()
    until(lambda: window.state.selection.ready and machine.round_trip is not None and not window.jobs.busy)
    entries = [one for one in menu.actions() if not one.isSeparator()]
    assert [one.text() for one in entries[:2]] == ["This &machine", "gpu1"] and entries[1].isChecked()
    assert window.header.device.text().startswith("gpu1 · CPU") and window.header.device.text().endswith(" ms")
    assert "one round trip" in window.header.device.toolTip()
    made: list[object] = []
    window.state.synthesis.take_added.connect(made.append)
    window.action.baseline.trigger()
    until(lambda: bool(made) and not window.jobs.busy)
    until(lambda: window.state.selection.elsewhere is not None and "MegaTTS3" in window.state.selection.elsewhere)

    chosen: list[Path] = []
    (host.data / "weights").mkdir()
    folder = HostFolder(window, "Checkpoint", "gpu1", machine.ask, chosen.append)
    until(lambda: bool(folder.path.text()))
    folder.look(str(host.data))
    until(lambda: folder.path.text() == str(host.data))
    row = next(row for row in range(folder.entries.count()) if folder.entries.item(row).text() == "weights/")
    folder.entries.setCurrentRow(row)
    folder.choose.click()
    assert chosen == [host.data / "weights"]

    relay.refusing = True
    relay.reset()
    until(lambda: "no line" in window.header.device.text())
    assert "The line broke" in window.notices.history[-1].sentence
    relay.refusing = False
    until(lambda: machine.connected)
    until(lambda: "is back" in window.status.text)

    host.process.kill()
    until(lambda: not machine.connected)
    engines.forget()
    until(lambda: window.state.selection.ready and not window.jobs.busy)
    assert window.header.device.text() == window.state.selection.info.device and not machine.host
    assert window.action["this_machine"].isChecked() and not entries[1].isVisible()
    assert json.loads(str(window.settings.value("engines/hosts"))) == []
