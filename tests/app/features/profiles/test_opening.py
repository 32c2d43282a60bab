"""Opening profiles in the real window: what they select, what is undone, and what is said of those that do not fit."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

from paretone.models import catalogue, load_model
from paretone.models.base import SpeechModel
from paretone.models.catalogue import entry
from paretone.setting.profile import SUFFIX, Evidence, Profile
from paretone.setting.setting import Setting
from paretone_app.shell.window import MainWindow
from tests.app.conftest import PATIENCE_MILLISECONDS, SMALL, close
from tests.engine import small_speech

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
    assert state.selection.setting == profile.setting
    assert strategy.table == profile.artefact("table")
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
    qtbot.waitUntil(lambda: not window.findChildren(QFileDialog), timeout=PATIENCE_MILLISECONDS)


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
    assert chosen.voice.id == other
    assert "which is not here" not in window.notices.banner.text
    replace(profile, evidence=Evidence(voice="somebody else")).save(path)
    window.features["profiles"].open(path)
    assert chosen.voice.id == other
    assert "the voice somebody else, which is not here" in window.notices.banner.text


def test_the_model_that_it_is_for_is_loaded_first(
    make_window: Callable[..., MainWindow], qtbot: QtBot, tmp_path: Path
) -> None:
    """Given on the command line, before the engine has started; and one for a model that is not there."""
    path = tmp_path / "language.json"
    model = entry("lm-mini")
    setting = Setting("lm-mini", model.options_with(speed=1.25), (), seed=7)
    made = load_model("lm-mini")

    def load(model: str, *asked: object, **named: object) -> SpeechModel:
        return made if model == made.info.id else small_speech.load(model, *asked, **named)

    window = make_window(load, parts=f"{SMALL} strategy export profiles")
    Profile.of(setting, made.info).save(path)
    window.features["profiles"].open(path)
    window.show()
    chosen = window.state.selection
    qtbot.waitUntil(
        lambda: chosen.ready and chosen.model_id == "lm-mini" and not window.jobs.busy, timeout=PATIENCE_MILLISECONDS
    )
    assert (chosen.setting.baseline, chosen.setting.techniques) == (setting, ())
    assert window.notices.banner.text.startswith("Opened language.json: ")

    absent = next(one for one in catalogue.models() if not one.available)
    variant = next(iter(absent.architectures))
    Profile(Setting(absent.id, absent.options_with()), "ab" * 32, variant).save(path)
    window.features["profiles"].open(path)
    assert f"language.json is for {absent.title}, which is not here" in window.notices.banner.text
    assert chosen.candidate == absent.id
    close(window, qtbot)
