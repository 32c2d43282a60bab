"""The Training panel: what is missing is said, what is filled in is asked for, and how it goes is shown."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QPoint, Qt
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from paretone.errors import SettingError
from paretone.models.base import IntervalWeights
from paretone.models.catalogue import entry
from paretone.session.events import Prepared
from paretone.session.jobs import preparation_for
from paretone.setting.knobs import NO_VALUES, Values, checked, defaults
from paretone.techniques import average_velocity, guidance_free, spade
from paretone.techniques.average_velocity import FORM, METHODS, AverageVelocityRequest
from paretone.techniques.guidance_free import FORM as GUIDANCE_FREE
from paretone.techniques.guidance_free import GuidanceFreeRequest
from paretone.techniques.spade import FORM as STUDENT
from paretone.techniques.spade import StudentRequest
from paretone.techniques.speculative import FORM as DRAFT
from paretone.techniques.speculative import DraftRequest
from paretone.training import session
from paretone.training.forms import Place, TrainingForm, TrainingPlan, run_arguments, training_forms
from paretone.training.requests import Trained, TrainingProgress
from paretone_app.features.training.model import figure_wording, training
from paretone_app.features.training.panel import (
    CHECKPOINT,
    TrainingActions,
    TrainingCurves,
    TrainingPanel,
    _running_mean,
)
from paretone_app.shell.colours import DARK, LIGHT
from paretone_app.state.differences import weights_title
from tests.app.acting import acts_of
from tests.app.presenters import INFO, Presenter


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
    panel.recordings.setText("dev-clean")
    panel.validation.setText("seed-tts/en/meta.lst")
    assert not panel.recordings.isVisibleTo(panel)
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
        defaults(GUIDANCE_FREE.knobs).replace(weight=0.8, method="distillation"),
        validation="seed-tts/en/meta.lst",
    )
    panel.validation.setText("librispeech_pc.lst")
    assert panel.recordings.isVisibleTo(panel)
    arguments = run_arguments(Place("f5-mini", "", "", "cpu"), panel.plan(resume=False))
    assert (arguments["validation"], arguments["validation_audio"]) == ("librispeech_pc.lst", "dev-clean")
    panel.epochs.setValue(2.5)
    assert not panel.minutes.isEnabled(), "the budget is one or the other"
    arguments = run_arguments(Place("f5-mini", "", "", "cpu"), panel.plan(resume=False))
    assert arguments["epochs"] == 2.5 and "minutes" not in arguments


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


@pytest.fixture
def curves(qtbot: QtBot) -> TrainingCurves:
    made = TrainingCurves(LIGHT)
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
    assert list(x) == pytest.approx([0, 1, 2])
    assert list(y) == pytest.approx([1, 0.1, 0.01])
    assert list(curves.loss.curves[1].getData()[1]) == pytest.approx([1, 0.55, 0.37])
    assert list(curves.validation.curves[0].getData()[0]) == pytest.approx([0, math.log10(100)])
    assert list(curves.validation.curves[1].getData()[1]) == pytest.approx([1, 0.25])
    assert "75 %" in curves.legend.text()


def test_a_resumed_run_takes_the_place_of_what_it_repeats(curves: TrainingCurves) -> None:
    for number in (1, 2, 3, 4):
        curves.add(step(number, 1.0))
    curves.add(step(3, 0.5))
    assert (curves.steps, curves.terms) == ([1, 2, 3], {"loss": [1.0, 1.0, 0.5]})
    curves.clear()
    assert curves.steps == []


def test_terms_of_a_loss_are_drawn_apart_and_divergence_as_a_share_of_the_first(
    curves: TrainingCurves, qtbot: QtBot
) -> None:
    curves.show_figures(STUDENT.found)
    for number in (1, 2):
        curves.add(TrainingProgress(number, 0.1, 1.0, None, {"latent": 10.0 * number, "attention": 0.001}, {}))
        curves.add(TrainingProgress(number, 0.1, 1.0, None, {}, {"divergence": 4.0 / number, "correct": 0.3}))
    qtbot.waitUntil(lambda: len(curves.loss.series) == 2)
    assert list(curves.loss.curves[0].getData()[1]) == pytest.approx([1.0, math.log10(15)])
    assert list(curves.loss.curves[1].getData()[1]) == pytest.approx([-3, -3])
    assert list(curves.validation.curves[0].getData()[1]) == pytest.approx([1.0, 0.5])
    assert "nats" in curves.legend.text()
    assert "attention" in curves.losses.text()


def test_a_term_that_is_taken_now_and_then_has_a_mean_of_its_own(curves: TrainingCurves) -> None:
    for number in range(1, 61):
        terms = {"latent": 2.0} | ({"attention": float(number)} if number % 20 == 0 else {})
        curves.add(TrainingProgress(number, 0.1, 1.0, None, terms, {}))
    means = _running_mean(curves.terms["attention"])
    assert len(means) == 60
    assert math.isnan(means[18])
    assert means[19] == 20
    assert means[41] == pytest.approx(30), "20 and 40 are among the last 25"
    assert means[-1] == pytest.approx(50)


def test_the_theme_reaches_the_plots(curves: TrainingCurves) -> None:
    curves.set_colours(DARK)
    for plot in (curves.loss, curves.validation):
        assert plot.grab().toImage().pixelColor(2, 2).name() == DARK.base


def test_curves_are_read_by_keys_and_copied_as_a_table(curves: TrainingCurves, qtbot: QtBot) -> None:
    for number in (1, 2, 3):
        curves.add(step(number, 1 / number))
    qtbot.waitUntil(lambda: len(curves.loss.series) == 2)
    assert curves.loss.accessibleDescription().startswith("Loss: ")
    for key, words in (
        (Qt.Key.Key_Home, "step 1: each step 1, loss 1"),
        (Qt.Key.Key_Right, "step 2: each step 0.5, loss 0.75"),
        (Qt.Key.Key_End, "step 3: each step 0.333, loss 0.611"),
        (Qt.Key.Key_PageDown, "step 2: each step 0.5, loss 0.75"),
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


@pytest.mark.parametrize(("one", "kind"), [(GUIDANCE_FREE, GuidanceFreeRequest), (DRAFT, DraftRequest)])
def test_what_all_have_in_common_is_passed_on(one: TrainingForm, kind: type) -> None:
    made = one.request(PLACE, plan(one))
    assert type(made) is kind
    assert (made.model, made.folder, made.device) == ("lm-mini", "models", "cpu")
    assert (made.manifest, made.work, made.minutes, made.half_precision, made.resume) == (
        "speech.csv",
        "runs",
        20.0,
        True,
        False,
    )


def test_guidance_has_the_symbol_of_the_sampler_option() -> None:
    (guidance,) = (knob for knob in entry("f5-mini").options if knob.name == "guidance")
    knobs = defaults(GUIDANCE_FREE.knobs).replace(weight=0.5)
    assert GUIDANCE_FREE.remark(knobs) == f"Equals guidance {guidance.symbol} = w / (1 − w) = 1.00."
    assert f"guidance {guidance.symbol} = 1.00" in guidance_free.describe(knobs)


def test_cfg_free_choices_of_the_form_reach_the_request() -> None:
    made = GUIDANCE_FREE.request(PLACE, plan(GUIDANCE_FREE))
    assert (made.times, made.stop_gradient, made.weight_warm_up, made.warm_up, made.stages) == (
        "swayed",
        True,
        0.1,
        50,
        (),
    )
    knobs = {"times": "uniform", "stop_gradient": False, "weight_warm_up": 0.0, "warm_up": 7, "stages": "200, 100"}
    made = GUIDANCE_FREE.request(PLACE, plan(GUIDANCE_FREE, **checked(GUIDANCE_FREE.knobs, knobs, "it")))
    assert (made.times, made.stop_gradient, made.weight_warm_up, made.warm_up, made.stages) == (
        "uniform",
        False,
        0.0,
        7,
        (100, 200),
    )
    with pytest.raises(SettingError, match="Stages must be numbers of steps separated by commas, such as 100,200"):
        checked(GUIDANCE_FREE.knobs, {"stages": "0"}, "it")


def test_a_draft_has_its_layers() -> None:
    made = DRAFT.request(PLACE, plan(DRAFT, lower=3, upper=2, sentences=50))
    assert (made.lower, made.upper, made.sentences, made.features) == (3, 2, 50, False)
    asked = plan(DRAFT, kind="features")
    assert DRAFT.request(PLACE, asked).features and DRAFT.folder("lm-mini", asked.knobs) == "lm-mini-draft-features"


def test_a_student_has_its_layers_and_is_kept_on_the_way() -> None:
    made = STUDENT.request(PLACE, plan(STUDENT, layers="0,4,11", stage=5.0))
    assert isinstance(made, StudentRequest)
    assert (made.retained, made.stages) == ((0, 4, 11), (5.0,))
    assert STUDENT.request(PLACE, plan(STUDENT, depth=4)).depth == 4
    assert STUDENT.request(PLACE, plan(STUDENT, stage=0.0)).stages == ()
    assert STUDENT.request(PLACE, plan(STUDENT, stage=30.0)).stages == (), "after the end there is the end"


def test_distillation_of_the_form_reaches_the_request() -> None:
    usual, made = spade.Distillation(), STUDENT.request(PLACE, plan(STUDENT))
    assert made.distillation == usual.distillation
    chosen = {
        "importance": "whisper",
        "alpha": 0.5,
        "skew": 0.2,
        "attention_interval": 1,
        "attention_scale": 8.0,
        "original_layers": True,
        "relative_latents": False,
    }
    assert STUDENT.request(PLACE, plan(STUDENT, **chosen)).distillation == chosen
    assert "says 8 sentences in every voice" in STUDENT.remark(plan(STUDENT, **chosen).knobs)


def test_techniques_carry_out_what_they_are_asked_to_train() -> None:
    for one in training_forms():
        found = preparation_for(one.name, one.request(PLACE, plan(one)))
        assert found.finds_weights and not found.on_loaded_model
    assert GUIDANCE_FREE.request(PLACE, plan(GUIDANCE_FREE)).variant == "small"
    assert GUIDANCE_FREE.request(replace(PLACE, vocoder="/vocos"), plan(GUIDANCE_FREE)).vocoder == "/vocos"


def test_larger_models_take_longer() -> None:
    small = replace(INFO, parameters=10_100_000)
    assert (DRAFT.minutes(small), STUDENT.minutes(small)) == (15.0, 45.0)
    assert DRAFT.minutes(replace(INFO, parameters=505_000_000)) == 750


def test_work_folders_tell_trainings_apart() -> None:
    folders = {one.folder("lm-mini", defaults(one.knobs)) for one in training_forms()}
    assert len(folders) == len(training_forms())
    assert STUDENT.folder("lm-mini", defaults(STUDENT.knobs).replace(layers="0,11")) == "lm-mini-student-2"


def test_every_training_is_found_by_its_name_and_says_how_it_goes() -> None:
    for one in training_forms():
        assert training(one.name) is one
        first = one.found[0]
        assert figure_wording(first, 0.25) in one.progress.format(step=3, found=figure_wording(first, 0.25))


def test_who_speaks_what_is_learnt_from_is_explained() -> None:
    info = replace(INFO, id="f5-mini", text_front_end="natural phones", parameters=8_200_000)
    said = [one.estimate(info, True) for one in training_forms() if info.family in one.families]
    naming = [one for one in said if "hibari" in one]
    assert len(naming) >= 2
    assert all("the speech synthesiser that the bundled models learned from" in one for one in naming)
    assert all(one.endswith(".") for one in said if one)


NAME = average_velocity.NAME
WEIGHTS = IntervalWeights("own/guidance-1.safetensors", "3" * 64, 4, -1.0, Values(guidance=1.0), METHODS[0])


def test_the_form_asks_for_what_it_says() -> None:
    knobs = defaults(FORM.knobs).replace(method=METHODS[1], teacher_steps=6, sentences=30)
    made = FORM.request(
        Place("f5-mini", "models", "small", "cpu"),
        TrainingPlan(NAME, "speech.csv", "runs", 20.0, True, False, knobs),
    )
    assert isinstance(made, AverageVelocityRequest)
    assert (made.method, made.teacher_steps, made.sentences, dict(made.guidance)) == (METHODS[1], 6, 30, {})
    assert (made.model, made.folder, made.variant, made.manifest, made.work, made.minutes, made.half_precision) == (
        "f5-mini",
        "models",
        "small",
        "speech.csv",
        "runs",
        20.0,
        True,
    )


def test_models_that_cannot_be_trained_say_so() -> None:
    assert {FORM.why_not(replace(INFO, id=one)) for one in ("f5-mini", "megatts3-mini", "MegaTTS3")} == {""}
    assert "cannot be trained here" in FORM.why_not(replace(INFO, id="lm-mini"))
    assert "guidance in its weights already" in FORM.why_not(replace(INFO, trained_guidance=0.5))


def test_models_that_nobody_else_speaks_for_say_sentences_themselves() -> None:
    assert FORM.fitting(INFO) == {"sentences": 0}, "the bundled model learns from the speech that it learnt from"
    assert FORM.fitting(replace(INFO, id="MegaTTS3")) == {"sentences": 200}


def test_of_a_language_model_the_flow_alone_is_trained() -> None:
    language = replace(INFO, id="CosyVoice2-0.5B", parameters=506_000_000, mel_steps=10)
    assert FORM.why_not(language) == ""
    assert FORM.minutes(language) == FORM.minutes(replace(INFO, parameters=71_300_000)) == 348


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
    assert state.availability.training_offer(NAME) is None
    assert not state.availability.technique_problem(NAME)


def test_weights_are_called_by_their_guidance() -> None:
    assert weights_title(WEIGHTS) == "guidance 1, displacement (guidance-1)"
