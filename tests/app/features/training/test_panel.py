"""The Training panel: what is missing is said, what is filled in is asked for, and how it goes is shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QPoint, Qt
from pytestqt.qtbot import QtBot

from paretone.setting.knobs import NO_VALUES, Values
from paretone.techniques.guidance_free import FORM as GUIDANCE_FREE
from paretone.techniques.spade import FORM as STUDENT
from paretone.techniques.speculative import FORM as DRAFT
from paretone.training import session
from paretone.training.forms import TrainingPlan
from paretone.training.requests import Trained, TrainingProgress
from paretone_app.features.training.panel import CHECKPOINT, TrainingActions, TrainingPanel
from paretone_app.shell.colours import LIGHT
from tests.app.acting import acts_of


@pytest.fixture
def panel(qtbot: QtBot) -> TrainingPanel:
    made = TrainingPanel(LIGHT, acts_of(TrainingActions))
    qtbot.addWidget(made)
    made.show()
    return made


def test_it_looks_for_what_a_run_leaves() -> None:
    assert CHECKPOINT == session.CHECKPOINT


def test_what_is_missing_is_said_before_anything_can_be_started(panel: TrainingPanel, tmp_path: Path) -> None:
    assert "Choose a manifest" in panel.state
    panel.manifest.setText("speech.csv")
    assert "Choose a folder" in panel.state
    assert not panel.start_button.isEnabled()
    panel.work.setText(str(tmp_path))
    assert panel.state == ""
    assert panel.start_button.isEnabled()
    assert not panel.resume_button.isEnabled()
    panel.can.start.set_reason("The model is not loaded yet.")
    assert panel.state == "The model is not loaded yet."
    assert not panel.start_button.isEnabled()


def test_what_is_filled_in_is_asked_for(panel: TrainingPanel, qtbot: QtBot, tmp_path: Path) -> None:
    panel.choose(GUIDANCE_FREE.name, weight=0.8)
    panel.propose(40, str(tmp_path))
    panel.manifest.setText(" speech.csv ")
    assert "4.00" in panel.remark.text()
    qtbot.keyClick(panel.knobs.editor("method"), Qt.Key.Key_Down)
    with qtbot.waitSignal(panel.can.start.triggered):
        qtbot.keyClick(panel.start_button, Qt.Key.Key_Space)
    assert panel.plan(resume=False) == TrainingPlan(
        "guidance_free",
        "speech.csv",
        str(tmp_path),
        40,
        False,
        False,
        Values(weight=0.8, method="distillation", sentences=0),
    )


def test_a_model_may_learn_from_what_it_says_itself(panel: TrainingPanel, tmp_path: Path) -> None:
    panel.work.setText(str(tmp_path))
    assert "or have the model say sentences" in panel.state and not panel.start_button.isEnabled()
    panel.fit({"sentences": 30})
    assert panel.state == "" and panel.start_button.isEnabled()
    assert "The model first says 30 sentences in each voice itself." in panel.remark.text()


def test_an_earlier_run_can_only_be_gone_on_with(panel: TrainingPanel, qtbot: QtBot, tmp_path: Path) -> None:
    (tmp_path / CHECKPOINT).write_bytes(b"")
    panel.manifest.setText("speech.csv")
    panel.work.setText(str(tmp_path))
    assert not panel.start_button.isEnabled()
    assert "earlier run" in panel.state
    with qtbot.waitSignal(panel.can.resume.triggered):
        qtbot.mouseClick(panel.resume_button, Qt.MouseButton.LeftButton)


def test_how_it_goes_and_what_came_of_it(panel: TrainingPanel) -> None:
    panel.begin(resume=False)
    assert not panel.manifest.isEnabled()
    panel.show_progress(TrainingProgress(7, 0.25, 10.0, 30.0, {"loss": 0.5}, {}))
    assert panel.progress.value() == 250
    assert "Step 7: 25 %, 30 s left" in panel.progress.text()
    panel.show_progress(TrainingProgress(7, 0.25, 10.0, 30.0, {}, {"learnt": 0.4, "gap": 0.6}))
    assert "40 %" in panel.state
    assert (panel.curves.steps, panel.curves.found["learnt"]) == ([7], [0.4])
    summary = "One branch has learned 90 % of the guidance."
    panel.show_result(Trained("w.safetensors", summary, NO_VALUES, 9, 40.0, {"learnt": 0.9}))
    panel.end()
    assert "90 %" in panel.state
    assert "w.safetensors" in panel.state
    assert panel.manifest.isEnabled()


def test_while_it_prepares_nothing_invites_to_start_and_no_control_moves(panel: TrainingPanel, qtbot: QtBot) -> None:
    panel.resize(900, 720)
    panel.set_estimate("About seven minutes.")
    panel.manifest.setText("speech.csv")
    controls = panel.manifest, panel.minutes, panel.start_button, panel.cancel_button, panel.half

    def places() -> list[tuple[int, int]]:
        QCoreApplication.sendPostedEvents()
        return [(one.mapTo(panel, QPoint(0, 0)).x(), one.mapTo(panel, QPoint(0, 0)).y()) for one in controls]

    assert "No training yet" in panel.pages.invitation.text()
    assert panel.pages.empty.buttons[0].isVisible()
    before = places()
    panel.begin(resume=False)
    panel.show_preparing(3, 12, 60.0, "Speaking sentence 4 of 12")
    assert panel.pages.is_empty and panel.pages.empty.filling
    assert "No training yet" not in panel.pages.invitation.text()
    assert panel.pages.invitation.text().endswith("Speaking sentence 4 of 12.")
    panel.show_preparing(3, 12, 60.0, "Loading…")
    assert panel.pages.invitation.text().endswith("Loading…")
    assert not panel.pages.empty.buttons[0].isVisible()
    assert panel.estimate.text() == "", "the progress says what is left"
    assert "60 s left" in panel.progress.text() or "minute" in panel.progress.text()
    assert places() == before
    panel.show_progress(TrainingProgress(7, 0.25, 10.0, 30.0, {"loss": 0.5}, {"learnt": 0.4, "gap": 0.6}))
    assert places() == before
    panel.end("Cancelled.")
    assert places() == before
    assert panel.estimate.text() == "About seven minutes."


def test_why_it_failed_stays_to_be_read(panel: TrainingPanel) -> None:
    panel.begin(resume=False)
    panel.end("The manifest cannot be used; correct or remove 1 line:\n  line 3: no such file", failed=True)
    assert "line 3" in panel.state
    panel.can.start.refresh()
    assert "line 3" in panel.state
    panel.begin(resume=True)
    assert panel.state == ""


def test_a_language_model_offers_drafts_and_students(panel: TrainingPanel, qtbot: QtBot, tmp_path: Path) -> None:
    panel.offer("language")
    assert panel.training is DRAFT
    assert panel.chooser.isVisible()
    panel.work.setText(str(tmp_path))
    assert panel.start_button.isEnabled(), "a language model learns from what it speaks itself"
    sentences = panel.knobs.editor("sentences")
    sentences.setValue(0)
    assert "Choose a manifest" in panel.state
    sentences.setValue(20)
    qtbot.keyClick(panel.chooser, Qt.Key.Key_Down)
    assert panel.training is STUDENT
    layers = panel.knobs.editor("layers")
    qtbot.keyClicks(layers, "0,2,11")
    qtbot.keyClick(layers, Qt.Key.Key_Return)
    assert "Keeps layers 0, 2, 11." in panel.remark.text()
    plan = panel.plan(resume=False)
    assert plan.training == "spade" and plan.knobs["layers"] == "0,2,11"


def test_bundled_models_are_made_from_the_command_line_only(panel: TrainingPanel) -> None:
    panel.offer("language")
    offered = [panel.chooser.itemData(index) for index in range(panel.chooser.count())]
    assert offered == ["speculative", "spade"]
    panel.offer("language", mel_steps=10)
    offered = [panel.chooser.itemData(index) for index in range(panel.chooser.count())]
    assert offered == ["speculative", "spade", "average_velocity"], "a flow makes mel frames of its tokens"
    panel.offer("masked")
    assert [panel.chooser.itemData(index) for index in range(panel.chooser.count())] == offered


def test_layers_that_are_none_are_refused_where_they_are_typed(panel: TrainingPanel, qtbot: QtBot) -> None:
    panel.offer("language")
    panel.choose(STUDENT.name)
    layers = panel.knobs.editor("layers")
    qtbot.keyClicks(layers, "first")
    qtbot.keyClick(layers, Qt.Key.Key_Return)
    assert "separated by commas" in panel.state
    assert panel.plan(resume=False).knobs["layers"] == ""


def test_a_family_without_trainings_leaves_the_list(panel: TrainingPanel) -> None:
    panel.offer("unknown")
    assert panel.training is GUIDANCE_FREE


def test_the_figures_of_a_student_are_its_own(panel: TrainingPanel) -> None:
    panel.offer("language")
    panel.choose(STUDENT.name)
    panel.begin(resume=False)
    losses = {"cross_entropy": 4.0, "logits": 0.6, "latent": 2.0, "attention": 0.001, "embedding": 0.07}
    panel.show_progress(TrainingProgress(3, 0.1, 1.0, None, losses, {}))
    panel.show_progress(TrainingProgress(3, 0.1, 1.0, None, {}, {"divergence": 0.25, "same_first": 0.4}))
    assert "0.25 nats" in panel.state
    assert panel.curves.terms == {name: [value] for name, value in losses.items()}


def test_tab_comes_to_the_knobs_between_the_folder_and_the_time(panel: TrainingPanel) -> None:
    panel.offer("language")
    for one in (DRAFT, STUDENT):
        panel.choose(one.name)
        chain = [panel.work]
        while chain[-1] is not panel.minutes:
            chain.append(chain[-1].nextInFocusChain())
        shown = [each for each in chain if each in panel.knobs.reachable]
        assert tuple(shown) == panel.knobs.reachable
