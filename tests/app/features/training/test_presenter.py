"""The training presenter on the real engine: a manifest becomes weights, and what goes wrong is said in the panel."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from paretone.models.base import WeightSet
from paretone.session.commands import Prepare
from paretone.session.events import Prepared
from paretone.setting.knobs import Values
from paretone.techniques.guidance_free import FORM as GUIDANCE_FREE
from paretone.techniques.guidance_free import GuidanceFreeRequest
from paretone.training.requests import CHECKPOINT, Trained
from paretone_app.features.training.panel import TrainingPanel
from paretone_app.shell.window import MainWindow
from paretone_app.state.jobs import Kind, Outcome
from tests.app.conftest import PATIENCE_MILLISECONDS, SMALL
from tests.app.sharing import cancel_all
from tests.engine.training.toy_model import toy_manifest, toy_model
from tests.packages import needs
from tests.workload import workload

pytestmark = needs("accelerate")
SHORT = workload(0.1, 0.02)
"""Minutes of the processor: a dozen steps of the toy model."""
PARTS = f"{SMALL} training"


def filled_in(window: MainWindow, tmp_path: Path) -> TrainingPanel:
    """The panel, filled in for a training of seconds."""
    window.state.selection.model_folder = str(toy_model(tmp_path / "model"))
    window.features["training"].propose("guidance_free", weight=0.5)
    made = window.panels["training"]
    made.manifest.setText(str(toy_manifest(tmp_path)))
    # Less than the least that a person is offered.
    made.minutes.setDecimals(2)
    made.minutes.setMinimum(SHORT)
    made.minutes.setValue(SHORT)
    return made


@pytest.fixture
def panel(borrowed_window: MainWindow, tmp_path: Path) -> TrainingPanel:
    return filled_in(borrowed_window, tmp_path)


def press(window: MainWindow, button, qtbot: QtBot) -> tuple[Outcome, str]:
    qtbot.waitUntil(lambda: button.isEnabled() and not window.jobs.busy)
    with qtbot.waitSignal(window.jobs.ended, timeout=4 * PATIENCE_MILLISECONDS) as ended:
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert ended.args[0].kind is Kind.TRAIN
    return ended.args[1], ended.args[2]


def test_the_wanted_weight_is_filled_in_with_time_and_folder(panel: TrainingPanel, borrowed_window: MainWindow) -> None:
    borrowed_window.panels["setup"].techniques.training_wanted.emit("guidance_free", {"weight": 0.7})
    assert panel.knobs.editor("weight").value() == 0.7
    assert panel.minutes.value() == GUIDANCE_FREE.minutes(borrowed_window.state.selection.info)
    assert panel.work.text().endswith("f5-mini-w-0.70")
    assert borrowed_window.workspaces["training"].isAncestorOf(borrowed_window.focusWidget())
    for sentences, first in ((0, True), (2, False)):
        borrowed_window.features["training"].propose("average_velocity", sentences=sentences)
        assert ("first speaks 6,500" in panel.estimate.text(), bool(panel.remark.text())) == (first, not first)


def test_switching_a_technique_on_chooses_its_training(panel: TrainingPanel, borrowed_window: MainWindow) -> None:
    selection = borrowed_window.state.selection
    assert panel.training.name == "guidance_free"
    selection.switch("average_velocity", True)
    assert panel.training.name == "average_velocity"
    panel.choose("guidance_free")
    selection.set_knob("average_velocity", "evaluations", 3)
    assert panel.training.name == "guidance_free", "what was chosen by hand stays"
    selection.switch("average_velocity", False)
    selection.switch("average_velocity", True)
    assert panel.training.name == "average_velocity"
    borrowed_window.features["training"].propose("guidance_free")
    assert panel.training.name == "guidance_free"


@pytest.mark.timeout(300)
def test_weights_are_made_with_curves_and_said_to_be_ready(window: MainWindow, qtbot: QtBot, tmp_path: Path) -> None:
    panel = filled_in(window, tmp_path)
    panel.minutes.setValue(60)
    qtbot.mouseClick(panel.start_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: len(panel.curves.steps) > 2)
    with qtbot.waitSignal(window.jobs.ended) as ended:
        qtbot.mouseClick(panel.cancel_button, Qt.MouseButton.LeftButton)
    assert ended.args[1] is Outcome.CANCELLED and (Path(panel.work.text()) / CHECKPOINT).is_file()
    assert "Resume continues from the checkpoint" in panel.state.text() and not panel.start_button.isEnabled()
    reached = panel.curves.steps[-1]
    panel.minutes.setValue(SHORT)
    window.jobs.stop(True)
    window.jobs.restore([ended.args[0]])
    qtbot.mouseClick(panel.resume_button, Qt.MouseButton.LeftButton)
    (job,) = window.jobs.waiting
    assert not window.jobs.left, "the one of the last session would train the same once more"
    window.jobs.cancel(job)
    panel.choose("average_velocity")
    window.jobs.restore([job])
    with qtbot.waitSignal(window.jobs.ended, timeout=4 * PATIENCE_MILLISECONDS) as ended:
        window.jobs.go_on()  # As one of the last session.
    assert ended.args[1] is Outcome.FINISHED, ended.args[2]
    assert "The weights are in" in panel.state.text()
    steps = panel.curves.steps
    assert len(steps) > 1 and steps[-1] >= reached and steps == sorted(steps)
    assert panel.curves.found["learnt"] and "w = 0.50 are ready" in window.notices.banner.text
    assert window.state.selection.knobs("guidance_free")["weight"] == 0.5 and not panel.cancel_button.isEnabled()


def test_weights_that_were_just_made_are_the_ones_that_speak(window: MainWindow, tmp_path: Path) -> None:
    filled_in(window, tmp_path)
    shipped, made = (WeightSet(name, name * 64, 0.5, "model-guidance") for name in "12")
    info = replace(window.state.selection.info, weight_sets=(shipped, made))
    window.state.selection.switch("guidance_free", True)
    request = GuidanceFreeRequest(model="f5-mini", manifest="none.csv", work="none", weight=0.5)
    job = window.jobs.start(Kind.TRAIN, lambda number: Prepare(number, "guidance_free", request))
    event = Prepared(job.number, "guidance_free", Trained("2", "It learnt.", Values(weight=0.5), 9, 1.0, {}), info)
    window.state.follow(event)
    window.features["training"].follow(event)
    assert window.state.selection.setting.technique("guidance_free").artefact == made.fingerprint
    cancel_all(window.jobs)


def test_a_missing_recording_names_its_line(panel: TrainingPanel, borrowed_window: MainWindow, qtbot: QtBot) -> None:
    manifest = Path(panel.manifest.text())
    lines = manifest.read_text(encoding="utf-8").splitlines()
    (manifest.parent / lines[2].split(",")[0]).unlink()
    assert press(borrowed_window, panel.start_button, qtbot)[0] is Outcome.FAILED and "line 3" in panel.state.text()
    shutil.rmtree(manifest.parent)
    assert press(borrowed_window, panel.start_button, qtbot)[0] is Outcome.FAILED
    assert "There is no manifest" in panel.state.text()
