"""The first start opens an example and plays it, once, and never over what the user wants."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PySide6.QtCore import QSettings
from pytestqt.qtbot import QtBot

from paretone.audio.resampling import resample
from paretone.models.loading import load
from paretone_app.shell.greeting import WORDS, Greeting
from paretone_app.shell.window import MainWindow
from tests.app.conftest import MakeWindow, close, ready
from tests.sound import RATE, NullSink


def begun(window: MainWindow, qtbot: QtBot, settings: QSettings | None = None) -> None:
    """The greeting of a start with ``settings``, by default the window's own, until the example is open."""
    greeting = Greeting(window, settings or window.settings)
    assert window.first is not None
    window.first()
    qtbot.waitUntil(lambda: greeting._opened or window.first is None)


def test_the_first_start_plays_an_example_before_a_model_is_loaded(
    make_window: MakeWindow, null_sink: NullSink, tmp_path: Path, qtbot: QtBot
) -> None:
    window = make_window(load)
    Greeting(window, window.settings)
    with null_sink.recording() as recording:
        window.show()
        qtbot.waitUntil(lambda: bool(recording.samples.any()))
        assert not window.state.selection.ready and not window.jobs.busy, "nothing is loaded yet"
        ready(window, qtbot)
    take_a, take_b = window.state.comparison.take_a, window.state.comparison.take_b
    whole = resample(take_a.samples, take_a.sample_rate, RATE)
    likeness = np.correlate(recording.samples, whole, "valid") / (whole @ whole)
    assert 0.3 < likeness.max() <= 1.01, "it was take A, if with gaps on a starved machine"
    # What they were made with is selected, their table included, so that a next step is to compare them.
    assert not take_a.setting.techniques and window.state.selection.setting == take_b.setting
    assert window.state.synthesis.baseline_is_current and window.state.synthesis.accelerated_is_current
    assert window.state.availability.why_not_accelerate() == ""
    # They are takes like others, but for the user's figures; their place is in their study.
    takes, (study,) = window.results.takes, window.results.studies.values()
    assert {one.id for one in takes.all} == {take_a.id, take_b.id} == {one.id for one in takes.all if one.is_example}
    assert takes.measured == () and {take_a.id, take_b.id} <= set(study.takes)
    takes.delete([take_a.id])
    text = window.state.selection.text
    close(window, qtbot)
    again = make_window(load)
    Greeting(again, again.settings)
    assert again.first is None, "a second start has the last session"
    ready(again, qtbot)
    assert again.state.selection.text == text and again.state.comparison.take_b.id == take_b.id
    assert again.state.comparison.take_a is None, "what was removed stays away"


def test_what_the_user_types_comes_first(borrowed_window: MainWindow, qtbot: QtBot) -> None:
    window = borrowed_window
    greeting = Greeting(window, QSettings("", QSettings.Format.IniFormat))
    window.state.selection.set_text("Something else.")
    window.first()
    qtbot.waitUntil(lambda: window.first is None)
    assert window.state.selection.text == "Something else." and window.state.comparison.take_a is None
    greeting.deleteLater()


def test_a_message_about_data_at_risk_is_not_covered(borrowed_window: MainWindow, qtbot: QtBot) -> None:
    window = borrowed_window
    window.notices.ask("Nothing can be kept here.", ("Choose another folder…",), lambda _: None)
    begun(window, qtbot, QSettings("", QSettings.Format.IniFormat))
    assert [card.message.sentence for card in window.notices.banner.cards] == ["Nothing can be kept here."]
    qtbot.waitUntil(lambda: window.panels["steps"].hint.text() == WORDS)
