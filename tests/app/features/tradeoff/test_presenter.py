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
from PySide6.QtWidgets import QMenu
from pytestqt.qtbot import QtBot

from paretone.errors import PlainError
from paretone.extras import why_no_search
from paretone.listening import trials
from paretone.listening.trials import ConditionRecord
from paretone.sampling.actions import SkipAction
from paretone.setting.take import Take
from paretone.studies.store import DATABASE, Store
from paretone_app.features.tradeoff.scene import Filter, PlotOptions, Range
from paretone_app.listening.stimuli import setting_key
from paretone_app.plotting.chart import EVERYTHING
from paretone_app.results.points import Scores
from paretone_app.results.study import read_study
from paretone_app.shell.window import MainWindow
from tests.app.conftest import PATIENCE_MILLISECONDS, close
from tests.app.damage import spoil_database
from tests.app.features.tradeoff.using import (
    SENTENCES,
    SHOWN,
    STAYS,
    choose_look,
    go,
    key_of,
    lent,
    longest_silence,
    opened,
)
from tests.engine.listening.listeners import BASELINE, FAST
from tests.engine.listening.test_results import abx_session, staircase_session
from tests.engine.studies.small import finished, study
from tests.sound import RATE, NullSink, null_sink  # noqa: F401


@pytest.fixture
def window(borrowed_window: MainWindow, kept: tuple[Take, ...], results: Path, qtbot: QtBot) -> Iterator[MainWindow]:
    """A window that shows the study and the library; it may have no sound."""
    with lent(borrowed_window, kept, results, qtbot) as made:
        yield made


@pytest.fixture
def own_window(make_window: Callable[..., MainWindow], data: Path, results: Path, qtbot: QtBot) -> MainWindow:
    """The same that no other test has."""
    return opened(make_window, data, results, qtbot)


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
