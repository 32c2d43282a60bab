"""The trade-off view in the real window with sound: points are heard, and the front is played along."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from paretone.errors import PlainError
from paretone.measure.loudness import matching_gains
from paretone.setting.take import Take
from paretone_app.audio.player import Mode
from paretone_app.audio.sound import Sound
from paretone_app.features.tradeoff.scene import Crossing, Filter, PlotOptions, Range
from paretone_app.shell.window import MainWindow
from tests.app.conftest import PATIENCE_MILLISECONDS
from tests.app.features.lab.testing import begin
from tests.app.features.tradeoff.using import SHOWN, STAYS, choose_look, go, key_of, lent, longest_silence
from tests.sound import RATE, NullSink, lasting_sink  # noqa: F401

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def surroundings(lasting_sink: NullSink) -> NullSink:  # noqa: F811
    """Sound, before there is a window."""
    return lasting_sink


@pytest.fixture
def sounding(borrowed_window: MainWindow, kept: tuple[Take, ...], results: Path, qtbot: QtBot) -> Iterator[MainWindow]:
    """A window with sound that shows the study and the library."""
    qtbot.waitUntil(lambda: borrowed_window.features["player"].player.usable, timeout=PATIENCE_MILLISECONDS)
    pace = borrowed_window.features["tradeoff"].along.pace
    usual = pace.interval()
    with lent(borrowed_window, kept, results, qtbot) as made:
        yield made
        if made.action["front_play"].isChecked():
            made.action["front_play"].trigger()
        made.features["player"].deck.stop()
        made.features["player"].deck.set_loop(None)
    pace.setInterval(usual)


def test_a_click_lets_a_point_be_heard(sounding: MainWindow, lasting_sink: NullSink, qtbot: QtBot) -> None:  # noqa: F811
    panel, player = sounding.panels["tradeoff"], sounding.features["player"].player
    panel.choose(key_of(panel, ("steps",)))
    sound = panel.details.sound
    place = panel.plot.drawn.place(panel.scene.index[panel.plot.current.key]).toPoint()
    with lasting_sink.recording() as recording:
        QTest.mouseClick(panel.plot, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, place)
        assert sounding.features["player"].sounds(sound.take)
        qtbot.waitUntil(lambda: bool(np.abs(recording.samples).max(initial=0) > 0), timeout=PATIENCE_MILLISECONDS)
    qtbot.waitUntil(lambda: not player.playing, timeout=PATIENCE_MILLISECONDS)
    go(sounding, key_of(panel, (), of_study=False))
    with lasting_sink.recording() as recording:
        sounding.action["point_hear"].trigger()
        assert sounding.features["player"].sounds(panel.plot.current.key)
        qtbot.waitUntil(lambda: bool(np.abs(recording.samples).max(initial=0) > 0), timeout=PATIENCE_MILLISECONDS)


def test_the_front_is_played_and_switches_where_the_sentence_is(
    sounding: MainWindow,
    lasting_sink: NullSink,  # noqa: F811
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
    with lasting_sink.recording() as recording:
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


def test_the_front_plays_by_itself_to_its_end_and_leaves_the_loop_as_it_was(
    sounding: MainWindow,
    lasting_sink: NullSink,  # noqa: F811
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


def test_where_a_difference_begins_is_marked_while_the_front_is_played(
    sounding: MainWindow,
    lasting_sink: NullSink,  # noqa: F811
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
    with lasting_sink.recording() as recording:
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


def test_what_is_left_is_ranked_by_ear_at_the_sink(
    sounding: MainWindow,
    lasting_sink: NullSink,  # noqa: F811
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
    with lasting_sink.recording() as recording:
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
