"""The Setup panel: what is declared is shown, what is chosen reaches the state, what cannot be is said."""

from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractSpinBox, QComboBox, QLineEdit, QPlainTextEdit, QSlider, QWidget
from pytestqt.qtbot import QtBot

from paretone.checks.beforehand import COLLAPSES
from paretone.front_end.pronunciations import read_lexicon
from paretone.models import catalogue
from paretone.models.base import WeightSet
from paretone.session.events import JobFinished, ModelLoaded, Prepared
from paretone.setting.knobs import NO_VALUES
from paretone.setting.setting import UsedTechnique
from paretone.techniques.resolving import known
from paretone.training.requests import Trained
from paretone.wording import percent
from paretone_app.features.setup.panel import SetupPanel
from paretone_app.features.setup.spoken import PronounceDialog
from paretone_app.widgets.layouts import Scrolled
from tests.app.conftest import activated, typed
from tests.app.presenters import OPERATIONS, Presenter, calibrated
from tests.app.records import STEPS
from tests.app.widgets.test_boxes import reset_of, turn_wheel
from tests.voices import FIRST


def type_into(qtbot: QtBot, edit: QLineEdit | QPlainTextEdit, text: str) -> None:
    edit.selectAll()
    qtbot.keyClicks(edit, text)


def test_every_declared_knob_has_a_control_that_changes_the_setting_and_is_reset(
    panel: SetupPanel, presenter: Presenter, qtbot: QtBot
) -> None:
    assert panel.sampler.knobs == presenter.state.selection.entry.options
    assert panel.sampler.editor("steps").value() == STEPS
    for one in presenter.state.selection.techniques:
        group = panel.techniques.groups[one.name]
        controls = group.controls
        assert one.title.startswith(group.title()) and one.title in group.accessibleName()
        assert controls.knobs == one.knobs
        for knob in one.knobs:
            assert controls.editor(knob.name).accessibleName() == f"{one.title}: {knob.label}"
    controls = panel.techniques.groups["ditreducio"].controls
    editor, reset = controls.editor("marked"), reset_of(controls, "marked")
    assert not reset.isEnabled()
    qtbot.keyClick(editor, Qt.Key.Key_Up)
    assert presenter.state.selection.knobs("ditreducio")["marked"] == 11.0 and reset.isEnabled()
    qtbot.mouseClick(reset, Qt.MouseButton.LeftButton)
    assert presenter.state.selection.knobs("ditreducio")["marked"] == 10.0 and editor.value() == 10.0


def test_a_conflict_is_told_and_forbids_what_needs_it(panel: SetupPanel, presenter: Presenter, qtbot: QtBot) -> None:
    strategy = presenter.strategy
    state = calibrated(presenter)
    reason = panel.techniques.groups["ditreducio"].reason
    assert not reason.isVisibleTo(panel)
    qtbot.keyClick(panel.sampler.editor("solver"), Qt.Key.Key_Down)
    assert state.selection.options["solver"] == "midpoint" and reason.isVisibleTo(panel)
    assert "choose the Euler solver" in reason.text()
    for why_not in (strategy.why_not_prepare(), state.availability.why_not_accelerate()):
        assert "choose the Euler solver" in why_not
    assert state.availability.why_not_synthesise() == ""
    panel.techniques.groups["ditreducio"].setChecked(False)
    assert not reason.isVisibleTo(panel)


def test_the_cost_follows_table_and_techniques(panel: SetupPanel, presenter: Presenter) -> None:
    state, info = presenter.state, presenter.state.selection.info
    assert "shown after calibration and one baseline." in panel.cost.text()
    state.cost.set_operations(OPERATIONS)
    assert "shown after calibration." in panel.cost.text()
    state.cost.set_operations(None)
    for name, used in (("ditreducio", False), ("steps", True)):
        panel.techniques.groups[name].setChecked(used)
    assert "shown after one baseline" in panel.cost.text(), "nothing has to be calibrated"
    for name, used in (("steps", False), ("ditreducio", True)):
        panel.techniques.groups[name].setChecked(used)
    assert (gain := percent(calibrated(presenter).cost.ops_ratio, 1)) in panel.cost.text()
    for model in ("lm-mini", info.id):
        state.loading.load_model(model)
        assert gain not in panel.cost.text()
        state.follow(ModelLoaded(presenter.sent[-1].job, replace(info, id=model), 0.1))
        state.jobs.handle(JobFinished(presenter.sent[-1].job))
    assert gain in panel.cost.text(), "a model that is loaded again has the operations that were counted"
    panel.techniques.groups["ditreducio"].setChecked(False)
    assert "no technique in use" in panel.cost.text()


def test_megatts3_has_its_own_knobs_and_voices(panel: SetupPanel, presenter: Presenter, tmp_path: Path) -> None:
    (tmp_path / "voices").mkdir()
    for name in ("anna.wav", "anna.npy", "without_latents.wav"):
        (tmp_path / "voices" / name).write_bytes(b"0")
    presenter.state.loading.load_model("MegaTTS3", str(tmp_path))
    assert [panel.voice_choice.voice.itemData(index) for index in range(panel.voice_choice.voice.count())] == ["anna"]
    assert presenter.state.selection.voice.id == "anna"
    assert panel.voice_choice.note.text() == "The model transcribes the recording itself."
    assert panel.sampler.editor("intelligibility").value() == 1.6
    assert panel.sampler.editor("similarity").value() == 2.5
    assert {one.name for one in presenter.state.selection.techniques} >= {"ditreducio", "steps", "precision"}
    assert panel.techniques.groups["ditreducio"].isVisibleTo(panel)
    # Where there is no voice, what to do is said.
    presenter.state.loading.load_model("MegaTTS3", str(tmp_path / "voices"))
    assert presenter.state.selection.voice is None
    assert "Put a recording and its latents (name.wav and name.npy) into" in panel.voice_choice.note.text()
    # Back at the bundled model all is as it was.
    presenter.state.loading.load_model("f5-mini")
    assert presenter.state.selection.voice.id == FIRST


def test_a_model_with_voices_of_its_own_takes_no_recordings(panel: SetupPanel, presenter: Presenter) -> None:
    choice = panel.voice_choice
    assert choice.own.isVisibleTo(panel)
    presenter.state.loading.load_model("Qwen3-TTS-12Hz-1.7B-CustomVoice")
    offered = [(choice.voice.itemData(index), choice.voice.itemText(index)) for index in range(choice.voice.count())]
    assert offered[:2] == [("vivian", "Vivian"), ("serena", "Serena")] and len(offered) == 9
    assert presenter.state.selection.voice.id == "vivian"
    assert not choice.note.isVisibleTo(panel) and not choice.own.isVisibleTo(panel)
    assert panel.sampler.editor("instruction") is not None
    presenter.state.editing.choose_voice("ryan")
    assert presenter.state.selection.utterance.voice.title == "Ryan"
    presenter.state.loading.load_model("Qwen3-TTS-12Hz-1.7B-VoiceDesign")
    assert [choice.voice.itemText(index) for index in range(choice.voice.count())] == ["As described"]
    presenter.state.loading.load_model("Qwen3-TTS-12Hz-1.7B-Base")
    assert presenter.state.selection.voice.id == FIRST and choice.own.isVisibleTo(panel)


def test_the_seed_and_its_lock_and_what_is_being_typed(panel: SetupPanel, presenter: Presenter, qtbot: QtBot) -> None:
    type_into(qtbot, panel.text, "Half a sentence")
    panel.commit()
    assert presenter.state.selection.text == "Half a sentence"
    typed(panel.seed, "123", qtbot)
    assert presenter.state.selection.seed == 123 and panel.seed_lock.isChecked()
    presenter.state.synthesis.synthesise_baseline()
    assert panel.seed.value() == 123
    qtbot.keyClick(panel.seed_lock, Qt.Key.Key_Space)
    assert not presenter.state.selection.seed_locked
    presenter.state.synthesis.synthesise_baseline()
    assert panel.seed.value() == presenter.state.selection.seed != 123
    presenter.state.undo_stack.undo()
    assert presenter.state.selection.seed_locked and panel.seed_lock.isChecked()


def test_tab_goes_on_as_the_eye_does(panel: SetupPanel, presenter: Presenter) -> None:
    """Knobs follow their technique, also those made on its use; those with their defaults are folded."""
    presenter.state.selection.switch("steps", True)
    presenter.state.selection.set_knob("ditreducio", "marked", 11.0)
    chain = [panel]
    while (following := chain[-1].nextInFocusChain()) is not panel:
        chain.append(following)
    shown = [one for one in chain if panel.isAncestorOf(one) and one.isVisibleTo(panel) and one.focusProxy() is None]
    reached = [one for one in shown if one.focusPolicy() & Qt.FocusPolicy.TabFocus]
    found = [one.accessibleName() or one.text() for one in reached]
    expected = [panel.text.accessibleName(), panel.sentences.accessibleName(), panel.per_line.text()]
    expected += [panel.as_spoken.pronounce.text(), "Voice", "Own recording", panel.seed.accessibleName()]
    expected += [panel.seed_lock.text(), "Model"]
    for name, knobs in (("ditreducio", ("threshold", "marked")), ("steps", ("steps",))):
        card = panel.techniques.groups[name]
        expected.append(card.accessibleName())
        if card.technique.published:
            expected += [card.as_published.accessibleName(), card.published.accessibleName()]
        expected += [f"{card.technique.title}: {knob.label}" for knob in card.technique.knobs if knob.name in knobs]
        expected.append(card.controls.fold.accessibleName())
    expected += ["Add technique", f"Sampler: {presenter.state.selection.entry.options[0].label}"]
    expected.append(panel.sampler.fold.accessibleName())
    expected = [one for one in expected if not one.startswith("Steps")]
    assert [name for name in found if not name.startswith("Reset ")] == expected
    assert panel.sampler.fold.accessibleName().endswith("at their defaults, folded")


def test_a_model_that_is_being_loaded_is_said_to_be(panel: SetupPanel, presenter: Presenter) -> None:
    state, title = presenter.state, catalogue.entry("megatts3-mini").title
    state.jobs.handle(JobFinished(1))
    state.loading.load_model("megatts3-mini")
    assert panel.model_choice.note.text() == f"Loading {title}…"
    assert state.availability.why_not_synthesise() == f"{title} is being loaded, which takes some seconds."
    state.follow(ModelLoaded(2, known("megatts3-mini"), 0.1))
    state.jobs.handle(JobFinished(2))
    assert not state.selection.loading and "Loading" not in panel.model_choice.note.text()


def test_the_wheel_scrolls_and_changes_nothing(panel: SetupPanel, presenter: Presenter, qtbot: QtBot) -> None:
    for one in presenter.state.selection.techniques:
        presenter.state.selection.switch(one.name, True)
    activated(panel, qtbot).resize(360, 420)
    area = panel.findChild(Scrolled)
    bar = area.verticalScrollBar()

    def chosen() -> tuple[object, ...]:
        selection = presenter.state.selection
        shown = [one.currentIndex() for one in panel.findChildren(QComboBox)]
        return selection.setting, selection.speaker, selection.utterance, shown

    turned = []
    for box in panel.findChildren(QWidget):
        if not isinstance(box, (QComboBox, QAbstractSpinBox, QSlider)) or not (box.isVisible() and box.isEnabled()):
            continue
        box.setFocus()
        area.ensureWidgetVisible(box)
        before, at = chosen(), bar.value()
        turn_wheel(box, away=at == bar.maximum())
        assert bar.value() != at and chosen() == before, box.accessibleName()
        turned.append(box)
    assert len(turned) > 8


TWO_THIRDS = WeightSet("there", "1" * 64, 2 / 3, "model-guidance")


def give_weights(presenter: Presenter) -> None:
    """As an engine does once a training has ended."""
    info = replace(presenter.state.selection.info, weight_sets=(TWO_THIRDS,))
    presenter.state.follow(Prepared(9, "guidance_free", Trained("there", "It learnt.", NO_VALUES, 10, 1.0, {}), info))


def test_one_click_sets_a_technique_as_published(panel: SetupPanel, presenter: Presenter, qtbot: QtBot) -> None:
    state, group = presenter.state, panel.techniques.groups["ditreducio"]
    state.selection.switch("ditreducio", True)
    before = state.selection.choices
    assert [group.published.itemText(place) for place in range(7)] == [f"T{place}" for place in range(7)]
    assert "Error metric “Mean absolute error (paper)”, not “Relative (official code)”" in group.comparison.text()
    group.published.setCurrentIndex(3)
    qtbot.mouseClick(group.as_published, Qt.MouseButton.LeftButton)
    knobs = state.selection.knobs("ditreducio")
    assert (knobs["threshold"], knobs["metric"]) == (0.15, "relative")
    assert (state.selection.options["steps"], panel.sampler.editor("steps").value()) == (32, 32)
    assert group.published.currentText() == "T3"
    said = "DiTReducio is set as T3 (arXiv 2509.09748, table 1, F5-TTS), except model"
    assert group.comparison.text().startswith(said)
    state.undo_stack.undo()
    assert state.selection.choices == before
    assert group.as_published.isVisibleTo(panel) and panel.techniques.groups["steps"].as_published.isHidden()


def test_what_the_knobs_come_to_is_said_as_they_change(panel: SetupPanel, presenter: Presenter, qtbot: QtBot) -> None:
    presenter.state.selection.switch("steps", True)
    group = panel.techniques.groups["steps"]
    assert group.meaning.text().startswith("7 steps at 0 2 4 6 8 16 24 32 of 32 (EPSS)")
    assert len(group.grid.times) == 8 and len(group.grid.others) == STEPS + 1
    qtbot.keyClick(group.controls.editor("steps"), Qt.Key.Key_Up)
    assert group.meaning.text().startswith("8 steps evenly spaced") and len(group.grid.times) == 9
    assert "EPSS has tables for" in group.remarks.text()
    assert presenter.state.selection.options["steps"] == STEPS, "the baseline keeps its own"


def test_a_calibration_moves_nothing_in_its_card(panel: SetupPanel, presenter: Presenter) -> None:
    group = panel.techniques.groups["ditreducio"]
    presenter.state.selection.switch("ditreducio", True)
    panel.resize(panel.sizeHint().width(), 3000)
    panel.grab()
    assert group.state.text().startswith("Calibrate first") and not group.reason.isVisibleTo(panel)
    assert "needs a strategy table" in group.state.toolTip()
    height = group.sizeHint().height()
    calibrated(presenter)
    panel.grab()
    assert group.state.text().startswith("Applies here") and group.sizeHint().height() == height


def test_a_table_on_another_grid_is_refused_with_the_reason(panel: SetupPanel, presenter: Presenter) -> None:
    state = calibrated(presenter)
    reason = panel.techniques.groups["ditreducio"].reason
    assert state.availability.why_not_accelerate() == ""
    state.selection.switch("steps", True)
    assert "number of steps 4, but 7" in reason.text() and reason.isVisibleTo(panel)
    assert state.availability.why_not_accelerate() == reason.text() and reason.text() in panel.cost.text()
    state.selection.set_knob("steps", "steps", STEPS)
    assert not reason.isVisibleTo(panel)


def test_a_weight_without_weights_offers_to_train_them(panel: SetupPanel, presenter: Presenter, qtbot: QtBot) -> None:
    state, group = presenter.state, panel.techniques.groups["guidance_free"]
    state.selection.switch("guidance_free", True)
    assert group.meaning.text().startswith("w = 0.67 equals guidance g = 2.03")
    assert "no CFG-free weights for w = 0.67" in group.reason.text() and group.train.isVisibleTo(panel)
    panel.grab()
    with qtbot.waitSignal(panel.techniques.training_wanted) as wanted:
        qtbot.mouseClick(group.train, Qt.MouseButton.LeftButton)
    assert wanted.args == ["guidance_free", {"weight": 0.67}]
    give_weights(presenter)
    assert state.selection.info.weight_sets == (TWO_THIRDS,) and not group.train.isVisibleTo(panel)
    assert not group.reason.isVisibleTo(panel)


def test_cfg_free_takes_the_guidance_control_away_and_says_why(panel: SetupPanel, presenter: Presenter) -> None:
    guidance = panel.sampler.editor("guidance")
    assert guidance.isEnabled()
    presenter.state.selection.switch("guidance_free", True)
    assert not guidance.isEnabled() and "guidance in its weights" in guidance.toolTip()
    assert "guidance in its weights" in panel.notes.text()
    presenter.state.selection.switch("guidance_free", False)
    assert guidance.isEnabled() and not panel.notes.isVisibleTo(panel)
    presenter.state.selection.set_option("guidance", 0.0)
    assert panel.notes.text() == COLLAPSES["no guidance"][1]
    # A checkpoint that is CFG-free itself takes no guidance either.
    presenter.state.selection.info = replace(presenter.state.selection.info, trained_guidance=0.5)
    presenter.state.selection.model_changed.emit()
    assert not panel.sampler.editor("guidance").isEnabled() and "w = 0.50" in panel.notes.text()
    presenter.state.selection.switch("guidance_free", True)
    assert "already CFG-free" in panel.techniques.groups["guidance_free"].reason.text()
    assert not panel.techniques.groups["guidance_free"].train.isVisibleTo(panel)


def test_settings_that_collapse_are_warned_of_before_anything_is_spoken(
    panel: SetupPanel, presenter: Presenter
) -> None:
    selection = presenter.state.selection

    def warned(*names: str) -> bool:
        return all((COLLAPSES[one][1] or "It is too old.") in panel.notes.text() for one in names)

    selection.switch("ditreducio", False)
    selection.switch("first_block", True)
    assert warned("stale cache"), "in four steps"
    selection.switch("first_block", False)
    selection.info = replace(selection.info, precisions=("float32", "float16", "bfloat16"))  # As on a card.
    selection.switch("precision", True)
    selection.set_knob("precision", "precision", "float16")
    assert warned("float16") and not warned("stale cache")
    selection.set_knob("precision", "precision", "bfloat16")
    selection.info = replace(selection.info, lacking=(("bfloat16", "It emulates it."), ("card", "It is too old.")))
    selection.model_changed.emit()
    assert warned("bfloat16", "card") and not warned("float16")
    presenter.state.jobs.handle(JobFinished(1))
    presenter.state.loading.load_model("omni-mini")
    presenter.state.follow(ModelLoaded(presenter.sent[-1].job, known("omni-mini"), 0.1))
    selection.switch("guidance_stride", True)
    assert not warned("guidance stride"), "in sixteen steps"
    selection.set_option("steps", 7)
    assert warned("guidance stride")


def test_of_several_weights_that_fit_one_is_chosen(panel: SetupPanel, presenter: Presenter, qtbot: QtBot) -> None:
    state, group = presenter.state, panel.techniques.groups["guidance_free"]
    state.selection.switch("guidance_free", True)
    give_weights(presenter)
    assert not group.weights.isVisibleTo(panel), "there is nothing to choose from"
    own = WeightSet("own/w-0.67.safetensors", "2" * 64, 0.67, "distillation")
    info = replace(state.selection.info, weight_sets=(TWO_THIRDS, own))
    state.follow(Prepared(9, "guidance_free", Trained(own.path, "It learnt.", NO_VALUES, 10, 1.0, {}), info))
    assert group.weights.isVisibleTo(panel)
    listed = [group.weights.itemText(row) for row in range(2)]
    assert listed == ["w = 0.67, distillation (w-0.67)", "w = 0.67, model-guidance (there)"]
    assert state.selection.setting.technique("guidance_free").artefact == ""
    group.weights.setFocus()
    qtbot.keyClick(group.weights, Qt.Key.Key_Down)
    assert state.selection.setting.technique("guidance_free").artefact == TWO_THIRDS.fingerprint
    named = UsedTechnique("guidance_free", NO_VALUES, "w-0.67")
    state.editing.adopt_setting(state.selection.baseline_setting.with_technique(named))
    assert state.selection.setting.technique("guidance_free").artefact == own.fingerprint, "by name, as in a study"
    state.selection.set_knob("guidance_free", "weight", 0.5)
    assert state.selection.setting.technique("guidance_free").artefact == "", "what does not fit is not used"


def test_what_is_read_is_shown_and_a_word_is_taught(panel: SetupPanel, presenter: Presenter, qtbot: QtBot) -> None:
    state, shown = presenter.state, panel.as_spoken
    panel.text.setPlainText("Zorblax costs $5-10.")
    panel.commit()
    assert shown.spoken.text() == "As spoken: Zorblax costs <b>five to ten dollars.</b>"
    assert shown.spoken.accessibleDescription() == "As spoken: Zorblax costs five to ten dollars."
    panel.text.setPlainText("Zorblax is here.")
    panel.commit()
    assert not shown.spoken.isVisibleTo(panel)
    panel.text.moveCursor(panel.text.textCursor().MoveOperation.Start)
    qtbot.keyClick(shown.pronounce, Qt.Key.Key_Space)
    dialog = panel.findChild(PronounceDialog)
    assert dialog.word.text() == "Zorblax" and not dialog.forget.isEnabled()
    save = dialog.buttons.button(dialog.buttons.StandardButton.Save)
    type_into(qtbot, dialog.said, "zor8")
    assert "'8' in the pronunciation" in dialog.remark.text() and not save.isEnabled()
    type_into(qtbot, dialog.said, "zor-BLAKS")
    assert dialog.remark.text() == "Sounds: zɔɹblˈæks"
    qtbot.keyClick(dialog.said, Qt.Key.Key_Return)
    assert state.selection.options["pronunciations"] == "Zorblax = zor-BLAKS"
    assert dict(read_lexicon()) == {"Zorblax": "zor-BLAKS"}
