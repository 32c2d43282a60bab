"""The trade-off view in the real window with sound: a real study of the small model and a real library; points are
heard, compared, kept and used, and the front is played along."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QMenu
from pytestqt.qtbot import QtBot

from paretone.errors import PlainError
from paretone.extras import why_no_search
from paretone.listening import trials
from paretone.listening.trials import ConditionRecord
from paretone.measure.loudness import matching_gains
from paretone.sampling.actions import SkipAction
from paretone.setting.setting import Setting, UsedTechnique
from paretone.setting.take import Measurements, Take, Trace
from paretone.studies.store import DATABASE, Store
from paretone_app.audio.player import Mode
from paretone_app.audio.sound import Sound, same_place
from paretone_app.features.tradeoff.panel import TradeoffPanel
from paretone_app.features.tradeoff.scene import Crossing, Filter, PlotOptions, Range
from paretone_app.listening.stimuli import setting_key
from paretone_app.plotting.chart import EVERYTHING
from paretone_app.results.points import Point, Scores
from paretone_app.results.study import read_study
from paretone_app.shell.window import MainWindow
from paretone_app.widgets.side_panel import CHOSEN
from tests.app.damage import spoil_database
from tests.app.features.lab.test_presenter import begin, folder_of
from tests.app.features.tradeoff.using import SENTENCES, SHOWN, STAYS, choose_look, go, key_of, longest_silence, showing
from tests.engine.listening.listeners import BASELINE, FAST
from tests.engine.listening.test_results import abx_session, staircase_session
from tests.engine.measure.test_decoding import PLAIN, TRACE
from tests.engine.studies.small import finished, study
from tests.sound import RATE, NullSink

pytestmark = pytest.mark.slow
BEFORE = "lasting_sink"


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
    return tuple(read.load(one.sounds[1].take) for one in read.parts.points if one.techniques in ((), ("ditreducio",)))


@pytest.fixture
def window(borrowed_window: MainWindow, kept: tuple[Take, ...], results: Path, qtbot: QtBot) -> Iterator[MainWindow]:
    """A window with sound that shows the study and the library."""
    window, deck, panel = borrowed_window, borrowed_window.features["player"].deck, borrowed_window.panels["tradeoff"]
    qtbot.waitUntil(lambda: window.features["player"].player.usable)
    pace = window.features["tradeoff"].along.pace
    usual = pace.interval()
    for take in kept:
        window.results.takes.add(take)
    yield showing(window, results, qtbot)
    if window.action["front_play"].isChecked():
        window.action["front_play"].trigger()
    deck.stop()
    deck.set_loop(None)
    panel.plot.show_everything()
    panel.set_filter(Filter())
    choose_look(panel, PlotOptions())
    pace.setInterval(usual)


@pytest.fixture
def listening(window: MainWindow) -> Iterator[Path]:
    """Where results of listening tests are; afterwards there are none."""
    folder = folder_of(window) / trials.FOLDER
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
    window.features["lab"].carried_through.emit()


def front_of(panel: TradeoffPanel) -> list[Point]:
    """The points on the front, from left to right, once the study alone is shown."""
    choose_look(panel, SHOWN)
    panel.set_filter(Filter(source="Four settings"))
    return [panel.scene.points[place] for place in panel.scene.walk]


def play(window: MainWindow, count: int, qtbot: QtBot) -> None:
    """Play the front, which does not go on by itself, once ``count`` of its takes are there."""
    window.features["tradeoff"].along.pace.setInterval(STAYS)
    window.action["front_play"].trigger()
    qtbot.waitUntil(lambda: len(window.features["player"].deck.row) == count)


# --- Points -----------------------------------------------------------------------------------------------------------
def test_points_of_a_study_are_compared_without_being_kept(window: MainWindow, results: Path) -> None:
    panel, compared = window.panels["tradeoff"], window.state.comparison
    assert panel.scene.own == 6 and panel.pool.origins["source"] == ("Four settings", "Takes")
    go(window, key_of(panel, ()))
    panel.details.a_button.click()
    both = ("ditreducio", "steps")
    go(window, key_of(panel, both))
    QTest.keyClick(panel.plot, Qt.Key.Key_B)
    take = compared.take_b
    assert [one.technique for one in take.setting.techniques] == list(both)
    assert take.fidelity_to == compared.take_a.id and take.log_mel_distance is not None
    assert take.setting.technique("ditreducio").artefact, "with the table that it was made with"
    assert take.samples.dtype == np.float32 and len(take.samples) > 1000
    assert take.text == compared.take_a.text == SENTENCES[0]
    assert "Against A:" in panel.details.text and panel.plot.marks.letters[key_of(panel, both)] == "B"
    assert {one.what for one in compared.differences()} == set(both) and len(window.results.library) == 2
    window.results.close(results)
    assert panel.scene.own == 2


def test_points_wait_until_they_are_seen(window: MainWindow, kept: tuple[Take, ...], qtbot: QtBot) -> None:
    panel, parallel = window.panels["tradeoff"], window.panels["parallel"]
    with qtbot.assertNotEmitted(panel.scene_changed):
        window.workspaces.go_to("lab")  # Which shows points, too.
        window.results.takes.add(replace(kept[0], id="0" * 32))
        qtbot.waitUntil(lambda: len(window.results.points) == 7)
    shown = parallel.axes.shown
    window.workspaces.go_to("tradeoff")
    assert panel.scene.own == 7 and parallel.axes.shown is shown, "at once; the tab behind it waits"
    window.workspaces.go_to("parallel")
    qtbot.waitUntil(lambda: len(parallel.axes.shown.points) == 7)


def test_a_point_is_brought_into_takes(window: MainWindow, qtbot: QtBot) -> None:
    panel, library = window.panels["tradeoff"], window.results.library
    go(window, key_of(panel, ("steps",)))
    window.action["point_keep"].trigger()
    qtbot.waitUntil(lambda: panel.scene.own == 7)
    kept = library.load(panel.details.sound.take)
    assert kept.label and kept.setting.technique("steps") and len(library) == 3
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
    QTest.keyClick(panel.plot, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
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
    shown = strategy.reference
    assert shown in tables.values() and shown.steps == 4
    assert "Chosen point, not in use" in strategy.headline.text()
    go(window, key_of(panel, ("ditreducio", "steps")))
    assert strategy.reference.steps == 2
    go(window, key_of(panel, ("ditreducio",), of_study=False))
    assert strategy.reference == shown, "a take's table is found by its fingerprint"
    go(window, key_of(panel, ()))
    assert strategy.reference is None


def test_setup_takes_a_point_and_points_follow_setup_and_strategy(window: MainWindow, qtbot: QtBot) -> None:
    strategy = window.features["strategy"].state
    panel, state = window.panels["tradeoff"], window.state
    key = key_of(panel, ("ditreducio",))
    go(window, key)
    panel.details.use_button.click()
    table = strategy.table
    assert table is not None and state.selection.setting.technique("ditreducio").artefact == table.fingerprint
    assert not state.availability.why_not_accelerate()
    window.workspaces.go_to("tradeoff")
    qtbot.waitUntil(panel.isVisible)
    assert panel.plot.marks.letters[key] == "Setup"
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
    state.selection.switch("ditreducio", False)
    window.workspaces.go_to("tradeoff")
    qtbot.waitUntil(panel.isVisible)
    assert key not in panel.plot.marks.letters, "what changed meanwhile is shown"


def test_what_cannot_be_opened_is_told(window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    banner, features = window.notices.banner, window.features
    features["tradeoff"].open_study(tmp_path)
    qtbot.waitUntil(lambda: "There is no study" in banner.text)
    # Studies, which reads it as well, may be the first to say so.
    qtbot.waitUntil(lambda: tmp_path not in window.results.studies)
    folder = tmp_path / "damaged.study"
    finished(folder, study(sentences=SENTENCES[:1], grid=None, setting=[{"techniques": {}}]))
    spoil_database(folder / DATABASE)
    features["tradeoff"].open_study(folder)
    qtbot.waitUntil(lambda: "Open it in the panel Studies" in banner.text)
    assert "is damaged" in banner.text and folder in window.results.studies
    assert window.panels["studies"].chooser.findData(str(folder)) >= 0


def test_everything_is_in_the_menu(window: MainWindow, tmp_path: Path) -> None:
    panel, action = window.panels["tradeoff"], window.action
    menus = {one.text() for menu in window.menuBar().findChildren(QMenu) for one in menu.actions()}
    looks = ("dominated", "intervals", "ratios", "published", "log_x", "log_y")
    points = (*looks, "hear", "a", "svg", "csv", "nearer", "farther", "everything")
    assert {action[one].text() for one in ("front_on", *(f"point_{one}" for one in points))} < menus
    action["front_on"].trigger()
    assert panel.scene.points[panel.scene.walk[0]].key == panel.plot.current.key
    panel.options_line.boxes["intervals"].click()
    assert not action["point_intervals"].isChecked(), "menu and panel agree"
    for _ in range(2):
        before = panel.options
        for name in looks:
            action[f"point_{name}"].trigger()
        assert all(getattr(panel.options, name) is not getattr(before, name) for name in looks)
    for name in ("nearer", "nearer", "farther"):
        action[f"point_{name}"].trigger()
    assert panel.plot.sections != EVERYTHING
    action["point_everything"].trigger()
    assert panel.plot.sections == EVERYTHING
    window.features["tradeoff"].write(tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text().startswith("title,kind")


def test_a_selection_is_shared_as_a_file(window: MainWindow, tmp_path: Path) -> None:
    panel, files = window.panels["tradeoff"], window.features["tradeoff"]
    walk = [one.key for one in front_of(panel)]
    go(window, walk[0])
    panel.plot.take_selection(walk[:2])
    files.save_selection(tmp_path / "selection.json")
    panel.set_filter(Filter(words="nothing that there is"))
    choose_look(panel, PlotOptions(x="real_time_factor"))
    assert not panel.scene.points
    files.open_selection(tmp_path / "selection.json")
    assert {one.key for one in panel.plot.selected} == set(walk[:2]) and panel.plot.current.key == walk[0]
    assert panel.options == SHOWN and panel.filter == Filter(source="Four settings")
    panel.plot.take_selection([])
    window.action["selection_save"].trigger()
    assert "Select points of a study first" in window.notices.banner.text
    (tmp_path / "selection.json").write_text("nonsense")
    with pytest.raises(PlainError, match="not a selection"):
        files.open_selection(tmp_path / "selection.json")
    assert panel.options == SHOWN, "nothing is lost"


# --- Listening tests, and ranges --------------------------------------------------------------------------------------
def test_listening_tests_are_a_quality_axis(window: MainWindow, qtbot: QtBot, listening: Path) -> None:
    panel = window.panels["tradeoff"]
    judged = {one.techniques: one for one in panel.scene.points if one.folder is None}["ditreducio",].setting
    fast = replace(FAST, key=setting_key(judged), setting=judged.to_json())
    for one in abx_session("s", 14, conditions=(BASELINE, fast)):
        trials.append(one, listening)
    window.features["lab"].carried_through.emit()
    qtbot.waitUntil(lambda: any(one.name == "listening:abx" for one in panel.pool.axes))
    qtbot.waitUntil(lambda: not window.results.busy)
    choose_look(panel, PlotOptions(x="ops_ratio", y="listening:abx"))
    assert {one.techniques for one in panel.scene.points} == {("ditreducio",)}
    assert {one.folder is None for one in panel.scene.points} == {True, False}, "the take and the study's setting"
    assert any("no listening test" in reason for reason, _ in panel.scene.missing)


def test_a_staircase_along_the_front_is_set_up_and_marked(window: MainWindow, qtbot: QtBot, listening: Path) -> None:
    panel, setup = window.panels["tradeoff"], window.panels["lab"].setup
    front = [panel.scene.points[place] for place in panel.scene.walk]
    row = {one.candidate for one in front if one.folder is not None}
    assert len(row) > 2
    window.action["front_heard"].trigger()
    assert setup.isVisible() and setup.choice.method == "staircase"
    ticked = [one for one in window.features["lab"].conditions if one.key in setup.choice.ticked]
    assert {one.setting.bare.fingerprint for one in ticked} == row
    _, problem = window.features["lab"].plan_of(setup.choice)
    assert problem == "" or "3 to 24 faster ones" in problem
    # What such a test finds, by a listener who hears everything from twice the speed on.
    conditions = [
        ConditionRecord(one.key, one.title, one.accelerated, "", one.setting.to_json(), "", 0.0, -23.0)
        for one in (*ticked, *ticked[:1])
    ]
    for one in staircase_session(np.linspace(0.0, 2.0, len(conditions) - 1).tolist(), heard_from=1.0):
        trials.append(replace(one, conditions=tuple(conditions)), listening)
    window.features["lab"].carried_through.emit()
    window.workspaces.go_to("tradeoff")
    choose_look(panel, PlotOptions(x="speed_up", y="log_mel_distance"))
    qtbot.waitUntil(lambda: bool(panel.scene.heard))
    (heard,) = panel.scene.heard
    assert heard.candidates == row and 1.0 < heard.value < 4.0, "within the row"
    assert "in a blind staircase" in panel.foot.remarks.text()
    choose_look(panel, SHOWN)
    assert not panel.scene.heard, "only where the X axis is the speed-up"


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
        assert maker.kind.currentData() == "search" and maker.goals.bounds.lines == [], "the whole range bounds nothing"
    qtbot.waitUntil(lambda: bool(maker.verdict.text()))
    maker.reject()


def test_what_parallel_axes_leave_is_ranked_by_ear(window: MainWindow, lasting_sink: NullSink, qtbot: QtBot) -> None:
    panel, beside, lab = window.panels["tradeoff"], window.panels["parallel"], window.panels["lab"]
    panel.set_filter(Filter(source="Four settings"))
    window.workspaces.bring_forward("parallel")
    qtbot.waitUntil(lambda: len(beside.axes.shown.points) == 4)
    assert panel.isVisible(), "both are seen"
    beside.axes.ranges_changed.emit(beside.axes.shown.brushed(0, 1e6, 2e6))
    assert not beside.rank_button.isEnabled()
    assert "3 to 12 settings with audio can be ranked; 0 are shown" in beside.rank_button.toolTip()
    QTest.keyClick(beside.axes, Qt.Key.Key_Return)
    assert "3 to 12 settings with audio" in window.notices.banner.text
    panel.clear_filter()
    assert not beside.axes.shown.ranges and len(panel.scene.points) > 3
    for high in (0.5, 0.6, 0.7):  # Dragged.
        beside.axes.ranges_changed.emit((Range("ops_ratio", 0.0, high),))
    window.state.undo_stack.undo()
    assert not panel.filter.ranges, "a brush is one entry"
    window.state.undo_stack.redo()
    assert panel.filter.ranges[0].high == 0.7
    panel.set_filter(Filter(source="Four settings"))
    assert not beside.study_button.isEnabled() and "Brush ranges" in beside.study_button.toolTip()
    beside.axes.setFocus()
    for _ in beside.axes.shown.axes:
        if not beside.axes.cursor_text().startswith("Ops ratio"):
            QTest.keyClick(beside.axes, Qt.Key.Key_Right)
    QTest.keyClick(beside.axes, Qt.Key.Key_Down)
    assert len(panel.scene.points) == 3 and "3 of 4 points" in beside.axes.cursor_text()
    QTest.keyClick(beside.axes, Qt.Key.Key_Return)
    assert lab.setup.isVisible() and lab.setup.choice.method == "ranking"
    begin(window, qtbot, length=lab.setup.length.minimum())
    page = lab.trial
    with lasting_sink.recording() as recording:
        for place in (0, 1):
            page.hear(place)
            qtbot.waitUntil(lambda place=place: page.session.sounding == place)
            before = len(recording.samples)
            qtbot.waitUntil(lambda before=before: len(recording.samples) > before + RATE // 2)
    assert np.abs(recording.samples).max() > 0.01, "both of a pair are heard"
    labels = " ".join(one.text() for one in page.findChildren(QLabel))
    assert not any(one.title in labels for one in panel.scene.points if one.techniques), "blind"
    for _ in range(2):
        page.leave_button.click()
    qtbot.waitUntil(lambda: lab.trial is None)


# --- Heard ------------------------------------------------------------------------------------------------------------
def test_a_click_lets_a_point_be_heard(window: MainWindow, lasting_sink: NullSink, qtbot: QtBot) -> None:
    panel, player = window.panels["tradeoff"], window.features["player"]
    panel.choose(key_of(panel, ("steps",)))
    place = panel.plot.drawn.place(panel.scene.index[panel.plot.current.key]).toPoint()
    with lasting_sink.recording() as recording:
        QTest.mouseClick(panel.plot, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, place)
        assert player.deck.sound.key == panel.details.sound.take
        qtbot.waitUntil(lambda: bool(np.abs(recording.samples).max(initial=0) > 0))


def test_no_click_is_dead(window: MainWindow, kept: tuple[Take, ...], qtbot: QtBot) -> None:
    panel, notices = window.panels["tradeoff"], window.notices
    panel.plot.setFocus()
    choose_look(panel, PlotOptions(x="real_time_factor", y="ops_ratio", ratios=True, published=True))
    go(window, next(one.key for one in panel.scene.points if one.published))
    for key in (Qt.Key.Key_Space, Qt.Key.Key_A):
        notices.banner.clear()
        QTest.keyClick(panel.plot, key)
        assert "was measured by others: there is no audio of it." in notices.banner.text
    silent = replace(kept[0], id="e" * 32, samples=np.zeros_like(kept[0].samples), label="Silence")
    window.results.takes.add(silent)
    choose_look(panel, SHOWN)
    qtbot.waitUntil(lambda: "e" * 32 in panel.scene.index)
    go(window, "e" * 32)
    notices.banner.clear()
    QTest.keyClick(panel.plot, Qt.Key.Key_Space)
    assert "is silent: there is nothing to hear in this take." in notices.banner.text
    gone = replace(kept[0], id="f" * 32, setting=replace(kept[0].setting, model="a-model-that-is-gone"))
    window.results.takes.add(gone)
    qtbot.waitUntil(lambda: "f" * 32 in panel.scene.index)
    go(window, "f" * 32)
    assert "That model is not there any more." in panel.details.use_button.toolTip()


def test_hear_stops_the_point_alone_and_not_what_listen_plays_after_it(window: MainWindow, qtbot: QtBot) -> None:
    panel, listen, playing = window.panels["tradeoff"], window.features["player"], window.state.playing
    go(window, key_of(panel, ()))
    panel.details.a_button.click()
    qtbot.waitUntil(lambda: listen.deck.loaded != ())
    take, action = panel.details.sound.take, window.action["point_hear"]
    action.trigger()
    listen.deck.set_loop((0.0, 0.1))
    listen.player.play()  # On and on, even if it ended before a busy machine came here.
    assert listen.sounds(take)
    qtbot.waitUntil(lambda: playing.now.sounding)
    point = panel.plot.current
    assert playing.now.title == f"Study “{point.source}” · {point.title} · {point.model}"
    assert playing.now.letter == "A", "the point is A"
    assert panel.details.hear_button.text() == "Stop"
    action.trigger()
    qtbot.waitUntil(lambda: not listen.player.busy)
    assert not listen.sounds(take), "a second time falls silent"
    qtbot.waitUntil(lambda: panel.details.hear_button.text() == "Hear")
    listen.deck.set_loop((0.0, 0.3))  # It plays on until something else is wanted.
    listen.deck.hear_from("A", 0.0)
    qtbot.waitUntil(lambda: listen.player.playing)
    assert listen.player.comparison.mode is not Mode.ALONE and not listen.sounds(take)
    action.trigger()
    assert listen.deck.sound.key == take and listen.player.comparison.mode is Mode.ALONE, "the point, not A"
    listen.hear_sound(Sound(np.zeros(4800, np.float32), 24000, "Silence"))
    assert not listen.sounds(take), "neither is another sound stopped"


# --- The front is played ----------------------------------------------------------------------------------------------
def test_the_front_is_played_and_switches_in_place(window: MainWindow, lasting_sink: NullSink, qtbot: QtBot) -> None:
    panel, presenter = window.panels["tradeoff"], window.features["player"]
    player, deck, action = presenter.player, presenter.deck, window.action["front_play"]
    front = front_of(panel)
    assert len(front) > 2
    go(window, front[1].key)
    play(window, len(front), qtbot)
    assert action.isChecked() and panel.foot.play_button.isChecked() and deck.loop is None
    deck.toggle_loop()  # It stays with a setting.
    player.play()  # It may have ended meanwhile.
    for key in (Qt.Key.Key_Home, Qt.Key.Key_Right):
        QTest.keyClick(panel.plot, key)
    assert deck.sound is deck.row[1] and player.comparison.mode is Mode.SYNC
    assert window.state.playing.now.title.startswith(f"Front, 2 of {len(front)} · {front[1].title}")
    qtbot.waitUntil(lambda: window.state.playing.now.sounding)
    with lasting_sink.recording() as recording:
        panel.plot.setFocus()
        QTest.keyClick(panel.plot, Qt.Key.Key_Right)
        assert panel.plot.current.key == front[2].key and deck.sound is deck.row[2]
        qtbot.waitUntil(lambda: player.choice == 2)
        assert player.playing and action.isChecked(), "it goes on without beginning again"
        qtbot.waitUntil(lambda: len(recording.samples) > RATE)
    assert longest_silence(recording.samples) < 0.3 * RATE + longest_silence(deck.row[2].samples) * RATE / 24000
    levels = [10 ** (gain / 20) for gain in matching_gains([(one.samples, one.rate) for one in deck.row]).gains]
    assert np.ptp(np.log(np.array(player.mixer.programme.gains) / np.array(levels))) < 0.02, "equally loud"
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
    qtbot.waitUntil(lambda: not player.busy)
    action.trigger()
    assert not action.isChecked() and not deck.row and not panel.plot.drags_along
    window.action["point_hear"].trigger()
    assert len(deck.row) == 1 and not panel.foot.play_button.isChecked()


def test_a_front_plays_to_its_end_and_keeps_the_loop(window: MainWindow, qtbot: QtBot, kept: tuple[Take, ...]) -> None:
    panel, presenter, compared = window.panels["tradeoff"], window.features["player"], window.state.comparison
    deck, action = presenter.deck, window.action["front_play"]
    compared.set_a(kept[0])
    compared.set_b(kept[1])
    qtbot.waitUntil(lambda: deck.complete)
    deck.set_loop((0.1, 0.4))
    front = front_of(panel)
    go(window, front[0].key)
    heard: list[tuple[str, str]] = []

    def note() -> None:
        if deck.row:
            heard.append((deck.sound.key, panel.plot.current.key))

    deck.changed.connect(note)
    action.trigger()
    qtbot.waitUntil(lambda: len(deck.row) == len(front))
    assert "settings in turn" in panel.foot.remarks.text()
    row = [one.key for one in deck.row]
    qtbot.waitUntil(lambda: not action.isChecked())
    one_by_one = list(zip(row, [one.key for one in front], strict=True))
    assert list(dict.fromkeys(heard)) == one_by_one, "each once, from left to right"
    assert panel.plot.current.key == front[-1].key and not deck.row and not panel.foot.play_button.isChecked()
    assert deck.loop == (0.1, 0.4) == window.state.playing.now.loop
    # It is steered, and goes on from there the same way.
    pace = window.features["tradeoff"].along.pace
    usual = pace.interval()
    for start, key, way in ((0, Qt.Key.Key_Right, front), (len(front) - 1, Qt.Key.Key_Left, front[::-1])):
        heard.clear()
        go(window, front[start].key)
        pace.setInterval(STAYS)
        action.trigger()
        qtbot.waitUntil(lambda: bool(deck.row))
        QTest.keyClick(panel.plot, key)
        pace.setInterval(usual)
        qtbot.waitUntil(lambda: not action.isChecked())
        assert list(dict.fromkeys(point for _, point in heard)) == [one.key for one in way]
    deck.changed.disconnect(note)
    # Paused, it waits; ended, the loop is there again.
    go(window, front[0].key)
    action.trigger()
    qtbot.waitUntil(lambda: bool(deck.row))
    deck.stop()
    at = deck.sound
    qtbot.wait(200)
    assert action.isChecked() and deck.sound is at and not presenter.player.busy
    action.trigger()
    assert not action.isChecked() and deck.loop == (0.1, 0.4)


def test_where_a_difference_begins_is_marked(window: MainWindow, lasting_sink: NullSink, qtbot: QtBot) -> None:
    panel, deck = window.panels["tradeoff"], window.features["player"].deck
    front = front_of(panel)
    slowness = [one.figures["real_time_factor"].value for one in front]
    go(window, front[0].key)
    assert panel.foot.mark_button.isHidden()
    window.action["front_mark"].trigger()
    assert "Play the front first" in window.notices.banner.text and not panel.crossings
    play(window, len(front), qtbot)
    deck.toggle_loop()
    deck.player.play()  # It may have ended meanwhile.
    assert panel.foot.mark_button.isVisibleTo(panel)
    panel.plot.setFocus()
    QTest.keyClick(panel.plot, Qt.Key.Key_N)
    assert "Walk along the front first" in window.notices.banner.text and not panel.crossings
    with lasting_sink.recording() as recording:
        for at, key in ((1, Qt.Key.Key_Right), (0, Qt.Key.Key_Left)):
            QTest.keyClick(panel.plot, key)
            faster = slowness[at] < slowness[1 - at]
            assert panel.foot.mark_button.text() == ("Now I hear it" if faster else "I no longer hear it")
            QTest.keyClick(panel.plot, Qt.Key.Key_N)
            assert panel.crossings[-1] == Crossing(front[1 - at].key, front[at].key, faster)
        qtbot.waitUntil(lambda: bool(np.abs(recording.samples).max(initial=0) > 0))
    assert deck.sound is deck.row[0] and window.features["player"].player.busy, "marking does not disturb the sound"
    shown, found = panel.plot.bands.limit, panel.scene.x[list(panel.scene.walk[:2]), 0]
    assert shown.crossings == 2 and shown.value == pytest.approx(np.exp(np.log(found).mean()))
    assert "2 marks" in panel.foot.remarks.text() and "not blind" in panel.foot.remarks.text()
    for left in (1, 0):
        window.state.undo_stack.undo()
        assert len(panel.crossings) == left
    assert panel.plot.bands.limit is None and "not blind" not in panel.foot.remarks.text()
    window.state.undo_stack.redo()
    panel.foot.mark_button.click()
    assert len(panel.crossings) == 2
    window.action["front_play"].trigger()
    assert panel.foot.mark_button.isHidden() and "not blind" in panel.foot.remarks.text(), "it stays in the plot"


def test_what_cannot_be_played_along_the_front_is_said(window: MainWindow, qtbot: QtBot) -> None:
    panel, deck = window.panels["tradeoff"], window.features["player"].deck
    choose_look(panel, SHOWN)
    along, notices = window.features["tradeoff"].along, window.notices
    study = next(iter(window.results.studies.values()))
    aside = (study.folder / "audio").rename(study.folder / "aside")
    try:
        window.action["front_play"].trigger()
        qtbot.waitUntil(lambda: bool(notices.banner.text))
    finally:
        aside.rename(study.folder / "audio")
    assert not deck.row and not along.row.on and not panel.foot.play_button.isChecked()
    assert "Traceback" not in notices.banner.text


def test_missing_takes_are_made_ahead(
    window: MainWindow, lasting_sink: NullSink, results: Path, tmp_path: Path, qtbot: QtBot
) -> None:
    idle = window.state.making.idle.timer
    usual = idle.interval()
    idle.setInterval(300)
    window.results.close(results)
    folder = tmp_path / "partly.study"
    shutil.copytree(results, folder)
    read = read_study(results, results.with_suffix(".toml"), scores=Scores())
    sentence = next(one for one in read.parts.points if one.techniques == ("ditreducio",)).sounds[0]
    with closing(sqlite3.connect(folder / DATABASE)) as database, database:
        database.execute("DELETE FROM takes WHERE take = ?", (sentence.take,))
    showing(window, folder, qtbot)
    deck, panel = window.features["player"].deck, window.panels["tradeoff"]
    front = front_of(panel)
    lacking = next(one for one in front if one.techniques == ("ditreducio",))
    other = next(one for one in front if one is not lacking)
    go(window, other.key)
    panel.details.sentence.activated.emit([one.spoken for one in other.sounds].index(sentence.spoken))
    play(window, len(front) - 1, qtbot)
    assert "1 setting on the front still to say it, the nearest first" in panel.foot.remarks.text()
    heard = deck.sound
    go(window, lacking.key)
    assert deck.sound is heard, "what was heard goes on until the other is there"
    assert "This setting has not said the sentence yet." in panel.foot.remarks.text()
    with lasting_sink.recording() as recording:
        qtbot.waitUntil(lambda: len(deck.row) == len(front))
        assert not window.jobs.busy, "nobody waits for it"
        qtbot.waitUntil(lambda: deck.sound is deck.row[front.index(lacking)])
        qtbot.waitUntil(lambda: len(recording.samples) > RATE)
    assert longest_silence(recording.samples) < 0.1 * RATE + longest_silence(deck.sound.samples) * RATE / 24000
    assert "still to say" not in panel.foot.remarks.text()
    made = window.results.library.load(deck.sound.key)
    np.testing.assert_allclose(made.samples, read.load_audio(sentence.take)[0], atol=1e-4)
    assert window.state.comparison.take_a is None, "it is not compared"
    idle.setInterval(usual)


def spoken(name: str, setting: Setting, words: tuple[tuple[float, float], ...], decoding: object) -> Take:
    """A take of a language model: noise where there are words, and how its tokens came about."""
    samples = np.zeros(36_000, np.float32)
    for start, end in words:
        at = slice(round(start * 24_000), round(end * 24_000))
        samples[at] = 0.2 * np.random.default_rng(1).standard_normal(at.stop - at.start)
    measured = Measurements(1.0 / (1 + len(setting.techniques)), 1.5, device="cpu")
    distance = 0.2 if setting.techniques else None
    said = ("2026-01-01T00:00:00.000+00:00", "The kettle.", "anna", setting, 24_000, samples)
    return Take(name, *said, Trace(decoding=decoding), measurements=measured, log_mel_distance=distance)


def test_takes_of_different_timing_go_on_at_the_same_word_with_their_tokens(window: MainWindow, qtbot: QtBot) -> None:
    drafting = Setting("lm-mini", techniques=(UsedTechnique("speculative"),))
    window.results.takes.add(spoken("1" * 32, Setting("lm-mini"), ((0.2, 0.5), (0.8, 1.1)), PLAIN))
    window.results.takes.add(spoken("2" * 32, drafting, ((0.3, 0.6), (1.0, 1.3)), TRACE))
    panel, player, deck = window.panels["tradeoff"], window.features["player"].player, window.features["player"].deck
    panel.set_filter(Filter(words="kettle"))
    choose_look(panel, PlotOptions(x="real_time_factor", y="log_mel_distance"))
    qtbot.waitUntil(lambda: len(panel.scene.points) == 2)
    front = sorted(panel.scene.points, key=lambda one: one.techniques)
    along = window.features["tradeoff"].along
    along.pace.setInterval(STAYS)
    along.row.begin(front, front[0], front[0].sounds[0].spoken)
    qtbot.waitUntil(lambda: len(deck.row) == 2)
    assert player.comparison.mode is Mode.RESTART
    player.pause()
    deck.seek(0.9)
    qtbot.waitUntil(lambda: not player.busy and abs(player.position - 0.9) < 0.01)
    panel.plot.go_to(panel.scene.index[front[1].key])
    assert deck.sound is deck.row[1]
    expected = same_place(deck.row[0].frames, deck.row[1].frames, 0.9)
    assert expected == pytest.approx(1.0, abs=0.15), "in the second word"
    qtbot.waitUntil(lambda: abs(player.position - expected) < 0.02)
    decoding, compared = window.panels["decoding"], window.state.comparison
    qtbot.waitUntil(lambda: compared.chosen is not None and compared.chosen.id == deck.sound.key)
    assert decoding.side == CHOSEN and decoding.headline.text().startswith("Chosen point")
    decoding.side_buttons.chosen.emit("A")
    assert decoding.side == CHOSEN, "there is no A to show"
    panel.plot.go_to(None)
    qtbot.waitUntil(lambda: compared.chosen is None)
    assert decoding.side != CHOSEN
