"""The Training panel: what is missing is said, what is filled in is asked for, and how it goes is shown."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QPoint, Qt
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from paretone.errors import SettingError
from paretone.models.base import IntervalWeights, MelFlow
from paretone.session.events import Prepared
from paretone.session.jobs import preparation_for
from paretone.setting.knobs import NO_VALUES, Values, checked, defaults
from paretone.techniques import average_velocity, spade
from paretone.techniques.average_velocity import FORM, METHODS
from paretone.techniques.guidance_free import FORM as GUIDANCE_FREE
from paretone.techniques.spade import FORM as STUDENT
from paretone.techniques.speculative import FORM as DRAFT
from paretone.training.forms import Place, TrainingForm, TrainingPlan, companion_arguments, training_forms
from paretone.training.requests import CHECKPOINT, Trained, TrainingProgress
from paretone_app.features.training.panel import TrainingCurves, TrainingPanel, figure_wording
from paretone_app.shell.colours import LIGHT
from tests.app.acting import NamedActs
from tests.app.conftest import on_screen
from tests.app.presenters import INFO, Presenter


@pytest.fixture
def panel(qtbot: QtBot) -> TrainingPanel:
    return on_screen(TrainingPanel(LIGHT, NamedActs()), qtbot)


def test_what_is_missing_is_said_before_anything_can_be_started(panel: TrainingPanel, tmp_path: Path) -> None:
    assert "Choose a manifest" in panel.state.text()
    panel.manifest.setText("speech.csv")
    assert "Choose a folder" in panel.state.text() and not panel.start_button.isEnabled()
    for work in ("x" * 300, str(tmp_path)):
        panel.work.setText(work)
        assert panel.state.text() == "" and panel.start_button.isEnabled() and not panel.resume_button.isEnabled()
    panel.manifest.clear()
    assert "or have the model say sentences" in panel.state.text() and not panel.start_button.isEnabled()
    panel.fit({"sentences": 30})
    assert panel.state.text() == "" and panel.start_button.isEnabled()
    assert "The model first says 30 sentences in each voice itself." in panel.remark.text()
    panel.can["start"].set_reason("The model is not loaded yet.")
    assert panel.state.text() == "The model is not loaded yet." and not panel.start_button.isEnabled()


def test_what_is_filled_in_is_asked_for(panel: TrainingPanel, qtbot: QtBot, tmp_path: Path) -> None:
    panel.choose(GUIDANCE_FREE.name, weight=0.8)
    panel.propose(40, str(tmp_path))
    panel.manifest.setText(" speech.csv ")
    panel.recordings.setText("dev-clean")
    panel.validation.setText("seed-tts/en/meta.lst")
    assert not panel.recordings.isVisibleTo(panel) and "4.00" in panel.remark.text()
    qtbot.keyClick(panel.knobs.editor("method"), Qt.Key.Key_Down)
    with qtbot.waitSignal(panel.can["start"].triggered):
        qtbot.keyClick(panel.start_button, Qt.Key.Key_Space)
    knobs = defaults(GUIDANCE_FREE.knobs).replace(weight=0.8, method="distillation")
    wanted = TrainingPlan("guidance_free", "speech.csv", str(tmp_path), 40, False, False, knobs)
    assert panel.plan(resume=False) == replace(wanted, validation="seed-tts/en/meta.lst")
    panel.validation.setText("librispeech_pc.lst")
    assert panel.recordings.isVisibleTo(panel)
    arguments = companion_arguments(Place("f5-mini", "", "", "cpu"), panel.plan(resume=False))
    assert (arguments["validation"], arguments["validation_audio"]) == ("librispeech_pc.lst", "dev-clean")
    panel.epochs.setValue(2.5)
    assert not panel.minutes.isEnabled(), "the budget is one or the other"
    arguments = companion_arguments(Place("f5-mini", "", "", "cpu"), panel.plan(resume=False))
    assert arguments["epochs"] == 2.5 and "minutes" not in arguments


def test_an_earlier_run_can_only_be_gone_on_with(panel: TrainingPanel, qtbot: QtBot, tmp_path: Path) -> None:
    (tmp_path / CHECKPOINT).write_bytes(b"")
    panel.manifest.setText("speech.csv")
    panel.work.setText(str(tmp_path))
    assert not panel.start_button.isEnabled() and "earlier run" in panel.state.text()
    with qtbot.waitSignal(panel.can["resume"].triggered):
        qtbot.mouseClick(panel.resume_button, Qt.MouseButton.LeftButton)


def test_how_it_goes_and_what_came_of_it(panel: TrainingPanel, qtbot: QtBot) -> None:
    panel.begin(resume=False)
    panel.end("The manifest cannot be used; correct or remove 1 line:\n  line 3: no such file", failed=True)
    panel.can["start"].refresh()
    assert "line 3" in panel.state.text(), "why it failed stays to be read"
    panel.begin(resume=False)
    assert not panel.manifest.isEnabled() and panel.state.text() == ""
    panel.hide()
    with qtbot.assertNotEmitted(panel.curves.drawn, wait=300):
        panel.show_progress(TrainingProgress(7, 0.25, 10.0, 30.0, {"loss": 0.5}, {}))
    with qtbot.waitSignal(panel.curves.drawn):
        panel.show()
    assert panel.progress.value() == 250 and "Step 7: 25 %, 30 s left" in panel.progress.text()
    panel.show_progress(TrainingProgress(7, 0.25, 10.0, 30.0, {}, {"learnt": 0.4, "gap": 0.6}))
    assert "40 %" in panel.state.text() and (panel.curves.steps, panel.curves.found["learnt"]) == ([7], [0.4])
    summary = "One branch has learned 90 % of the guidance."
    panel.show_result(Trained("w.safetensors", summary, NO_VALUES, 9, 40.0, {"learnt": 0.9}))
    panel.end()
    assert "90 %" in panel.state.text() and "w.safetensors" in panel.state.text()
    assert panel.manifest.isEnabled()


def test_while_it_prepares_nothing_invites_to_start_and_no_control_moves(panel: TrainingPanel, qtbot: QtBot) -> None:
    panel.resize(900, 720)
    panel.set_corpus(False, "About seven minutes.")
    panel.manifest.setText("speech.csv")
    controls = panel.manifest, panel.minutes, panel.start_button, panel.cancel_button, panel.half

    def places() -> list[tuple[int, int]]:
        QCoreApplication.sendPostedEvents()
        return [(one.mapTo(panel, QPoint(0, 0)).x(), one.mapTo(panel, QPoint(0, 0)).y()) for one in controls]

    assert "which takes" in panel.pages.invitation.text() and panel.pages.empty.buttons[0].isVisible()
    before = places()
    panel.begin(resume=False)
    panel.show_preparing(3, 12, 60.0, "Speaking sentence 4 of 12")
    assert panel.pages.is_empty and panel.pages.empty.filling
    assert "which takes" not in panel.pages.invitation.text()
    assert panel.pages.invitation.text().endswith("Speaking sentence 4 of 12.")
    panel.show_preparing(3, 12, 60.0, "Loading…")
    assert panel.pages.invitation.text().endswith("Loading…") and not panel.pages.empty.buttons[0].isVisible()
    assert panel.estimate.text() == "", "the progress says what is left"
    assert "60 s left" in panel.progress.text() or "minute" in panel.progress.text()
    assert places() == before
    panel.show_progress(TrainingProgress(7, 0.25, 10.0, 30.0, {"loss": 0.5}, {"learnt": 0.4, "gap": 0.6}))
    assert places() == before
    panel.end("Cancelled.")
    assert places() == before and panel.estimate.text() == "About seven minutes."


def offered(panel: TrainingPanel) -> list[str]:
    return [panel.chooser.itemData(index) for index in range(panel.chooser.count())]


def test_a_language_model_offers_drafts_and_students(panel: TrainingPanel, qtbot: QtBot, tmp_path: Path) -> None:
    panel.offer("language")
    assert panel.training is DRAFT and panel.chooser.isVisible() and offered(panel) == ["speculative", "spade"]
    panel.work.setText(str(tmp_path))
    assert panel.start_button.isEnabled(), "a language model learns from what it speaks itself"
    sentences = panel.knobs.editor("sentences")
    sentences.setValue(0)
    assert "Choose a manifest" in panel.state.text()
    sentences.setValue(20)
    qtbot.keyClick(panel.chooser, Qt.Key.Key_Down)
    assert panel.training is STUDENT
    layers = panel.knobs.editor("layers")
    qtbot.keyClicks(layers, "0,2,11")
    qtbot.keyClick(layers, Qt.Key.Key_Return)
    assert "Keeps layers 0, 2, 11." in panel.remark.text()
    plan = panel.plan(resume=False)
    assert plan.training == "spade" and plan.knobs["layers"] == "0,2,11"
    panel.offer("language", mel_flow=MelFlow(()))
    assert offered(panel) == ["speculative", "spade", "average_velocity"], "a flow makes mel frames of its tokens"
    panel.offer("masked")
    assert len(offered(panel)) == 3, "none is for these: the list stays"


@pytest.fixture
def curves(qtbot: QtBot) -> TrainingCurves:
    made = TrainingCurves(LIGHT, lambda draw: draw())
    qtbot.addWidget(made)
    made.show_figures(GUIDANCE_FREE.found)
    return made


def step(number: int, loss: float) -> TrainingProgress:
    return TrainingProgress(number, number / 100, float(number), None, {"loss": loss}, {})


def validation(number: int, learnt: float) -> TrainingProgress:
    return TrainingProgress(number, number / 100, float(number), None, {}, {"learnt": learnt, "gap": 1 - learnt})


def test_points_over_the_logarithm_of_the_step(curves: TrainingCurves, qtbot: QtBot) -> None:
    curves.add(validation(0, 0.0))
    for number in (1, 10, 100):
        curves.add(step(number, 1 / number))
    curves.add(validation(100, 0.75))
    qtbot.waitUntil(lambda: len(curves.loss.series) == 2)
    x, y = curves.loss.curves[0].getData()
    assert list(x) == pytest.approx([0, 1, 2]) and list(y) == pytest.approx([1, 0.1, 0.01])
    assert list(curves.loss.curves[1].getData()[1]) == pytest.approx([1, 0.55, 0.37])
    assert list(curves.validation.curves[0].getData()[0]) == pytest.approx([0, math.log10(100)])
    assert list(curves.validation.curves[1].getData()[1]) == pytest.approx([1, 0.25])
    assert "75 %" in curves.legend.text()


def test_a_resumed_run_takes_the_place_of_what_it_repeats(curves: TrainingCurves) -> None:
    for number, loss in ((1, 1.0), (2, 1.0), (3, 1.0), (4, 1.0), (3, 0.5)):
        curves.add(step(number, loss))
    assert (curves.steps, curves.terms) == ([1, 2, 3], {"loss": [1.0, 1.0, 0.5]})
    curves.clear()
    assert curves.steps == []


def test_terms_of_a_loss_are_drawn_apart_divergence_as_a_share(curves: TrainingCurves, qtbot: QtBot) -> None:
    curves.show_figures(STUDENT.found)
    for number in (1, 2):
        curves.add(TrainingProgress(number, 0.1, 1.0, None, {"latent": 10.0 * number, "attention": 0.001}, {}))
        curves.add(TrainingProgress(number, 0.1, 1.0, None, {}, {"divergence": 4.0 / number, "correct": 0.3}))
    qtbot.waitUntil(lambda: len(curves.loss.series) == 2)
    assert list(curves.loss.curves[0].getData()[1]) == pytest.approx([1.0, math.log10(15)])
    assert list(curves.loss.curves[1].getData()[1]) == pytest.approx([-3, -3])
    assert list(curves.validation.curves[0].getData()[1]) == pytest.approx([1.0, 0.5])
    assert "nats" in curves.legend.text() and "attention" in curves.losses.text()


def test_curves_are_read_by_keys_and_copied_as_a_table(curves: TrainingCurves, qtbot: QtBot) -> None:
    for number in (1, 2, 3):
        curves.add(step(number, 1 / number))
    qtbot.waitUntil(lambda: len(curves.loss.series) == 2)
    assert curves.loss.accessibleDescription().startswith("Loss: ")
    for key, words in (
        (Qt.Key.Key_Home, "step 1: each step 1.00, loss 1.00"),
        (Qt.Key.Key_Right, "step 2: each step 0.500, loss 0.750"),
        (Qt.Key.Key_End, "step 3: each step 0.333, loss 0.611"),
        (Qt.Key.Key_PageDown, "step 2: each step 0.500, loss 0.750"),
    ):
        qtbot.keyClick(curves.loss, key)
        assert curves.loss.accessibleDescription() == words
    qtbot.keyClick(curves.loss, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    lines = QGuiApplication.clipboard().text().splitlines()
    assert lines[0] == "step\teach step\tloss" and lines[2] == "2\t0.5\t0.75"
    curves.add(step(4, 0.25))
    qtbot.waitUntil(lambda: len(curves.loss.series[0].x) == 4)
    assert curves.loss.accessibleDescription().startswith("step 2:"), "the cursor stays while the training goes on"
    curves.clear()
    assert curves.loss.accessibleDescription().startswith("Loss: ")


PLACE = Place("lm-mini", "models", "small", "cpu")


def plan(one: TrainingForm, **knobs: object) -> TrainingPlan:
    return TrainingPlan(one.name, "speech.csv", "runs", 20.0, True, False, defaults(one.knobs).replace(**knobs))


def test_techniques_carry_out_what_they_are_asked_to_train_and_say_how_it_goes() -> None:
    for one in training_forms():
        found = preparation_for(one.name, one.request(PLACE, plan(one)))
        assert found.finds_weights and not found.on_loaded_model
        said = figure_wording(one.found[0], 0.25)
        assert said in one.progress.format(step=3, found=said)
    folders = {one.folder("lm-mini", defaults(one.knobs)) for one in training_forms()}
    assert len(folders) == len(training_forms()), "each has its own"
    assert STUDENT.folder("lm-mini", defaults(STUDENT.knobs).replace(layers="0,11")) == "lm-mini-student-2"
    assert GUIDANCE_FREE.request(PLACE, plan(GUIDANCE_FREE)).variant == "small"
    assert GUIDANCE_FREE.request(replace(PLACE, vocoder="/vocos"), plan(GUIDANCE_FREE)).vocoder == "/vocos"


NAME = average_velocity.NAME
WEIGHTS = IntervalWeights("own/guidance-1.safetensors", "3" * 64, 4, -1.0, Values(guidance=1.0), METHODS[0])


def test_setup_offers_the_training_until_there_are_weights(tmp_path: Path, qtbot: QtBot) -> None:
    state = Presenter(tmp_path / "calibrations").state
    assert state.availability.training_offer(NAME) is None, "nobody wants them yet"
    state.selection.switch(NAME, True)
    offer = state.availability.training_offer(NAME)
    assert offer is not None and dict(offer.knobs) == {}
    assert "has no average-velocity weights for 2 evaluations" in state.availability.technique_problem(NAME)
    assert state.selection.info is not None
    info = replace(state.selection.info, interval_weights=(WEIGHTS,))
    state.follow(Prepared(9, NAME, Trained(WEIGHTS.path, "It learnt.", Values(), 10, 1.0, {}), info))
    assert state.availability.training_offer(NAME) is None and not state.availability.technique_problem(NAME)


def test_what_the_forms_say_reaches_their_requests() -> None:
    made = GUIDANCE_FREE.request(PLACE, plan(GUIDANCE_FREE))
    assert (made.model, made.folder, made.device) == ("lm-mini", "models", "cpu")
    common = made.manifest, made.work, made.minutes, made.half_precision, made.resume
    assert common == ("speech.csv", "runs", 20.0, True, False)
    knobs = {"times": "uniform", "stop_gradient": False, "weight_warm_up": 0.0, "warm_up": 7, "stages": "200, 100"}
    made = GUIDANCE_FREE.request(PLACE, plan(GUIDANCE_FREE, **checked(GUIDANCE_FREE.knobs, knobs, "it")))
    own = made.times, made.stop_gradient, made.weight_warm_up, made.warm_up, made.stages
    assert own == ("uniform", False, 0.0, 7, (100, 200))
    with pytest.raises(SettingError, match="Stages must be numbers of steps separated by commas"):
        checked(GUIDANCE_FREE.knobs, {"stages": "0"}, "it")
    draft = DRAFT.request(PLACE, plan(DRAFT, lower=3, upper=2, sentences=50))
    assert (draft.lower, draft.upper, draft.sentences, draft.features) == (3, 2, 50, False)
    asked = plan(DRAFT, kind="features")
    assert DRAFT.request(PLACE, asked).features and DRAFT.folder("lm-mini", asked.knobs) == "lm-mini-draft-features"
    student = STUDENT.request(PLACE, plan(STUDENT, layers="0,4,11", stage=5.0))
    assert (student.retained, student.stages) == ((0, 4, 11), (5.0,))
    assert student.distillation == spade.Distillation().distillation
    assert STUDENT.request(PLACE, plan(STUDENT, stage=30.0)).stages == (), "after the end there is the end"
    chosen = {"importance": "whisper", "alpha": 0.5, "skew": 0.2, "attention_interval": 1, "attention_scale": 8.0}
    chosen |= {"original_layers": True, "relative_latents": False}
    assert STUDENT.request(PLACE, plan(STUDENT, **chosen)).distillation == chosen
    velocity = FORM.request(PLACE, plan(FORM, method=METHODS[1], teacher_steps=6, sentences=30))
    assert (velocity.method, velocity.teacher_steps, velocity.sentences) == (METHODS[1], 6, 30)


def test_what_a_form_knows_of_models() -> None:
    assert (DRAFT.minutes(replace(INFO, parameters=10_100_000)), FORM.fitting(INFO)) == (15.0, {"sentences": 0})
    assert DRAFT.minutes(replace(INFO, parameters=505_000_000)) == 750
    assert FORM.fitting(replace(INFO, id="MegaTTS3")) == {"sentences": 200}, "nobody else speaks for it"
    assert FORM.why_not(INFO) == "" and "cannot be trained here" in FORM.why_not(replace(INFO, id="lm-mini"))
    assert "guidance in its weights already" in FORM.why_not(replace(INFO, trained_guidance=0.5))
    info = replace(INFO, text_front_end="natural phones", parameters=8_200_000)
    assert "the speech synthesiser that the bundled models learned from" in GUIDANCE_FREE.estimate(info, True)
