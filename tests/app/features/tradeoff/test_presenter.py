"""The trade-off view in the real window: a real study of the small model and a real library."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QMenu
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from paretone.errors import PlainError
from paretone.extras import why_no_search
from paretone.listening import trials
from paretone.listening.trials import ConditionRecord
from paretone.measure.loudness import matching_gains
from paretone.sampling.actions import SkipAction
from paretone.setting.library import Library
from paretone.setting.take import Take
from paretone.studies.store import DATABASE, Store
from paretone_app.audio.player import Mode
from paretone_app.audio.sound import Sound
from paretone_app.features.tradeoff.panel import TradeoffPanel
from paretone_app.features.tradeoff.scene import Crossing, Filter, PlotOptions, Range
from paretone_app.listening.stimuli import setting_key
from paretone_app.plotting.chart import EVERYTHING
from paretone_app.results.points import Scores
from paretone_app.results.study import read_study
from paretone_app.shell.window import MainWindow
from tests.app.conftest import PATIENCE_MILLISECONDS, close
from tests.app.damage import spoil_database
from tests.app.features.lab.testing import begin
from tests.app.features.tradeoff.using import choose_look
from tests.engine.listening.listeners import BASELINE, FAST
from tests.engine.listening.test_results import abx_session, staircase_session
from tests.engine.studies.small import finished, study
from tests.sound import RATE, NullSink, null_sink  # noqa: F401

SENTENCES = ["One sentence.", "Another one."]
SHOWN = PlotOptions(x="ops_ratio", y="log_mel_distance")
STAYS = 3_600_000
"""Milliseconds for which the front, whose sounds are a tenth of a second long here, does not go on by itself."""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of a baseline, fewer steps, DiTReducio, and both."""
    folder = tmp_path_factory.mktemp("study") / "small.study"
    grid = {"steps": {"steps": ["off", 2]}, "ditreducio": {"threshold": ["off", 0.3]}}
    finished(folder, study(sentences=SENTENCES, grid=grid, title="Four settings"))
    return folder


@pytest.fixture(scope="module")
def kept(results: Path) -> tuple[Take, ...]:
    """Two takes of the study: of the baseline and of DiTReducio."""
    read = read_study(results, results.with_suffix(".toml"), scores=Scores())
    return tuple(
        read.load(point.sounds[1].take) for point in read.parts.points if point.techniques in ((), ("ditreducio",))
    )


@pytest.fixture
def data(tmp_path: Path, kept: tuple[Take, ...]) -> Path:
    """A folder whose library has the two takes."""
    with Library(tmp_path / "data" / "takes") as library:
        for take in kept:
            library.add(take)
    return tmp_path / "data"


def opened(make_window: Callable[..., MainWindow], data: Path, results: Path, qtbot: QtBot) -> MainWindow:
    window = make_window(data=data)
    window.show()
    qtbot.waitUntil(
        lambda: window.is_built and window.state.selection.ready and not window.jobs.busy, timeout=PATIENCE_MILLISECONDS
    )
    return showing(window, results, qtbot)


def showing(window: MainWindow, results: Path, qtbot: QtBot) -> MainWindow:
    """The window with the view in front, in which are the study and the library."""
    window.activateWindow()
    window.workspaces.go_to("tradeoff")
    window.features["tradeoff"].open_study(results)
    # Four settings and two takes; of takes that are baselines, too, the distance is known.
    qtbot.waitUntil(lambda: window.panels["tradeoff"].pool.own.sum() == 6, timeout=PATIENCE_MILLISECONDS)
    # Studies opens it as well, whereupon it is read once more: not in the middle of a test.
    qtbot.waitUntil(
        lambda: window.features["studies"].summary is not None and not window.results.busy,
        timeout=PATIENCE_MILLISECONDS,
    )
    choose_look(window.panels["tradeoff"], SHOWN)
    return window


@pytest.fixture
def window(borrowed_window: MainWindow, kept: tuple[Take, ...], results: Path, qtbot: QtBot) -> Iterator[MainWindow]:
    """A window that shows the study and the library; it may have no sound."""
    for take in kept:
        borrowed_window.results.takes.add(take)
    yield showing(borrowed_window, results, qtbot)
    panel = borrowed_window.panels["tradeoff"]
    panel.plot.show_everything()
    panel.set_filter(Filter())
    choose_look(panel, PlotOptions())


@pytest.fixture
def own_window(make_window: Callable[..., MainWindow], data: Path, results: Path, qtbot: QtBot) -> MainWindow:
    """The same that no other test has."""
    return opened(make_window, data, results, qtbot)


@pytest.fixture
def sounding(
    null_sink: NullSink,  # noqa: F811
    make_window: Callable[..., MainWindow],
    data: Path,
    results: Path,
    qtbot: QtBot,
) -> Iterator[MainWindow]:
    """The same with sound."""
    made = opened(make_window, data, results, qtbot)
    qtbot.waitUntil(lambda: made.features["player"].player.usable, timeout=PATIENCE_MILLISECONDS)
    yield made
    if isValid(made) and not made.is_closed:
        close(made, qtbot)  # Before the sound server goes.


def key_of(panel: TradeoffPanel, techniques: tuple[str, ...], of_study: bool = True) -> str:
    return next(
        one.key for one in panel.scene.points if one.techniques == techniques and (one.folder is not None) == of_study
    )


def longest_silence(samples: np.ndarray) -> int:
    """Samples of the longest run below -60 dB of full scale."""
    loud = np.flatnonzero(np.abs(samples) > 1e-3)
    return int(np.diff(loud).max(initial=0))


def go(window: MainWindow, key: str) -> None:
    """Choose a point as the user does."""
    panel = window.panels["tradeoff"]
    panel.plot._go_to(panel.scene.index[key])


def test_a_study_and_the_library_are_shown_together(window: MainWindow, results: Path) -> None:
    panel = window.panels["tradeoff"]
    assert panel.scene.own == 6 and panel.pool.sources == ("Four settings", "Takes")
    window.results.close(results)
    assert panel.scene.own == 2


def test_points_of_a_study_are_compared_without_being_kept(window: MainWindow) -> None:
    panel, state = window.panels["tradeoff"], window.state
    go(window, key_of(panel, ()))
    panel.details.a_button.click()
    both = ("ditreducio", "steps")
    go(window, key_of(panel, both))
    QTest.keyClick(panel.plot, Qt.Key.Key_B)
    assert [one.technique for one in state.comparison.take_b.setting.techniques] == list(both)
    assert (
        state.comparison.take_b.fidelity_to == state.comparison.take_a.id
        and state.comparison.take_b.log_mel_distance is not None
    )
    assert state.comparison.take_b.setting.technique("ditreducio").artefact, "with the table that it was made with"
    assert state.comparison.take_b.samples.dtype == np.float32 and len(state.comparison.take_b.samples) > 1000
    assert state.comparison.take_b.text == state.comparison.take_a.text == SENTENCES[0]
    assert "Against A:" in panel.details.text
    assert panel.plot.marks.letters[key_of(panel, both)] == "B"
    differ = {one.what for one in state.comparison.differences()}
    assert differ == set(both)
    assert len(window.results.library) == 2


def test_a_point_is_brought_into_takes(window: MainWindow, qtbot: QtBot) -> None:
    panel, library = window.panels["tradeoff"], window.results.library
    go(window, key_of(panel, ("steps",)))
    window.action["point_keep"].trigger()
    qtbot.waitUntil(lambda: panel.scene.own == 7, timeout=PATIENCE_MILLISECONDS)
    kept = library.load(panel.details.sound.take)
    assert kept.label and kept.setting.technique("steps") and len(library) == 3
    assert not panel.details.keep_button.isEnabled()
    assert panel.details.keep_button.toolTip() == "This take is already in Takes."
    assert not window.action["point_keep"].isEnabled()


def test_what_is_selected_in_takes_is_selected_here_and_the_other_way_round(window: MainWindow, qtbot: QtBot) -> None:
    panel, takes = window.panels["tradeoff"], window.features["takes"].takes
    own = key_of(panel, ("ditreducio",), of_study=False)
    takes.select([own])
    assert panel.plot.current.key == own
    other = key_of(panel, (), of_study=False)
    go(window, other)
    qtbot.waitUntil(lambda: [one.id for one in takes.selected()] == [other])
    go(window, key_of(panel, ("ditreducio",)))
    qtbot.waitUntil(lambda: [one.id for one in takes.selected()] == [own])  # The take of the study's setting.
    panel.plot.select_all()
    qtbot.waitUntil(lambda: {one.id for one in takes.selected()} == {own, other})
    assert len(panel.plot.selected) == 6, "no echo from Takes"
    choose_look(panel, PlotOptions("speed_up", "ops_ratio"))  # Which single takes have not.
    takes.select([own])
    assert panel.plot.current.key == key_of(panel, ("ditreducio",)), "the study's point of the take's setting"


def test_strategy_shows_the_table_of_the_chosen_point(window: MainWindow, results: Path) -> None:
    panel, strategy = window.panels["tradeoff"], window.panels["strategy"]
    with Store(results, read_only=True) as store:
        tables = store.artefacts()
    go(window, key_of(panel, ("ditreducio",)))
    shown = strategy._reference
    assert shown in tables.values() and shown.steps == 4
    assert "Chosen point, not in use" in strategy.headline.text()
    go(window, key_of(panel, ("ditreducio", "steps")))
    assert strategy._reference.steps == 2
    go(window, key_of(panel, ("ditreducio",), of_study=False))
    assert strategy._reference == shown, "a take's table is found by its fingerprint"
    go(window, key_of(panel, ()))
    assert strategy._reference is None


def test_setup_takes_a_point_and_points_follow_setup_and_strategy(window: MainWindow, qtbot: QtBot) -> None:
    strategy = window.features["strategy"].state
    panel, state = window.panels["tradeoff"], window.state
    key = key_of(panel, ("ditreducio",))
    go(window, key)
    panel.details.use_button.click()
    assert (
        strategy.table is not None
        and state.selection.setting.technique("ditreducio").artefact == strategy.table.fingerprint
    )
    assert not state.availability.why_not_accelerate()
    window.workspaces.go_to("tradeoff")
    qtbot.waitUntil(panel.isVisible)
    assert panel.plot.marks.letters[key] == "Setup"
    table = strategy.table
    state.selection.switch("ditreducio", False)
    assert panel.plot.current.techniques == () and key not in panel.plot.marks.letters
    state.selection.switch("ditreducio", True)
    assert panel.plot.current.key == key
    layer = next(row for row in range(table.layers) if any(table.actions[row]))
    step = next(place for place, one in enumerate(table.actions[layer]) if one)
    strategy.replace_table(table.changed(layer, step, SkipAction.NONE), "edit")
    assert key not in panel.plot.marks.letters, "with another table it is another setting"
    state.undo_stack.undo()
    assert panel.plot.marks.letters[key] == "Setup"
    window.workspaces["tradeoff"].close()
    assert not panel.isVisible()
    state.selection.switch("ditreducio", False)
    window.workspaces.go_to("tradeoff")
    qtbot.waitUntil(panel.isVisible)
    assert panel.plot.current.techniques == () and key not in panel.plot.marks.letters, (
        "what changed meanwhile is shown"
    )


def test_without_sound_it_is_said_why_nothing_is_heard(window: MainWindow) -> None:
    panel = window.panels["tradeoff"]
    if window.features["player"].player.usable:
        pytest.skip("this machine has sound")
    go(window, key_of(panel, ()))
    assert not panel.details.hear_button.isEnabled() and panel.details.hear_button.toolTip()
    QTest.keyClick(panel.plot, Qt.Key.Key_Return)
    assert "cannot be played" in window.notices.banner.text


@pytest.mark.slow
def test_a_click_lets_a_point_be_heard(sounding: MainWindow, null_sink: NullSink, qtbot: QtBot) -> None:  # noqa: F811
    panel, player = sounding.panels["tradeoff"], sounding.features["player"].player
    panel.choose(key_of(panel, ("steps",)))
    sound = panel.details.sound
    place = panel.plot.drawn.place(panel.scene.index[panel.plot.current.key]).toPoint()
    with null_sink.recording() as recording:
        QTest.mouseClick(panel.plot, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, place)
        assert sounding.features["player"].sounds(sound.take)
        qtbot.waitUntil(lambda: bool(np.abs(recording.samples).max(initial=0) > 0), timeout=PATIENCE_MILLISECONDS)
    qtbot.waitUntil(lambda: not player.playing, timeout=PATIENCE_MILLISECONDS)
    go(sounding, key_of(panel, (), of_study=False))
    with null_sink.recording() as recording:
        sounding.action["point_hear"].trigger()
        assert sounding.features["player"].sounds(panel.plot.current.key)
        qtbot.waitUntil(lambda: bool(np.abs(recording.samples).max(initial=0) > 0), timeout=PATIENCE_MILLISECONDS)


@pytest.mark.slow
def test_the_front_is_played_and_switches_where_the_sentence_is(
    sounding: MainWindow,
    null_sink: NullSink,  # noqa: F811
    qtbot: QtBot,
) -> None:
    panel, presenter = sounding.panels["tradeoff"], sounding.features["player"]
    player, deck, action = presenter.player, presenter.deck, sounding.action["front_play"]
    choose_look(panel, SHOWN)
    panel.set_filter(Filter(source="Four settings"))
    front = [panel.scene.points[place] for place in panel.scene.walk]
    assert len(front) > 2
    go(sounding, front[1].key)
    sounding.features["tradeoff"].along.pace.setInterval(STAYS)
    action.trigger()
    qtbot.waitUntil(lambda: len(deck.row) == len(front), timeout=PATIENCE_MILLISECONDS)
    assert action.isChecked() and panel.foot.play_button.isChecked() and deck.loop is None
    for key in (Qt.Key.Key_Home, Qt.Key.Key_Right):
        QTest.keyClick(panel.plot, key)
    assert deck.sound is deck.row[1] and player.comparison.mode is Mode.SYNC
    assert deck.loop == (0.0, max(one.seconds for one in deck.row)), "who walks hears one sentence, round and round"
    assert sounding.state.playing.now.title.startswith(f"Front, 2 of {len(front)} · {front[1].title}")
    qtbot.waitUntil(lambda: sounding.state.playing.now.sounding, timeout=PATIENCE_MILLISECONDS)
    with null_sink.recording() as recording:
        panel.plot.setFocus()
        QTest.keyClick(panel.plot, Qt.Key.Key_Right)
        assert panel.plot.current.key == front[2].key and deck.sound is deck.row[2]
        qtbot.waitUntil(lambda: player.choice == 2, timeout=PATIENCE_MILLISECONDS)
        assert player.playing and action.isChecked(), "it goes on without beginning again"
        qtbot.waitUntil(lambda: len(recording.samples) > RATE, timeout=PATIENCE_MILLISECONDS)
    assert longest_silence(recording.samples) < 0.1 * RATE + longest_silence(deck.row[2].samples) * RATE / 24000
    levels = [10 ** (gain / 20) for gain in matching_gains([(one.samples, one.rate) for one in deck.row]).gains]
    told = player.mixer._programme.gains
    assert np.ptp(np.log(np.array(told) / np.array(levels))) < 0.02, "equally loud"
    # A click hears the point that it chooses; dragging walks along the front.
    places = [panel.plot.drawn.place(panel.scene.index[one.key]).toPoint() for one in front]
    slider = panel.foot.slider
    assert (slider.value(), slider.maximum()) == (2, len(front) - 1) and slider.isVisibleTo(panel)
    slider.setFocus()
    QTest.keyClick(slider, Qt.Key.Key_Left)
    assert panel.plot.current.key == front[1].key and deck.sound is deck.row[1] and slider.hasFocus()
    QTest.mousePress(panel.plot, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, places[0])
    assert deck.sound is deck.row[0] and player.busy
    QTest.mouseMove(panel.plot, places[1])
    assert panel.plot.current.key == front[1].key and deck.sound is deck.row[1]
    QTest.mouseRelease(panel.plot, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, places[1])
    qtbot.wait(50)
    QTest.keyClick(panel.plot, Qt.Key.Key_Space)
    qtbot.waitUntil(lambda: not player.busy, timeout=PATIENCE_MILLISECONDS)
    action.trigger()
    assert not action.isChecked() and not deck.row and not panel.plot.drags_along
    sounding.action["point_hear"].trigger()
    assert len(deck.row) == 1 and not panel.foot.play_button.isChecked()


@pytest.mark.slow
def test_the_front_plays_by_itself_to_its_end_and_leaves_the_loop_as_it_was(
    sounding: MainWindow,
    null_sink: NullSink,  # noqa: F811
    qtbot: QtBot,
    kept: tuple[Take, ...],
) -> None:
    panel, presenter = sounding.panels["tradeoff"], sounding.features["player"]
    deck, action = presenter.deck, sounding.action["front_play"]
    for side, take in zip((sounding.state.comparison.set_a, sounding.state.comparison.set_b), kept, strict=True):
        side(take)
    qtbot.waitUntil(lambda: deck.complete, timeout=PATIENCE_MILLISECONDS)
    deck.set_loop((0.1, 0.4))
    choose_look(panel, SHOWN)
    panel.set_filter(Filter(source="Four settings"))
    front = [panel.scene.points[place] for place in panel.scene.walk]
    go(sounding, front[0].key)
    heard: list[tuple[str, str]] = []
    deck.changed.connect(lambda: heard.append((deck.sound.key, panel.plot.current.key)) if deck.row else None)
    action.trigger()
    qtbot.waitUntil(lambda: len(deck.row) == len(front), timeout=PATIENCE_MILLISECONDS)
    assert "settings in turn" in panel.foot.remarks
    row = [one.key for one in deck.row]
    qtbot.waitUntil(lambda: not action.isChecked(), timeout=PATIENCE_MILLISECONDS)
    one_by_one = list(zip(row, [one.key for one in front], strict=True))
    assert list(dict.fromkeys(heard)) == one_by_one, "each once, from left to right"
    assert panel.plot.current.key == front[-1].key and not deck.row and not panel.foot.play_button.isChecked()
    assert deck.loop == (0.1, 0.4) == sounding.state.playing.now.loop
    qtbot.waitUntil(lambda: not presenter.player.busy, timeout=PATIENCE_MILLISECONDS)
    # Paused, it waits; ended, the loop is there again.
    go(sounding, front[0].key)
    action.trigger()
    qtbot.waitUntil(lambda: bool(deck.row), timeout=PATIENCE_MILLISECONDS)
    deck.stop()
    at = deck.sound
    qtbot.wait(200)
    assert action.isChecked() and deck.sound is at and not presenter.player.busy
    action.trigger()
    assert not action.isChecked() and deck.loop == (0.1, 0.4)
    # With neither A nor B, nothing is repeated afterwards, either.
    for side in (sounding.state.comparison.set_a, sounding.state.comparison.set_b):
        side(None)
    qtbot.waitUntil(lambda: not deck.complete, timeout=PATIENCE_MILLISECONDS)
    sounding.features["tradeoff"].along.pace.setInterval(STAYS)
    go(sounding, front[0].key)
    action.trigger()
    qtbot.waitUntil(lambda: bool(deck.row), timeout=PATIENCE_MILLISECONDS)
    QTest.keyClick(panel.plot, Qt.Key.Key_Right)
    assert deck.loop is not None
    action.trigger()
    assert deck.loop is None


@pytest.mark.slow
def test_where_a_difference_begins_is_marked_while_the_front_is_played(
    sounding: MainWindow,
    null_sink: NullSink,  # noqa: F811
    qtbot: QtBot,
) -> None:
    panel, deck = sounding.panels["tradeoff"], sounding.features["player"].deck
    along, action = sounding.features["tradeoff"].along, sounding.action["front_mark"]
    choose_look(panel, SHOWN)
    panel.set_filter(Filter(source="Four settings"))
    front = [panel.scene.points[place] for place in panel.scene.walk]
    slowness = [one.figures["real_time_factor"].value for one in front]
    go(sounding, front[0].key)
    assert panel.foot.mark_button.isHidden()
    action.trigger()
    assert "Play the front first" in sounding.notices.banner.text and not along.crossings
    along.pace.setInterval(STAYS)
    sounding.action["front_play"].trigger()
    qtbot.waitUntil(lambda: len(deck.row) == len(front), timeout=PATIENCE_MILLISECONDS)
    assert panel.foot.mark_button.isVisibleTo(panel)
    panel.plot.setFocus()
    QTest.keyClick(panel.plot, Qt.Key.Key_N)
    assert "Walk along the front first" in sounding.notices.banner.text and not along.crossings
    with null_sink.recording() as recording:
        for at, key in ((1, Qt.Key.Key_Right), (0, Qt.Key.Key_Left)):
            QTest.keyClick(panel.plot, key)
            faster = slowness[at] < slowness[1 - at]
            assert panel.foot.mark_button.text() == ("Now I hear it" if faster else "I no longer hear it")
            QTest.keyClick(panel.plot, Qt.Key.Key_N)
            assert along.crossings[-1] == Crossing(front[1 - at].key, front[at].key, faster)
        qtbot.waitUntil(lambda: bool(np.abs(recording.samples).max(initial=0) > 0), timeout=PATIENCE_MILLISECONDS)
    assert deck.sound is deck.row[0] and sounding.features["player"].player.busy, "marking does not disturb the sound"
    shown, found = panel.plot._bands.limit, panel.scene.x[list(panel.scene.walk[:2]), 0]
    assert shown.crossings == 2 and shown.value == pytest.approx(np.exp(np.log(found).mean()))
    assert "2 marks" in panel.foot.remarks and "not blind" in panel.foot.remarks
    for left in (1, 0):
        sounding.state.undo_stack.undo()
        assert len(along.crossings) == left
    assert panel.plot._bands.limit is None and "not blind" not in panel.foot.remarks
    sounding.state.undo_stack.redo()
    panel.foot.mark_button.click()
    assert len(along.crossings) == 2
    sounding.action["front_play"].trigger()
    assert panel.foot.mark_button.isHidden() and "not blind" in panel.foot.remarks, "it stays in the plot"


@pytest.mark.slow
def test_what_has_not_said_the_sentence_is_made_ahead(
    null_sink: NullSink,  # noqa: F811
    make_window: Callable[..., MainWindow],
    data: Path,
    results: Path,
    tmp_path: Path,
    qtbot: QtBot,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("paretone_app.state.jobs.IDLE_MILLISECONDS", 300)
    folder = tmp_path / "partly.study"
    shutil.copytree(results, folder)
    read = read_study(results, results.with_suffix(".toml"), scores=Scores())
    skipping = next(one for one in read.parts.points if one.techniques == ("ditreducio",))
    sentence = skipping.sounds[0]
    with sqlite3.connect(folder / DATABASE) as database:
        database.execute("DELETE FROM takes WHERE take = ?", (sentence.take,))
    database.close()
    window = opened(make_window, data, folder, qtbot)
    player, deck, panel = window.features["player"].player, window.features["player"].deck, window.panels["tradeoff"]
    qtbot.waitUntil(lambda: player.usable, timeout=PATIENCE_MILLISECONDS)
    panel.set_filter(Filter(source="Four settings"))
    front = [panel.scene.points[place] for place in panel.scene.walk]
    lacking = next(one for one in front if one.techniques == ("ditreducio",))
    other = next(one for one in front if one is not lacking)
    go(window, other.key)
    panel.details.sentence.activated.emit([one.spoken for one in other.sounds].index(sentence.spoken))
    window.features["tradeoff"].along.pace.setInterval(STAYS)
    window.action["front_play"].trigger()
    qtbot.waitUntil(lambda: len(deck.row) == len(front) - 1, timeout=PATIENCE_MILLISECONDS)
    assert "1 setting on the front still to say it, the nearest first" in panel.foot.remarks
    heard = deck.sound
    go(window, lacking.key)
    assert deck.sound is heard, "what was heard goes on until the other is there"
    assert "This setting has not said the sentence yet." in panel.foot.remarks
    with null_sink.recording() as recording:
        qtbot.waitUntil(lambda: len(deck.row) == len(front), timeout=PATIENCE_MILLISECONDS)
        assert not window.jobs.busy, "nobody waits for it"
        qtbot.waitUntil(lambda: deck.sound is deck.row[front.index(lacking)], timeout=PATIENCE_MILLISECONDS)
        qtbot.waitUntil(lambda: len(recording.samples) > RATE, timeout=PATIENCE_MILLISECONDS)
    assert longest_silence(recording.samples) < 0.1 * RATE + longest_silence(deck.sound.samples) * RATE / 24000
    assert "still to say" not in panel.foot.remarks
    made = window.results.library.load(deck.sound.key)
    np.testing.assert_allclose(made.samples, read.load_audio(sentence.take)[0], atol=1e-4)
    assert window.state.comparison.take_a is None, "it is not compared"
    close(window, qtbot)


@pytest.mark.slow
def test_what_cannot_be_played_along_the_front_is_said(sounding: MainWindow, qtbot: QtBot) -> None:
    panel, deck = sounding.panels["tradeoff"], sounding.features["player"].deck
    choose_look(panel, SHOWN)
    along, notices = sounding.features["tradeoff"].along, sounding.notices
    study = next(iter(sounding.results.studies.values()))
    aside = (study.folder / "audio").rename(study.folder / "aside")
    try:
        sounding.action["front_play"].trigger()
        qtbot.waitUntil(lambda: bool(notices.banner.text), timeout=PATIENCE_MILLISECONDS)
    finally:
        aside.rename(study.folder / "audio")
    assert not deck.row and not along.on and not panel.foot.play_button.isChecked()
    assert "Traceback" not in notices.banner.text


@pytest.mark.slow
def test_no_click_is_dead(sounding: MainWindow, kept: tuple[Take, ...], qtbot: QtBot) -> None:
    panel, notices = sounding.panels["tradeoff"], sounding.notices
    panel.plot.setFocus()
    choose_look(panel, PlotOptions(x="real_time_factor", y="ops_ratio", ratios=True, published=True))
    go(sounding, next(one.key for one in panel.scene.points if one.published))
    for key in (Qt.Key.Key_Space, Qt.Key.Key_A):
        notices.clear()
        QTest.keyClick(panel.plot, key)
        assert "was measured by others: there is no audio of it." in notices.banner.text
    silent = replace(kept[0], id="e" * 32, samples=np.zeros_like(kept[0].samples), label="Silence")
    sounding.results.takes.add(silent)
    choose_look(panel, SHOWN)
    qtbot.waitUntil(lambda: "e" * 32 in panel.scene.index, timeout=PATIENCE_MILLISECONDS)
    go(sounding, "e" * 32)
    notices.clear()
    QTest.keyClick(panel.plot, Qt.Key.Key_Space)
    assert "is silent: there is nothing to hear in this take." in notices.banner.text
    gone = replace(kept[0], id="f" * 32, setting=replace(kept[0].setting, model="a-model-that-is-gone"))
    sounding.results.takes.add(gone)
    qtbot.waitUntil(lambda: "f" * 32 in panel.scene.index, timeout=PATIENCE_MILLISECONDS)
    go(sounding, "f" * 32)
    assert "That model is not there any more." in panel.details.use_button.toolTip()


@pytest.mark.slow
def test_hear_stops_the_point_alone_and_not_what_listen_plays_after_it(sounding: MainWindow, qtbot: QtBot) -> None:
    panel, listen = sounding.panels["tradeoff"], sounding.features["player"]
    go(sounding, key_of(panel, ()))
    panel.details.a_button.click()
    qtbot.waitUntil(lambda: listen.deck._loaded != (), timeout=PATIENCE_MILLISECONDS)
    take, action = panel.details.sound.take, sounding.action["point_hear"]
    action.trigger()
    assert sounding.features["player"].sounds(take) and listen.player.busy
    listen.deck.set_loop((0.0, 0.1))  # It plays on until it is stopped.
    qtbot.waitUntil(lambda: sounding.state.playing.now.sounding, timeout=PATIENCE_MILLISECONDS)
    point = panel.plot.current
    assert sounding.state.playing.now.title == f"Study “{point.source}” · {point.title} · {point.model}"
    assert sounding.state.playing.now.letter == "A", "the point is A"
    assert panel.details.hear_button.text() == "Stop"
    action.trigger()
    qtbot.waitUntil(lambda: not listen.player.busy, timeout=PATIENCE_MILLISECONDS)
    assert not sounding.features["player"].sounds(take), "a second time falls silent"
    qtbot.waitUntil(lambda: panel.details.hear_button.text() == "Hear", timeout=PATIENCE_MILLISECONDS)
    listen.deck.set_loop((0.0, 0.3))  # It plays on until something else is wanted.
    listen.deck.hear_from("A", 0.0)
    qtbot.waitUntil(lambda: listen.player.playing, timeout=PATIENCE_MILLISECONDS)
    assert listen.player.comparison.mode is not Mode.ALONE and not sounding.features["player"].sounds(take)
    action.trigger()
    assert sounding.features["player"].sounds(take) and listen.player.comparison.mode is Mode.ALONE, "the point, not A"
    labels = [one.text() for one in sounding.panels["listen"].findChildren(QLabel)]
    assert "Single: This sound plays separately from A and B." in labels
    listen.hear_sound(Sound(np.zeros(4800, np.float32), 24000, "Silence"))
    assert not sounding.features["player"].sounds(take), "neither is another sound stopped"


def test_listening_tests_are_a_quality_axis(own_window: MainWindow, qtbot: QtBot, data: Path) -> None:
    window, panel = own_window, own_window.panels["tradeoff"]
    takes = {one.techniques: one for one in panel.scene.points if one.folder is None}
    judged = takes["ditreducio",].setting
    fast = replace(FAST, key=setting_key(judged), setting=judged.to_json())
    for one in abx_session("s", 14, conditions=(BASELINE, fast)):
        trials.append(one, data / "listening")
    window.features["lab"].carried_through.emit()
    qtbot.waitUntil(lambda: any(one.name == "listening:abx" for one in panel.pool.axes), timeout=PATIENCE_MILLISECONDS)
    qtbot.waitUntil(lambda: not window.results.busy, timeout=PATIENCE_MILLISECONDS)
    choose_look(panel, PlotOptions(x="ops_ratio", y="listening:abx"))
    assert {one.techniques for one in panel.scene.points} == {("ditreducio",)}
    assert {one.folder is None for one in panel.scene.points} == {True, False}, "the take and the study's setting"
    assert any("no listening test" in reason for reason, _ in panel.scene.missing)


def test_takes_of_a_study_can_be_heard_blindly(window: MainWindow, qtbot: QtBot, results: Path) -> None:
    window.workspaces.go_to("lab")
    ticks = window.panels["lab"].setup.ticks
    qtbot.waitUntil(lambda: ticks.count() == 4, timeout=PATIENCE_MILLISECONDS)
    titles = {ticks.item(row).text() for row in range(4)}
    assert any("DiTReducio" in one and "Step pruning" in one for one in titles)
    guest = next(iter(window.results.studies[results].takes))
    samples, rate = window.features["lab"]._loader()(guest)
    assert rate == 24000 and len(samples) > 1000
    window.workspaces.go_to("tradeoff")
    window.results.close(results)
    window.workspaces.go_to("lab")
    qtbot.waitUntil(lambda: ticks.count() == 2, timeout=PATIENCE_MILLISECONDS)


def test_a_staircase_along_the_front_is_set_up_and_its_result_is_marked(
    own_window: MainWindow, qtbot: QtBot, data: Path
) -> None:
    window, panel, setup = own_window, own_window.panels["tradeoff"], own_window.panels["lab"].setup
    choose_look(panel, SHOWN)
    front = [panel.scene.points[place] for place in panel.scene.walk]
    row = {one.candidate for one in front if one.folder is not None}
    assert len(row) > 2
    window.action["front_heard"].trigger()
    assert setup.isVisible() and setup.choice.method == "staircase"
    ticked = [one for one in window.features["lab"]._conditions if one.key in setup.choice.ticked]
    assert {one.setting.bare.fingerprint for one in ticked} == row
    plan, problem = window.features["lab"]._planned(setup.choice)
    assert not problem and (plan.why_not() == "" or "3 to 24 faster ones" in plan.why_not())
    # What such a test finds, by a listener who hears everything from twice the speed on.
    conditions = [
        ConditionRecord(one.key, one.title, one.accelerated, "", one.setting.to_json(), "", 0.0, -23.0)
        for one in (*ticked, *ticked[:1])
    ]
    scale = np.linspace(0.0, 2.0, len(conditions) - 1).tolist()
    for one in staircase_session(scale, heard_from=1.0):
        trials.append(replace(one, conditions=tuple(conditions)), data / "listening")
    window.features["lab"].carried_through.emit()
    window.workspaces.go_to("tradeoff")
    choose_look(panel, PlotOptions(x="speed_up", y="log_mel_distance"))
    qtbot.waitUntil(lambda: bool(panel.scene.heard), timeout=PATIENCE_MILLISECONDS)
    (heard,) = panel.scene.heard
    assert heard.candidates == row
    assert "in a blind staircase" in panel.foot.remarks
    marked = panel.plot.grab().toImage()
    panel.show_points([one for one in panel.pool.points if not one.published])
    bare, area = panel.plot.grab().toImage(), panel.plot.frame.area
    assert 1.0 < heard.value < 4.0, "within the row"
    x = round(panel.plot.frame.to_x(heard.value).item())
    inside = range(round(area.top()) + 2, round(area.bottom()) - 2)
    changed = [marked.pixelColor(x, y) != bare.pixelColor(x, y) for y in inside]
    assert not area.left() < x < area.right() or sum(changed) > 0.9 * len(changed), "line and band from top to bottom"
    window.features["tradeoff"]._show_points()
    assert panel.scene.heard == (heard,)
    choose_look(panel, SHOWN)
    assert not panel.scene.heard, "only where the X axis is the speed-up"


def test_without_audio_on_the_front_nothing_along_it_can_be_heard(window: MainWindow) -> None:
    panel = window.panels["tradeoff"]
    points = [replace(one, sounds=()) for one in panel.pool.points if not one.published]
    panel.show_points(points)
    with pytest.raises(PlainError, match="No setting on the front has audio"):
        window.features["tradeoff"].along.find()
    window.features["tradeoff"]._show_points()


def test_a_folder_without_a_study_is_refused_in_a_sentence(window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    window.features["tradeoff"].open_study(tmp_path)
    qtbot.waitUntil(lambda: "There is no study" in window.notices.banner.text, timeout=PATIENCE_MILLISECONDS)
    # Studies, which reads it as well, may be the first to say so.
    qtbot.waitUntil(lambda: tmp_path not in window.results.studies, timeout=PATIENCE_MILLISECONDS)


def test_what_is_damaged_is_told_and_left_to_studies(window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    folder = tmp_path / "damaged.study"
    finished(folder, study(sentences=SENTENCES[:1]))
    spoil_database(folder / DATABASE)
    window.features["tradeoff"].open_study(folder)
    qtbot.waitUntil(lambda: "Open it in the panel Studies" in window.notices.banner.text, timeout=PATIENCE_MILLISECONDS)
    assert "is damaged" in window.notices.banner.text
    panel = window.panels["studies"]
    qtbot.waitUntil(lambda: panel.chooser.findData(str(folder)) >= 0, timeout=PATIENCE_MILLISECONDS)
    assert folder in window.results.studies
    window.workspaces.go_to("studies")
    window.features["studies"].opened.choose(folder)
    panel.aside_button.click()
    assert not (folder / DATABASE).exists()
    assert "with audio, to" in window.notices.banner.text


def test_a_study_that_grows_is_read_again(
    window: MainWindow, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel, folder = window.panels["tradeoff"], tmp_path / "grows.study"
    finished(folder, study(sentences=SENTENCES[:1], grid=None, title="Grows", setting=[{"techniques": {}}]))
    window.results.open(folder)
    qtbot.waitUntil(lambda: panel.scene.own == 7, timeout=PATIENCE_MILLISECONDS)
    finished(folder, study(sentences=SENTENCES[:1], title="Grows"))
    for _ in range(5):
        window.results.read_study(folder)
    qtbot.waitUntil(lambda: panel.scene.own == 9, timeout=PATIENCE_MILLISECONDS)
    qtbot.waitUntil(lambda: not window.results.busy, timeout=PATIENCE_MILLISECONDS)


@pytest.mark.slow
def test_parallel_axes_stand_beside_the_studies_and_filter_the_same_points(sounding: MainWindow, qtbot: QtBot) -> None:
    panel, beside = sounding.panels["tradeoff"], sounding.panels["parallel"]
    choose_look(panel, SHOWN)
    panel.set_filter(Filter(source="Four settings"))
    sounding.workspaces.bring_forward("parallel")
    qtbot.waitUntil(lambda: len(beside.axes.shown.points) == 4, timeout=PATIENCE_MILLISECONDS)
    assert panel.isVisible(), "both are seen"
    beside.axes.setFocus()
    for _ in beside.axes.shown.axes:
        if not beside.axes.cursor_text().startswith("Ops ratio"):
            QTest.keyClick(beside.axes, Qt.Key.Key_Right)
    QTest.keyClick(beside.axes, Qt.Key.Key_Down)
    assert len(panel.scene.points) == 3 and "3 of 4 points" in beside.axes.cursor_text()
    QTest.keyClick(beside.axes, Qt.Key.Key_Return)
    setup, lab = sounding.panels["lab"].setup, sounding.features["lab"]
    assert setup.isVisible() and setup.choice.method == "ranking"
    plan, problem = lab._planned(setup.choice)
    assert not problem and len(plan.conditions) == 3 and plan.why_not() == ""
    sounding.workspaces.go_to("parallel")
    qtbot.waitUntil(beside.isVisible, timeout=PATIENCE_MILLISECONDS)
    beside.axes.ranges_changed.emit(beside.axes.shown.brushed(0, 1e6, 2e6))
    assert not beside.rank_button.isEnabled()
    assert "3 to 12 settings with audio can be ranked; 0 are shown" in beside.rank_button.toolTip()
    QTest.keyClick(beside.axes, Qt.Key.Key_Return)
    assert "3 to 12 settings with audio" in sounding.notices.banner.text
    panel.clear_filter()
    assert not beside.axes.shown.ranges and len(panel.scene.points) > 3
    for high in (0.5, 0.6, 0.7):  # Dragged.
        beside.axes.ranges_changed.emit((Range("ops_ratio", 0.0, high),))
    assert panel.filter.ranges[0].high == 0.7
    sounding.state.undo_stack.undo()
    assert not panel.filter.ranges, "a brush is one entry"
    sounding.state.undo_stack.redo()
    assert panel.filter.ranges[0].high == 0.7
    panel.clear_filter()
    assert not beside.study_button.isEnabled() and "Brush ranges" in beside.study_button.toolTip()


def test_a_study_within_ranges_is_asked_about(window: MainWindow, qtbot: QtBot) -> None:
    panel, studies = window.panels["tradeoff"], window.features["studies"]
    assert "Brush ranges" in window.action["shown_study"].reason
    panel.set_filter(Filter(source="Four settings", ranges=(Range("log_mel_distance", 0.0, 0.001),)))
    window.action["shown_study"].trigger()
    assert "do not differ in any knob" in window.notices.banner.text, "only the baseline is as near"
    panel.set_filter(Filter(source="Four settings", ranges=(Range("speed_up", 0.0, 1e6),)))
    window.action["shown_study"].trigger()
    maker = studies.maker
    lines = {(one.technique, one.knob) for one in maker.axes.varied}
    assert ("steps", "steps") in lines or ("ditreducio", "threshold") in lines
    if not why_no_search():
        assert maker.kind.currentData() == "search" and maker.goals.bounds == [], "the whole range bounds nothing"
    qtbot.waitUntil(lambda: bool(maker.verdict.text()), timeout=PATIENCE_MILLISECONDS)
    maker.reject()


@pytest.mark.slow
def test_what_is_left_is_ranked_by_ear_at_the_sink(
    sounding: MainWindow,
    null_sink: NullSink,  # noqa: F811
    qtbot: QtBot,
) -> None:
    panel, lab = sounding.panels["tradeoff"], sounding.panels["lab"]
    choose_look(panel, SHOWN)
    panel.set_filter(Filter(source="Four settings"))
    sounding.workspaces.bring_forward("parallel")
    beside = sounding.panels["parallel"]
    qtbot.waitUntil(lambda: len(beside.axes.shown.points) == 4, timeout=PATIENCE_MILLISECONDS)
    beside.axes.setFocus()
    QTest.keyClick(beside.axes, Qt.Key.Key_Return)
    begin(sounding, qtbot, length=lab.setup.length.minimum())
    page = lab.trial
    with null_sink.recording() as recording:
        for place in (0, 1):
            page.hear(place)
            qtbot.waitUntil(lambda place=place: page.session.sounding == place, timeout=PATIENCE_MILLISECONDS)
            before = len(recording.samples)
            qtbot.waitUntil(lambda before=before: len(recording.samples) > before + RATE // 2)
    assert np.abs(recording.samples).max() > 0.01, "both of a pair are heard"
    shown = " ".join(one.text() for one in page.findChildren(QLabel))
    assert not any(one.title in shown for one in panel.scene.points if one.techniques), "blind"
    for _ in range(2):
        page.leave_button.click()
    qtbot.waitUntil(lambda: lab.trial is None, timeout=PATIENCE_MILLISECONDS)


@pytest.mark.slow
def test_a_selection_is_shared_as_a_file(sounding: MainWindow, tmp_path: Path) -> None:
    panel, files = sounding.panels["tradeoff"], sounding.features["tradeoff"]
    choose_look(panel, SHOWN)
    panel.set_filter(Filter(source="Four settings"))
    walk = [panel.scene.points[place].key for place in panel.scene.walk]
    go(sounding, walk[0])
    panel.plot.take_selection(walk[:2])
    files.save_selection(tmp_path / "selection.json")
    panel.set_filter(Filter(words="nothing that there is"))
    choose_look(panel, PlotOptions(x="real_time_factor"))
    assert not panel.scene.points
    files.open_selection(tmp_path / "selection.json")
    assert {one.key for one in panel.plot.selected} == set(walk[:2]) and panel.plot.current.key == walk[0]
    assert panel.options == SHOWN and panel.filter == Filter(source="Four settings")
    panel.plot.take_selection([])
    sounding.action["selection_save"].trigger()
    assert "Select points of a study first" in sounding.notices.banner.text
    (tmp_path / "selection.json").write_text("nonsense")
    with pytest.raises(PlainError, match="not a selection"):
        files.open_selection(tmp_path / "selection.json")
    assert panel.options == SHOWN, "nothing is lost"


def test_everything_is_in_the_menu(window: MainWindow, tmp_path: Path) -> None:
    panel, action = window.panels["tradeoff"], window.action
    menus = {one.text() for menu in window.menuBar().findChildren(QMenu) for one in menu.actions()}
    for one in (action["point_hear"], action["point_a"], action["point_svg"], action["point_csv"], action["front_on"]):
        assert one.text() in menus
    for one in (action["point_nearer"], action["point_farther"], action["point_everything"]):
        assert one.text() in menus
    assert "Go to Trade-off" in menus
    action["front_on"].trigger()
    first = panel.plot.current.key
    assert panel.scene.points[panel.scene.walk[0]].key == first
    action["point_dominated"].trigger()
    assert not panel.options.dominated and not panel.options_line.boxes["dominated"].isChecked()
    panel.options_line.boxes["intervals"].click()
    assert not action["point_intervals"].isChecked(), "menu and panel agree"
    action["point_log_x"].trigger()
    assert panel.options.log_x and panel.scene.logarithmic == (True, False)
    names = ("dominated", "intervals", "ratios", "published", "log_x", "log_y")
    for name in names:
        one = action[f"point_{name}"]
        assert one.text() in menus
        before = getattr(panel.options, name)
        one.trigger()
        assert getattr(panel.options, name) is not before, f"{one.text()} switches {name}"
        one.trigger()
        assert getattr(panel.options, name) is before
    action["point_nearer"].trigger()
    action["point_nearer"].trigger()
    action["point_farther"].trigger()
    assert panel.plot.sections != EVERYTHING
    action["point_everything"].trigger()
    assert panel.plot.sections == EVERYTHING
    window.features["tradeoff"].write(tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text().startswith("title,kind")
    with pytest.raises(PlainError):
        window.features["tradeoff"].write(tmp_path / "nowhere" / "out.csv")


def test_what_is_shown_is_there_again_after_a_restart(
    own_window: MainWindow, make_window: Callable[..., MainWindow], data: Path, results: Path, qtbot: QtBot
) -> None:
    panel = own_window.panels["tradeoff"]
    choose_look(panel, replace(SHOWN, dominated=False, published=True, log_y=True))
    panel.set_filter(Filter(source="Four settings", hidden=frozenset({"steps"})))
    look, chosen = panel.options, panel.filter
    close(own_window, qtbot)
    again = make_window(data=data)
    again.show()
    again.activateWindow()
    qtbot.waitUntil(lambda: again.is_built, timeout=PATIENCE_MILLISECONDS)
    shown = again.panels["tradeoff"]
    assert shown.options == look
    again.workspaces.go_to("tradeoff")
    # What was opened here is open again, and among the recent ones of Studies.
    qtbot.waitUntil(lambda: shown.pool.own.sum() == 6, timeout=PATIENCE_MILLISECONDS)
    assert (shown.options, shown.filter) == (look, chosen)
    assert {one.source for one in shown.scene.points if not one.published} == {"Four settings"}
    recent = [one.data() for one in again.panels["studies"].recent_menu.actions() if one.isVisible()]
    assert recent == [str(results)]
    assert again.action["point_log_y"].isChecked() and not again.action["point_dominated"].isChecked()
