"""What a window had is there again when it is opened the next time, on the same data folder and with the same settings
file; and each model keeps its own choices within a session."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PySide6.QtCore import QSettings, Qt
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

from paretone.commands import arguments, speak
from paretone.models import catalogue, load_model
from paretone.models.base import SpeechModel
from paretone.setting.setting import Setting
from paretone_app.shell.window import MainWindow
from paretone_app.state.jobs import Outcome
from tests.app.conftest import PATIENCE_MILLISECONDS, close, ready
from tests.app.features.setup.test_choosing_models import choose
from tests.app.shell.running import run
from tests.engine import small_speech

CHECKPOINT = "F5TTS_v1_Base"
"""A model that does not come with Paretone, so that its weights are in a folder of the user's."""


def spoken(model: str) -> Setting:
    """The setting that ``paretone speak --model`` uses."""
    parser = argparse.ArgumentParser()
    speak.declare(parser)
    return arguments.setting(parser.parse_args(["--model", model, "--text", "Hello.", "--out", "out.wav"]), model)


def loaded(window: MainWindow, model: str, qtbot: QtBot) -> None:
    """Choose ``model`` in Setup and press Load."""
    setup = choose(window, model)
    with qtbot.waitSignal(window.jobs.ended, timeout=PATIENCE_MILLISECONDS) as ended:
        qtbot.mouseClick(setup.model_choice.load, Qt.MouseButton.LeftButton)
    assert ended.args[1] is Outcome.FINISHED and window.state.selection.model_id == model


def in_folder(window: MainWindow, folder: Path, qtbot: QtBot) -> None:
    """Load the checkpoint from ``folder``, which the small models' loader reads ``weights`` in."""
    folder.mkdir()
    (folder / "weights").write_bytes(b"")
    with qtbot.waitSignal(window.jobs.ended, timeout=PATIENCE_MILLISECONDS) as ended:
        window.state.loading.load_model(CHECKPOINT, str(folder), device="cpu")
    assert ended.args[1] is Outcome.FINISHED


def test_the_baseline_of_each_model_is_the_command_lines_whatever_was_loaded_before(
    make_window: Callable[..., MainWindow], qtbot: QtBot
) -> None:
    window = ready(make_window(load_model), qtbot)
    chosen = window.state.selection
    chosen.set_text("Yes.")
    chosen.set_option("steps", 4)
    chosen.switch("precision", True)
    first = chosen.setting
    for model in ("omni-mini", "lm-mini"):
        loaded(window, model, qtbot)
        assert run(window, window.action.baseline, qtbot) is Outcome.FINISHED
        take = window.state.comparison.take_a
        assert (take.setting, take.text) == (spoken(model), "Yes.")
        assert not chosen.is_used("precision")
        editor = window.panels["setup"].sampler.editor("cross_fade")
        assert editor.value() == spoken(model).options["cross_fade"], "what is shown is what runs"
    loaded(window, "f5-mini", qtbot)
    assert chosen.setting == first
    close(window, qtbot)


def test_a_window_that_is_opened_again_has_what_it_had(
    make_window: Callable[..., MainWindow], qtbot: QtBot, tmp_path: Path
) -> None:
    window = ready(make_window(), qtbot)
    window.state.selection.set_option("guidance", 0.9)
    window.state.selection.choose_voice("ella")
    in_folder(window, tmp_path / "mine", qtbot)
    chosen = window.state.selection
    chosen.set_text("Something else.")
    chosen.set_option("steps", 5)
    chosen.switch("ditreducio", False)
    chosen.switch("steps", True)
    chosen.set_seed(99)
    assert run(window, window.action.baseline, qtbot) is Outcome.FINISHED
    assert run(window, window.action.accelerated, qtbot) is Outcome.FINISHED
    compared = [one.id for one in (window.state.comparison.take_a, window.state.comparison.take_b)]
    had = chosen.setting, chosen.text, chosen.speaker
    close(window, qtbot)

    again = ready(make_window(), qtbot)
    chosen, comparison = again.state.selection, again.state.comparison
    assert (chosen.model_id, chosen.model_folder, chosen.device_wanted) == (CHECKPOINT, str(tmp_path / "mine"), "cpu")
    assert (chosen.setting, chosen.text, chosen.speaker) == had
    assert [one.id for one in (comparison.take_a, comparison.take_b)] == compared
    assert again.panels["setup"].model_choice.box.currentText() == catalogue.entry(CHECKPOINT).title
    assert not again.notices.banner.isVisible(), again.notices.banner.text
    loaded(again, "f5-mini", qtbot)
    assert (chosen.options["guidance"], chosen.options["steps"], chosen.speaker.id) == (0.9, 12, "ella")
    loaded(again, CHECKPOINT, qtbot)
    assert chosen.model_folder == str(tmp_path / "mine"), "it is loaded from where it was"
    close(again, qtbot)


def test_takes_that_were_deleted_meanwhile_are_not_compared(
    make_window: Callable[..., MainWindow], qtbot: QtBot
) -> None:
    window = ready(make_window(), qtbot)
    assert run(window, window.action.baseline, qtbot) is Outcome.FINISHED
    window.results.library.delete(window.state.comparison.take_a.id)
    close(window, qtbot)
    again = ready(make_window(), qtbot)
    assert again.state.comparison.take_a is None
    assert not again.notices.banner.isVisible(), again.notices.banner.text
    close(again, qtbot)


def test_a_model_whose_folder_is_gone_is_said_and_another_folder_can_be_chosen(
    make_window: Callable[..., MainWindow], qtbot: QtBot, tmp_path: Path
) -> None:
    window = ready(make_window(), qtbot)
    in_folder(window, tmp_path / "mine", qtbot)
    window.state.selection.set_option("steps", 5)
    close(window, qtbot)
    (tmp_path / "mine").rename(tmp_path / "moved")

    again = ready(make_window(), qtbot)
    chosen, banner = again.state.selection, again.notices.banner
    assert (chosen.model_id, chosen.model_folder) == ("f5-mini", "")
    assert str(tmp_path / "mine") in banner.text and "F5 mini is loaded instead" in banner.text
    (button,) = banner.answers
    assert button.text() == "Choose folder…"
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    (dialog,) = again.findChildren(QFileDialog)
    with qtbot.waitSignal(again.jobs.ended, timeout=PATIENCE_MILLISECONDS) as ended:
        dialog.fileSelected.emit(str(tmp_path / "moved"))
        dialog.close()
    assert ended.args[1] is Outcome.FINISHED
    assert (chosen.model_id, chosen.model_folder) == (CHECKPOINT, str(tmp_path / "moved"))
    assert chosen.options["steps"] == 5
    assert run(again, again.action.baseline, qtbot) is Outcome.FINISHED
    close(again, qtbot)


def test_a_window_starts_usable_where_the_weights_of_the_last_model_are_gone(
    make_window: Callable[..., MainWindow], qtbot: QtBot, tmp_path: Path
) -> None:
    window = ready(make_window(), qtbot)
    in_folder(window, tmp_path / "mine", qtbot)
    close(window, qtbot)
    (tmp_path / "mine" / "weights").unlink()
    again = ready(make_window(), qtbot)
    assert (again.state.selection.model_id, again.state.selection.model_folder) == ("f5-mini", "")
    assert "F5 mini is loaded instead" in again.notices.banner.text
    assert [one.text() for one in again.notices.banner.answers] == ["Choose folder…"]
    assert run(again, again.action.baseline, qtbot) is Outcome.FINISHED, "the window can be used"
    close(again, qtbot)


def test_a_model_that_a_start_ended_with_is_not_loaded_again_unasked(
    make_window: Callable[..., MainWindow], qtbot: QtBot, tmp_path: Path
) -> None:
    window = ready(make_window(), qtbot)
    in_folder(window, tmp_path / "mine", qtbot)
    close(window, qtbot)
    file, kept = tmp_path / "window.ini", []

    def load(*given: Any, **named: Any) -> SpeechModel:
        kept.append(file.read_bytes())
        return small_speech.load(*given, **named)

    close(ready(make_window(load), qtbot), qtbot)
    assert b"loading" not in file.read_bytes()
    file.write_bytes(kept[0])  # As it is where the process ended during that.
    again = ready(make_window(), qtbot)
    assert again.state.selection.model_id == "f5-mini"
    assert "was being loaded when the last session broke off" in again.notices.banner.text
    (button,) = again.notices.banner.answers
    with qtbot.waitSignal(again.jobs.ended, timeout=PATIENCE_MILLISECONDS):
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert (again.state.selection.model_id, again.state.selection.model_folder) == (CHECKPOINT, str(tmp_path / "mine"))
    close(again, qtbot)


def test_a_device_that_is_gone_is_said_and_the_model_runs_on_another(
    make_window: Callable[..., MainWindow], qtbot: QtBot
) -> None:
    window = ready(make_window(load_model), qtbot)
    window.state.selection.device_wanted = "cuda:7"
    close(window, qtbot)
    again = ready(make_window(load_model), qtbot)
    assert (again.state.selection.model_id, again.state.selection.device_wanted) == ("f5-mini", "auto")
    assert "best device" in again.notices.banner.text
    close(again, qtbot)


def test_options_of_an_earlier_version_are_given_up_with_a_sentence(
    make_window: Callable[..., MainWindow], qtbot: QtBot, tmp_path: Path
) -> None:
    settings = QSettings(str(tmp_path / "window.ini"), QSettings.Format.IniFormat)
    earlier = {"text": "A text.", "options": {"steps": 5, "cross_fade": 0.3}, "used": {"precision": True}}
    settings.setValue("selection", json.dumps(earlier))
    settings.sync()
    window = ready(make_window(), qtbot)
    assert "all models begin with their defaults" in window.notices.banner.text
    assert window.state.selection.baseline_setting == spoken("f5-mini")
    assert (window.state.selection.text, window.state.selection.is_used("precision")) == ("A text.", False)
    close(window, qtbot)
