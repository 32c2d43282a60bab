"""The window with an engine in another process: used, lost, left."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QSettings
from PySide6.QtWidgets import QMenu, QMessageBox
from pytestqt.qtbot import QtBot

pytest.importorskip("msgspec", reason="msgspec comes with the extra serve")

from paretone.remote import ssh
from paretone.session.events import Event, PreparationReport, Prepared
from paretone.techniques.ditreducio.record import Trial
from paretone_app.engines.dialogs import HostDialog, HostFolder
from paretone_app.engines.presenter import EnginesPresenter
from paretone_app.features.attention.presenter import AttentionPresenter
from paretone_app.features.roofline.presenter import RooflinePresenter
from paretone_app.state.jobs import Outcome
from tests.app.conftest import SMALL, MakeWindow, ready
from tests.engine.models.megatts3.small_release import write_voice
from tests.engine.remote.elsewhere import Host, Local, Relay
from tests.engine.training.toy_model import toy_model

PARTS = f"{SMALL} engines"


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    made = Host(tmp_path / "host", first="import sys; sys.modules['pocketsphinx'] = None\n")
    yield made
    made.kill()


@pytest.fixture
def relay(host: Host, monkeypatch: pytest.MonkeyPatch) -> Iterator[Relay]:
    """The way to the host: ``tests/engine/remote/test_ssh.py`` has the one by ssh."""
    made = Relay(host.port)
    monkeypatch.setattr(ssh, "SshLink", lambda target: Local(made.port, host.token, target.target))
    yield made
    made.close()


def choose(dialog: HostFolder, folder: Path, qtbot: QtBot) -> None:
    """Go to the folder around ``folder``, and choose it there."""
    qtbot.waitUntil(lambda: bool(dialog.path.text()))
    dialog.look(str(folder.parent))
    qtbot.waitUntil(lambda: dialog.path.text() == str(folder.parent))
    names = [dialog.entries.item(row).text() for row in range(dialog.entries.count())]
    dialog.entries.setCurrentRow(names.index(f"{folder.name}/"))
    dialog.choose.click()


def test_a_host_is_added_used_lost_and_left(
    make_window: MakeWindow, relay: Relay, host: Host, qtbot: QtBot, tmp_path: Path
) -> None:
    QSettings(str(tmp_path / "window.ini"), QSettings.Format.IniFormat).setValue("engines/hosts", '["damaged"]')
    window = ready(make_window(parts=PARTS), qtbot)
    engines, machine, until = window.features.find(EnginesPresenter), window.state.machine, qtbot.waitUntil
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
    choose(HostFolder(window, "Checkpoint", "gpu1", machine.ask, chosen.append), host.data / "weights", qtbot)
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


def test_the_panels_ask_the_host_and_not_this_machine(
    make_window: MakeWindow, relay: Relay, host: Host, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trainings resume, models are chosen, downloaded and remembered, and studies run, by what the host has."""
    until = qtbot.waitUntil
    settings = QSettings(str(tmp_path / "window.ini"), QSettings.Format.IniFormat)
    settings.setValue("engines/hosts", json.dumps(["gpu1\tparetone serve\tpython3"]))
    window = ready(make_window(parts=f"{PARTS} training studies strategy attention roofline"), qtbot)
    engines, chosen = window.features.find(EnginesPresenter), window.state.selection
    training, setup = window.panels["training"], window.panels["setup"]
    assert not training.can["resume"].isEnabled()
    monkeypatch.setattr("paretone_app.features.training.presenter.why_no_training", lambda: "Not on this machine.")
    engines.use("gpu1")
    until(lambda: chosen.ready and not window.jobs.busy and "MegaTTS3" in (chosen.elsewhere or {}))
    assert "Not on this machine" not in window.features["training"].why_not()
    training.manifest.setText(str(tmp_path / "there.csv"))
    until(lambda: training.can["resume"].isEnabled() and training.can["start"].isEnabled())
    with qtbot.waitSignal(window.jobs.ended) as ended:
        training.resume_button.click()
    assert ended.args[1] is Outcome.FAILED and "to resume from; start afresh" in ended.args[2]

    until(lambda: bool(window.state.machine.lacking))
    window.action["new_study"].trigger()
    maker = window.features["studies"].maker
    missing = maker.judges["words"]
    assert not missing.isChecked() and not missing.isEnabled()
    assert missing.toolTip().startswith("On gpu1: Word errors"), "said beforehand"
    maker.reject()

    chosen.set_option("steps", 4)
    chosen.set_text("Milk.")
    window.features.find(AttentionPresenter).capture(1, 2)
    reports: list[Event] = []
    happened: list[Event] = []
    window.bridge.happened.connect(happened.append)
    window.bridge.reports.connect(reports.extend)
    until(lambda: not window.jobs.busy)
    assert all(one.text() for one in window.panels["attention"].titles[:2])
    window.state.editing.switch("ditreducio", True)
    window.action["calibrate"].trigger()
    until(lambda: window.panels["strategy"].table is not None and not window.jobs.busy)
    trials = [one.report for one in reports if isinstance(one, PreparationReport) and isinstance(one.report, Trial)]
    (calibrated,) = [one.result for one in happened if isinstance(one, Prepared)]
    assert tuple(trials) == calibrated.record.trials, "each as it came, and all"
    window.features.find(RooflinePresenter).measure("A")
    until(lambda: not window.jobs.busy)
    assert any(window.panels["roofline"].reports.values()), window.notices.history[-1]

    write_voice(host.data / "models" / "MegaTTS3" / "voices" / "some_noise.wav")
    chosen.consider_model("MegaTTS3")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    setup.model_choice.can["download"].trigger()
    box = window.findChild(QMessageBox)
    assert "download them to gpu1?" in box.informativeText()
    until(lambda: "Asking the server" not in box.informativeText())
    box.reject()
    toy_model(host.data / "toy")
    chosen.consider_model("F5TTS_v1_Base")
    setup.model_choice.can["choose_folder"].trigger()
    choose(window.findChild(HostFolder), host.data / "toy", qtbot)
    until(lambda: chosen.model_folder == str(host.data / "toy") or not window.jobs.busy)
    until(lambda: not window.jobs.busy)
    assert engines.engine.ask("voices", "MegaTTS3\n").result(30)[0][0] == "some_noise"
    there = str(tmp_path / "only-there")
    chosen.choose_model("F5TTS_v1_Base", there, "", "auto", None)
    remembered = chosen.remembered()
    chosen.recall(remembered)
    assert chosen.not_recalled is None and chosen.model_folder == there
    engines.use_this_machine()
    chosen.recall(remembered)
    assert "is gone" in chosen.not_recalled.why
    until(lambda: not window.jobs.busy)
