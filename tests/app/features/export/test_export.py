"""Profiles in the window: the dialog that exports one, and what opening one selects."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog, QLabel
from pytestqt.qtbot import QtBot
from safetensors import safe_open

from paretone.export.copied import paretone_profile
from paretone.export.programs.f5_tts import TARGET as F5_TTS
from paretone.models import catalogue, load_model
from paretone.models.base import DraftWeights, ModelInfo, StudentWeights
from paretone.models.catalogue import entry
from paretone.session.commands import ExportProfile
from paretone.session.events import TakeReady
from paretone.setting.profile import SUFFIX, Evidence, Profile
from paretone.setting.setting import Setting
from paretone.techniques.guidance_free import SAFETENSORS
from paretone_app.features.export import ProfileDialog, ProfileExport, WeightsDialog
from paretone_app.shell.window import MainWindow
from paretone_app.state.jobs import Outcome
from tests.app.conftest import SMALL, MakeWindow, close, loading, ready
from tests.app.presenters import INFO, OPERATIONS, Presenter, calibrated


@pytest.fixture
def presenter(presenter: Presenter) -> Presenter:
    calibrated(presenter)
    return presenter


def opened(presenter: Presenter, qtbot: QtBot) -> ProfileDialog:
    dialog = ProfileDialog(presenter.state, ProfileExport(presenter.state))
    qtbot.addWidget(dialog)
    dialog.open()
    return dialog


def contents(dialog: ProfileDialog | WeightsDialog) -> str:
    return "\n".join(label.text() for label in dialog.findChildren(QLabel))


def type_path(dialog: ProfileDialog, path: Path | str, qtbot: QtBot) -> None:
    dialog.path.selectAll()
    qtbot.keyClick(dialog.path, Qt.Key.Key_Delete)
    qtbot.keyClicks(dialog.path, str(path))


def test_it_says_what_the_profile_will_hold(presenter: Presenter, qtbot: QtBot) -> None:
    text, table = contents(opened(presenter, qtbot)), presenter.strategy.table
    for said in ("SHA-256 0000000000000000…", f"{table.layers} × {table.steps}", "synthesise this setting first"):
        assert said in text
    presenter.state.follow(TakeReady(3, presenter.take(presenter.state.selection.setting, "fast"), OPERATIONS))
    assert "RTF 0.500 on cpu" in contents(opened(presenter, qtbot))
    for name, on in (("ditreducio", False), ("steps", True)):
        presenter.state.selection.switch(name, on)
    assert "Strategy table" not in contents(opened(presenter, qtbot)), "its technique is not in use"


def test_return_writes_it_and_tells_where(presenter: Presenter, qtbot: QtBot, tmp_path: Path) -> None:
    dialog = opened(presenter, qtbot)
    path = tmp_path / "profile.json"
    type_path(dialog, path, qtbot)
    with qtbot.waitSignal(dialog.written) as blocker:
        qtbot.keyClick(dialog.path, Qt.Key.Key_Return)
    assert blocker.args == [str(path)] and not dialog.isVisible()
    assert Profile.load(path).setting == presenter.state.selection.setting


def test_a_place_that_cannot_be_is_told_before_the_export(presenter: Presenter, qtbot: QtBot, tmp_path: Path) -> None:
    dialog = opened(presenter, qtbot)
    for path, words in (
        ("", "Type a file name."),
        (tmp_path, "is a folder"),
        (tmp_path / "none" / "profile.json", f"The folder {tmp_path / 'none'} does not exist."),
    ):
        type_path(dialog, path, qtbot)
        assert words in dialog.note.text() and not dialog.export_button.isEnabled()
    dialog.path.setText(f"/{'x' * 300}/profile.json")
    assert "cannot be read" in dialog.note.text()
    existing = tmp_path / "profile.json"
    existing.write_text("{}")
    type_path(dialog, existing, qtbot)
    assert dialog.note.text() == "profile.json exists and will be replaced." and dialog.export_button.isEnabled()
    dialog.target.setCurrentIndex(dialog.target.findData(F5_TTS.name))
    home = ("~/none", f"The folder {Path.home() / 'none'} will be created.", True)
    for path, words, possible in (("", "Type a folder.", False), (tmp_path, "are not overwritten", True), home):
        type_path(dialog, path, qtbot)
        assert words in dialog.note.text() and dialog.export_button.isEnabled() is possible


def test_keys_choose_the_target_keep_its_path_and_export(presenter: Presenter, qtbot: QtBot, tmp_path: Path) -> None:
    dialog = opened(presenter, qtbot)
    type_path(dialog, tmp_path / "mine.json", qtbot)
    qtbot.keyClick(dialog.target, Qt.Key.Key_Down)
    assert dialog.path.text().endswith("f5-mini-ditreducio-for-f5-tts")
    assert "and a module that applies it to the official package" in contents(dialog)
    assert dialog.path.accessibleName() == "Folder to write to"
    qtbot.keyClick(dialog.target, Qt.Key.Key_Up)
    assert dialog.path.text() == str(tmp_path / "mine.json")
    qtbot.keyClick(dialog.target, Qt.Key.Key_Down)
    type_path(dialog, tmp_path / "out", qtbot)
    assert dialog.note.text() == f"The folder {tmp_path / 'out'} will be created."
    assert dialog.account.geometry().bottom() < dialog.path_label.y(), "nothing overlaps"
    with qtbot.assertNotEmitted(dialog.written):
        qtbot.keyClick(dialog.path, Qt.Key.Key_Return)
    command = presenter.sent[-1]
    assert not dialog.isVisible() and isinstance(command, ExportProfile)
    assert (command.target, command.folder) == (F5_TTS.name, str(tmp_path / "out"))
    assert command.profile == ProfileExport(presenter.state).profile()


def test_what_a_target_cannot_carry_forbids_it(presenter: Presenter, qtbot: QtBot, tmp_path: Path) -> None:
    dialog = opened(presenter, qtbot)
    dialog.target.setCurrentIndex(dialog.target.findData(SAFETENSORS.name))
    assert "there are no CFG-free weights to write" in dialog.note.text() and not dialog.export_button.isEnabled()
    dialog.target.setCurrentIndex(dialog.target.findData(F5_TTS.name))
    assert dialog.export_button.isEnabled()
    presenter.state.selection.switch("first_block", True)
    presenter.state.selection.switch("ditreducio", False)
    again = opened(presenter, qtbot)
    assert not again.account.isVisible()
    again.target.setCurrentIndex(again.target.findData(F5_TTS.name))
    dropped, honoured = again.account.toPlainText().split("Honoured")
    assert "Steps 4" in honoured and "First-block cache" in dropped
    assert again.export_button.isEnabled(), "what is dropped is said, and hinders nobody"
    again.target.setCurrentIndex(again.target.findData(SAFETENSORS.name))
    assert not again.account.isVisible()


def test_what_fails_while_writing_stays_in_the_dialog(presenter: Presenter, qtbot: QtBot, tmp_path: Path) -> None:
    dialog = opened(presenter, qtbot)
    type_path(dialog, tmp_path / "profile.json", qtbot)
    presenter.state.selection.set_option("steps", 7)  # Its table no longer fits.
    qtbot.mouseClick(dialog.export_button, Qt.MouseButton.LeftButton)
    assert "Calibrate again" in dialog.note.text() and dialog.isVisible() and not (tmp_path / "profile.json").exists()


def test_every_target_says_what_it_does_or_why_it_cannot(presenter: Presenter, qtbot: QtBot, tmp_path: Path) -> None:
    presenter.state.selection.switch("ditreducio", False)
    dialog = opened(presenter, qtbot)
    possible = []
    for index in range(1, dialog.target.count()):
        dialog.target.setCurrentIndex(index)
        said = dialog.account.isVisible()
        assert said is dialog.export_button.isEnabled()
        assert said or dialog.note.text().endswith(".")
        possible += [dialog.target.currentData()] if said else []
    assert {"f5-tts", "sglang"} <= set(possible)
    dialog.target.setCurrentIndex(dialog.target.findData("sglang"))
    type_path(dialog, tmp_path / "out", qtbot)
    qtbot.keyClick(dialog.path, Qt.Key.Key_Return)
    command = presenter.sent[-1]
    assert isinstance(command, ExportProfile) and (command.target, command.profile.setting.techniques) == ("sglang", ())


STUDENT = StudentWeights("/there/student-2.safetensors", "1" * 64, (0, 2), "recovered", 45.0)
DRAFT = DraftWeights("/there/draft-3.safetensors", "2" * 64, (0, 1, 2), (0, 1), True)


def opened_weights(qtbot: QtBot, model: str = "lm-mini") -> WeightsDialog:
    info: ModelInfo = replace(INFO, id=model, title="LM", students=(STUDENT,), drafts=(DRAFT,))
    dialog = WeightsDialog(info)
    qtbot.addWidget(dialog)
    dialog.open()
    return dialog


def test_it_says_what_is_written_for_whom_and_return_asks_for_it(qtbot: QtBot, tmp_path: Path) -> None:
    dialog = opened_weights(qtbot)
    assert "Student with 2 layers, 45 min of training" in dialog.weights.itemText(0)
    assert f"Draft with 3 layers ({Path(DRAFT.path).stem})" == dialog.weights.itemText(1)
    assert "Layers 0, 2. The folder will hold a Hugging Face checkpoint" in contents(dialog)
    assert "SSD" not in contents(dialog) and Path(dialog.path.text()).name == "lm-mini-student-2"
    dialog.weights.setCurrentIndex(1)
    assert "SSD's current settings are included" in contents(dialog)
    assert Path(dialog.path.text()).name == "lm-mini-draft-3"
    for model in ("CosyVoice2-0.5B", "Qwen3-TTS-12Hz-0.6B-Base"):
        assert "which replace the release's" in contents(opened_weights(qtbot, model))
    dialog.path.clear()
    assert "Type a folder." in dialog.note.text() and not dialog.export_button.isEnabled()
    qtbot.keyClicks(dialog.path, str(tmp_path / "out"))
    with qtbot.waitSignal(dialog.wanted) as asked:
        qtbot.keyClick(dialog.path, Qt.Key.Key_Return)
    assert asked.args == ["draft", DRAFT.path, str(tmp_path / "out")] and not dialog.isVisible()


@pytest.fixture
def window(make_window: MakeWindow, qtbot: QtBot) -> MainWindow:
    """The window with the bundled model loaded and CFG-free used, which needs no calibration."""
    made = make_window(load=load_model, parts=f"{SMALL} export")
    ready(made, qtbot)
    made.state.selection.switch("ditreducio", False)
    made.state.selection.switch("guidance_free", True)
    return made


def export(window: MainWindow, qtbot: QtBot, target: str, folder: Path) -> Outcome:
    """Export as a user would, by keys; how the job ended."""
    window.action.export_profile.trigger()
    (dialog,) = window.findChildren(ProfileDialog)
    while dialog.target.currentData() != target:
        QTest.keyClick(dialog.target, Qt.Key.Key_Down)
    type_path(dialog, folder, qtbot)
    with qtbot.waitSignal(window.jobs.ended) as ended:
        QTest.keyClick(dialog.path, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: not window.findChildren(ProfileDialog))
    return ended.args[1]


@pytest.mark.slow
def test_both_targets_are_written_and_nothing_is_replaced(window: MainWindow, qtbot: QtBot, tmp_path: Path) -> None:
    window.state.selection.switch("guidance_free", False)
    assert window.action.export_profile.isEnabled(), "a plain setting can be exported"
    assert not window.action.accelerated.isEnabled()
    window.state.selection.switch("guidance_free", True)
    folder = tmp_path / "package"
    assert export(window, qtbot, F5_TTS.name, folder) is Outcome.FINISHED
    assert paretone_profile.read(folder)["sampling"]["guidance"] == 0
    assert f"{folder} holds the profile" in window.notices.banner.text
    assert window.features["export"].step_done("export_profile")

    weights = tmp_path / "weights"
    assert export(window, qtbot, SAFETENSORS.name, weights) is Outcome.FINISHED
    (written,) = weights.glob("*.safetensors")
    with safe_open(written, framework="pt") as file:
        assert file.metadata()["cfg_free"] == "true"

    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "README.md").write_text("My own.")
    assert export(window, qtbot, F5_TTS.name, tmp_path / "mine") is Outcome.FAILED
    assert "README.md exists with other content and is kept" in window.notices.banner.text
    assert [path.read_text() for path in (tmp_path / "mine").iterdir()] == ["My own."]


STEPS = 5
PARTS = f"{SMALL} strategy export profiles"


def exported(window: MainWindow, path: Path) -> Profile:
    """A profile with a strategy table that was made in the window, whose steps and table are taken back again."""
    state = window.state
    state.editing.set_option("steps", STEPS)
    window.features["strategy"].state.skip_nothing()
    window.features["export"].write(path)
    while state.undo_stack.canUndo():
        state.undo_stack.undo()
    window.notices.say("")
    return Profile.load(path)


def test_a_profile_is_selected_with_its_table_as_one_entry(borrowed_window: MainWindow, tmp_path: Path) -> None:
    window, path = borrowed_window, tmp_path / f"mine{SUFFIX}"
    state, strategy = window.state, window.features["strategy"].state
    profile = exported(window, path)
    before, entries = state.selection.choices, state.undo_stack.count()
    assert before["option", "steps"] != STEPS and strategy.table is None
    window.features["profiles"].open(path)
    assert state.selection.setting == profile.setting and strategy.table == profile.artefact("table")
    assert not state.availability.why_not_accelerate()
    assert window.workspaces.current.title and f"Opened {path.name}: " in window.notices.banner.text
    assert state.undo_stack.undoText() == f"open {path.name}"
    state.undo_stack.undo()
    assert state.selection.choices == before and strategy.table is None
    state.undo_stack.redo()
    assert state.selection.setting == profile.setting and strategy.table == profile.artefact("table")
    # What is selected already makes no entry.
    entries = state.undo_stack.count()
    window.features["profiles"].open(path)
    assert state.undo_stack.count() == entries


def test_by_the_menu_s_dialog(borrowed_window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    window, path = borrowed_window, tmp_path / "menu.json"
    profile = exported(window, path)
    window.action["open_profile"].trigger()
    (dialog,) = window.findChildren(QFileDialog)
    dialog.selectFile(str(path))
    dialog.fileSelected.emit(str(path))
    assert window.state.selection.setting == profile.setting
    dialog.close()
    qtbot.waitUntil(lambda: not window.findChildren(QFileDialog))


def test_what_is_no_profile_or_does_not_fit_changes_nothing(borrowed_window: MainWindow, tmp_path: Path) -> None:
    window = borrowed_window
    profile = exported(window, tmp_path / "good.json")
    before = window.state.selection.choices

    def said(path: Path) -> str:
        window.notices.say("")
        window.action.attempt(lambda: window.features["profiles"].open(path))
        assert window.state.selection.choices == before
        return window.notices.banner.text

    assert "There is no profile" in said(tmp_path / "none.json")
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    assert "broken.json is not a profile: it is not JSON" in said(broken)
    data = profile.to_json()
    data["setting"]["options"]["steps"] = 10**9
    broken.write_text(json.dumps(data))
    assert "broken.json" in said(broken) and "steps" in window.notices.banner.text
    plain = replace(profile, setting=profile.setting.baseline, artefacts=(), checkpoint="ab" * 32)
    plain.save(broken)
    assert said(broken).startswith("broken.json was not opened. The profile cannot be used here: it is for checkpoint")


def test_a_voice_that_is_not_here_is_said(borrowed_window: MainWindow, tmp_path: Path) -> None:
    window, path = borrowed_window, tmp_path / "voice.json"
    profile = exported(window, path)
    chosen = window.state.selection
    other = chosen.voices[-1].id
    replace(profile, evidence=Evidence(voice=other)).save(path)
    window.features["profiles"].open(path)
    assert chosen.voice.id == other and "which is not here" not in window.notices.banner.text
    replace(profile, evidence=Evidence(voice="somebody else")).save(path)
    window.features["profiles"].open(path)
    assert chosen.voice.id == other and "the voice somebody else, which is not here" in window.notices.banner.text


def test_the_model_it_needs_is_loaded(make_window: MakeWindow, qtbot: QtBot, tmp_path: Path) -> None:
    """Given on the command line, before the engine has started; and one for a model that is not there."""
    path = tmp_path / "language.json"
    setting = Setting("lm-mini", entry("lm-mini").options_with(speed=1.25), (), seed=7)
    made = load_model("lm-mini")
    window = make_window(loading("lm-mini"), parts=f"{SMALL} strategy export profiles")
    Profile.of(setting, made.info).save(path)
    window.features["profiles"].open(path)
    window.show()
    chosen = window.state.selection
    qtbot.waitUntil(lambda: chosen.ready and chosen.model_id == "lm-mini" and not window.jobs.busy)
    assert (chosen.setting.baseline, chosen.setting.techniques) == (setting, ())
    assert window.notices.banner.text.startswith("Opened language.json: ")

    absent = next(one for one in catalogue.models() if not one.available)
    variant = next(iter(absent.architectures))
    Profile(Setting(absent.id, absent.options_with()), "ab" * 32, variant).save(path)
    window.features["profiles"].open(path)
    assert f"language.json is for {absent.title}, which is not here" in window.notices.banner.text
    assert chosen.candidate == absent.id
    close(window, qtbot)
