"""The panel Studies by itself: what it shows of a study, and what it asks for."""

import json
import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox
from pytestqt.qtbot import QtBot

from paretone.measure.estimates import Estimate
from paretone.measure.evaluation.judges import Verdict
from paretone.session.events import Progress
from paretone.studies.store import DATABASE, Store
from paretone.studies.study import MeasureReference, ReferenceMeasured
from paretone_app.features.studies.fields import AxesEditor
from paretone_app.features.studies.forms import Bound, Varied
from paretone_app.features.studies.maker import StudyMaker
from paretone_app.features.studies.panel import CLUSTER, StudiesPanel
from paretone_app.results.study import FailedTake, OpenStudy, read_study
from paretone_app.shell.colours import LIGHT
from paretone_app.state.artefacts import Artefacts
from paretone_app.state.machine import Machine
from paretone_app.state.selection import Selection
from tests.app.acting import NamedActs
from tests.app.conftest import activated, in_front, on_screen
from tests.app.features.studies.studying import texts
from tests.engine.studies import small

FILE = 'title = "Small"\nsentences = ["One sentence.", "Another one.", "And a third."]\n[grid]\nsteps.steps = [2, 3]\n'


@pytest.fixture
def panel(qtbot: QtBot) -> StudiesPanel:
    return on_screen(StudiesPanel(LIGHT, NamedActs()), qtbot, 1000, 600)


@pytest.fixture
def seen(tmp_path: Path) -> OpenStudy:
    """A study that was paused after four takes of nine."""
    folder = tmp_path / "small.study"
    small.finished(folder, small.study(), small.Follower(pause_after=4))
    file = tmp_path / "small.toml"
    file.write_text(FILE + "[options]\nsteps = 4\nspacing = 'uniform'\ncross_fade = 0.0\n", encoding="utf-8")
    return read_study(folder, file)


def show(panel: StudiesPanel, seen: OpenStudy) -> None:
    panel.show_studies([(seen.folder, seen.title)], seen.folder)
    panel.show_summary(seen)


def judged(seen: OpenStudy, edits: float, words: float, heard: str) -> OpenStudy:
    """The study once the judge of words has said the same of all takes."""
    with closing(sqlite3.connect(seen.folder / DATABASE)) as direct, direct:
        verdicts = json.dumps([["words", {"edits": edits, "words": words}, heard]])
        direct.execute("UPDATE takes SET verdicts = ?", (verdicts,))
    return read_study(seen.folder, seen.file)


def test_state_progress_and_the_place_where_it_runs_are_shown(panel: StudiesPanel, seen: OpenStudy) -> None:
    assert (seen.made, seen.left) == (4, 5)
    show(panel, seen)
    assert panel.state.startswith("4 takes finished, 5 left, about ") and panel.run_button.text() == "Resume"
    panel.can["run"].set_reason("Wait for the running job, or press Esc to cancel it.")
    assert not panel.run_button.isEnabled() and "Wait for the running job" in panel.state and panel.cluster == ("", 0)
    panel.where.setCurrentIndex(panel.where.findData(CLUSTER))
    panel.address.setText("10.0.0.1:6379")
    panel.workers.setValue(8)
    assert panel.cluster == ("10.0.0.1:6379", 8)
    panel.set_cluster("Install ray.")
    assert panel.cluster == ("", 0)
    panel.begin(seen.folder)
    panel.show_progress(Progress(1, 5, 9, 130.0, "", now="Step pruning 2"))
    assert panel.progress.format() == "5 of 9 steps, about 2.2 minutes left"
    panel.show_progress(Progress(1, 1 << 30, 4 << 30, 130.0, "Fetching files from gpu: 1 of 4 GB", unit="bytes"))
    assert panel.progress.format() == "Fetching files from gpu: 1 of 4 GB, about 2.2 minutes left"
    assert panel.state == "Now: Step pruning 2" and panel.pause_button.isVisible() and panel.cancel_button.isVisible()
    panel.set_pausing(True)
    assert not panel.pause_button.isEnabled() and panel.state == "Pausing after this. Now: Step pruning 2"
    # Explore has 153 pixels for it in a window of 1024 × 700, where the plot has 70 % of the area.
    panel.resize(952, 153)
    assert panel.minimumSizeHint().height() <= 153 and panel.minimumSizeHint().width() <= 868
    panel.end("It broke.", failed=True)
    assert panel.state == "It broke." and panel.run_button.isVisible()
    show(panel, replace(seen, study=None, file_problem="It is no study."))
    assert panel.state == "It broke. It is no study."
    panel.begin(seen.folder / "another")
    panel.end("Finished: 9 takes made.")
    assert "9 takes" not in panel.state, "that is of another study than the shown one"


def test_a_take_changes_its_own_row_only(panel: StudiesPanel, seen: OpenStudy) -> None:
    show(panel, seen)
    panel.table.choose(seen.rows[2].key)
    lines: list[tuple[int, int]] = []
    resets: list[int] = []
    panel.table.study.dataChanged.connect(lambda first, last: lines.append((first.row(), last.row())))
    panel.table.study.modelReset.connect(lambda: resets.append(1))
    more = replace(seen.rows[1], finished=seen.rows[1].finished + 1)
    panel.show_summary(replace(seen, rows=(seen.rows[0], more, seen.rows[2])))
    assert lines == [(1, 1)] and resets == []
    assert texts(panel)[1][2] == f"{more.finished}/3" and panel.table.current == seen.rows[2].key


def test_the_takes_with_the_most_errors_are_listed(panel: StudiesPanel, seen: OpenStudy, qtbot: QtBot) -> None:
    show(panel, seen)
    place = panel.tabs.indexOf(panel.worst)
    assert not panel.tabs.isTabVisible(place), "nothing was judged"
    show(panel, judged(seen, 3.0, 4.0, "a murmur"))
    assert panel.tabs.isTabVisible(place) and panel.tabs.tabText(place) == "Most errors" and panel.worst.rowCount() == 4
    assert [panel.worst.item(0, column).text() for column in (2, 3)] == ["75 %", "a murmur"]
    with qtbot.waitSignal(panel.worst.take_chosen) as asked:
        panel.worst.activated.emit(panel.worst.model().index(0, 0))
    assert asked.args[0] in seen.takes and asked.args[2] in small.SENTENCES


def test_reference_speech_is_the_last_row_and_no_setting(panel: StudiesPanel, seen: OpenStudy) -> None:
    with Store(seen.folder) as store:
        verdict = Verdict("words", {"edits": 1.0, "words": 20.0})
        store.add_reference(ReferenceMeasured(MeasureReference(small.study().utterances[0]), (verdict,), 0.0))
    study = judged(seen, 1.0, 10.0, "")
    show(panel, study)
    assert (study.made, len(study.rows)) == (4, 3), "it counts as nothing"
    *_, last = texts(panel)
    assert last[:3] == ["", "Reference speech", ""] and last[-2:] == ["5.00 (20 words)", "0"]
    model = panel.table.study
    cells = [model.index(model.rowCount() - 1, column) for column in range(model.columnCount())]
    tips = [cell.data(Qt.ItemDataRole.ToolTipRole) for cell in cells]
    assert all("settings cannot be told apart" in tip for tip in tips[:-2])
    assert tips[-2].startswith("Word error rate 5.00 %, n = 1 recording of 1 sentence, 20 words.")
    panel.table.setCurrentIndex(panel.table.model().index(model.rowCount() - 1, 1))
    assert not panel.use_button.isEnabled() and not panel.export_button.isEnabled()
    panel.table.choose(study.rows[1].key)
    assert panel.use_button.isEnabled()


def test_what_figures_are_over_is_said(panel: StudiesPanel, seen: OpenStudy, tmp_path: Path) -> None:
    folder = tmp_path / "seeds.study"
    small.finished(folder, small.study(sentences=["One sentence."], seeds=[0, 1]))
    model, tips = panel.table.study, []
    (tmp_path / "wrong.toml").write_text(f"folder = {'a' * 300!r}")  # A name that no file can have.
    for one in (seen, read_study(folder, tmp_path / "wrong.toml")):
        show(panel, one)
        column = [each.name for each in model.metrics].index("real_time_factor") + 3
        tips.append(model.index(0, column).data(Qt.ItemDataRole.ToolTipRole))
    assert re.search(r"n = \d takes? of \d sentences?\.", tips[0]) and "n = 2 takes of 2 voice-seed pairs." in tips[1]
    low = Estimate(-0.1, -0.25, 0.05, 4, 2)
    show(panel, replace(seen, rows=(replace(seen.rows[0], figures={"ops_ratio": low}), *seen.rows[1:])))
    index = model.index(0, [each.name for each in model.metrics].index("ops_ratio") + 3)
    assert index.data() == "−10.0 (−25.0–5.00)"
    pictures = []
    for value in (0.00311, 0.00317):
        figures = {"ops_ratio": Estimate(value, 0.00299, 0.00331, 4, 2)}
        show(panel, replace(seen, rows=(replace(seen.rows[0], figures=figures), *seen.rows[1:])))
        panel.table.scrollTo(panel.table.model().index(0, index.column()))
        pictures.append(panel.table.grab().toImage())
    assert pictures[0] != pictures[1], "no digit is cut"


def test_failures_are_listed_with_their_reasons_and_faulty_takes_counted(panel: StudiesPanel, seen: OpenStudy) -> None:
    failed = FailedTake("Step pruning 2", "One sentence.", "anna", 3, "The judge sleeps.")
    rows = seen.rows[0], replace(seen.rows[1], problem="It has no weights."), seen.rows[2]
    whole = replace(failed, text="", seed=None, why=rows[1].problem)
    show(panel, replace(seen, failures=(failed, whole), rows=rows, left=0))
    assert panel.tabs.tabText(1) == "Failures (2)" and texts(panel)[1][0] == "!"
    assert panel.state == "Finished: 4 takes. 1 setting and 1 take failed, to be tried again: see Failures."
    cells = [panel.failures.item(0, column).text() for column in range(3)]
    assert cells == ["Step pruning 2", "“One sentence.” (anna, seed 3)", "The judge sleeps."]
    show(panel, seen)
    assert panel.tabs.tabText(1) == "Failures" and panel.failures.rowCount() == 0 and seen.results is not None
    one, *others = seen.results.settings
    checked = replace(one, figures={**one.figures, "faulty_takes": Estimate(0.5, 0.0, 1.0, 4, 3)})
    show(panel, replace(seen, results=replace(seen.results, settings=(checked, *others))))
    assert "Faults in 2 of 4 takes." in panel.state
    panel.say("Finished: 9 takes made.")
    show(panel, replace(seen, failures=(failed, failed)))
    assert panel.state == "Finished: 9 takes made. 2 takes failed, to be tried again: see Failures."


def test_open_and_recent_studies_are_offered_and_told_apart(panel: StudiesPanel, qtbot: QtBot) -> None:
    panel.show_studies([(Path("/a/x.study"), "Steps"), (Path("/b/x.study"), "Steps"), (Path("/c"), "Other")], None)
    shown = [panel.chooser.itemText(index) for index in range(panel.chooser.count())]
    assert shown == ["Steps – a/x.study", "Steps – b/x.study", "Other"]
    panel.show_recent([])
    assert not panel.recent_button.isEnabled()
    panel.show_recent(["/a/one.toml", "/b/two & three.toml"])
    shown = [action for action in panel.recent_menu.actions() if action.isVisible()]
    assert [action.text() for action in shown] == ["a/one.toml", "b/two && three.toml"]
    with qtbot.waitSignal(panel.recent_chosen) as wanted:
        shown[1].trigger()
    assert wanted.args == ["/b/two & three.toml"]


def test_enter_starts_nothing(qtbot: QtBot, tmp_path: Path) -> None:
    maker = on_screen(StudyMaker(Selection(Artefacts()), Machine(), tmp_path), qtbot)
    wanted: list[object] = []
    maker.definition_changed.connect(wanted.append)
    maker.submitted.connect(lambda *_: pytest.fail("saved"))
    maker.check()
    assert wanted[-1]["grid"] == {"steps": {"steps": [5, 7, 10]}}
    maker.show_verdict("Fine.", ok=True)
    for widget in (maker.title, maker.axes.lines[0].values, maker.seeds):
        qtbot.keyClick(widget, Qt.Key.Key_Return)
    assert len(maker.axes.lines) == 1
    maker.title.setText("")
    maker.check()
    assert maker.verdict.text() == "The study needs a title." and not maker.start_button.isEnabled()


def test_tab_goes_through_the_dialog_in_the_order_in_which_it_reads(qtbot: QtBot, tmp_path: Path) -> None:
    selection = Selection(Artefacts())
    for one in selection.techniques:
        selection.switch(one.name, False)
    maker = StudyMaker(selection, Machine(), tmp_path)
    qtbot.addWidget(maker)
    maker.kind.setCurrentIndex(1)
    bounds = [maker.goals.bounds.add(Bound("ops_ratio", "at_most", 0.5)) for _ in range(2)]
    first, second, server = maker.axes.lines[0], maker.axes.add(), maker.servers.add()
    maker.show()
    activated(maker, qtbot)
    goals = maker.goals
    expected = [maker.kind, *goals.goals]
    for one in goals.bounds.lines:
        expected += [one.metric_box, one.kind, one.bound, one.remove]
    expected += [goals.bounds.add_button, goals.trials]
    for line in (first, second):
        expected += [line.owner, line.knob, line.values, line.without, line.remove]
    expected += [maker.axes.add_button, *server.reachable, maker.servers.add_button, maker.path]
    assert goals.bounds.lines[-2:] == bounds
    assert bounds[0].bound.value() == 50.0 and bounds[0].bound.suffix() == " %" and bounds[0].filled_in.bound == 0.5
    maker.kind.setFocus()
    reached = [maker.focusWidget()]
    while len(reached) < len(expected):
        qtbot.keyClick(maker.focusWidget(), Qt.Key.Key_Tab)
        reached.append(maker.focusWidget())
    assert reached == expected


def test_named_values_are_ticked_by_their_titles(qtbot: QtBot) -> None:
    editor = on_screen(AxesEditor("f5-mini"), qtbot)
    line = editor.add(Varied("multistep", "method", "unipc"))
    qtbot.waitUntil(line.choices.isVisible)
    shown = [one for one in editor.findChildren(QCheckBox) if one.isVisible() and one is not line.without]
    assert [one.text() for one in shown] == ["Adams–Bashforth 2", "Predictor–corrector (after UniPC)", "STORK-2"]
    assert not line.values.isVisible(), "no word of a file is typed"
    assert [one.isChecked() for one in shown] == [False, True, False]
    qtbot.keyClick(shown[0], Qt.Key.Key_Space)
    assert editor.varied == (Varied("multistep", "method", "ab2, unipc"),)
    line.choose(Varied("steps", "steps", "5, 7"))
    assert line.values.isVisible() and not any(one.isVisible() for one in shown)
    assert editor.varied == (Varied("steps", "steps", "5, 7"),)
    line.choose(Varied("", "quick_start", "yes, no"))
    assert [box.isChecked() for _, box in line.boxes] == [True, True]


def test_lines_of_what_is_varied_are_filled_in_by_keys_alone(qtbot: QtBot) -> None:
    editor = in_front(AxesEditor("f5-mini"), qtbot)
    editor.add_button.setFocus()
    qtbot.keyClick(editor.add_button, Qt.Key.Key_Space)
    (line,) = editor.lines
    qtbot.waitUntil(lambda: line.owner.hasFocus() and line.values.isVisible())
    qtbot.keyClicks(line.owner, "Step")
    qtbot.keyClick(line.owner, Qt.Key.Key_Tab)
    qtbot.keyClick(line.knob, Qt.Key.Key_Tab)
    assert line.values.hasFocus()
    qtbot.keyClicks(line.values, "5, 7")
    qtbot.keyClick(line.values, Qt.Key.Key_Tab)
    qtbot.keyClick(line.without, Qt.Key.Key_Space)
    assert editor.varied == (Varied("steps", "steps", "5, 7", without=True),)
    qtbot.keyClick(line.without, Qt.Key.Key_Tab)
    qtbot.keyClick(line.remove, Qt.Key.Key_Space)
    assert editor.varied == () and editor.add_button.hasFocus()


def test_times_of_a_busy_machine_are_marked_as_in_the_list_of_takes(panel: StudiesPanel, seen: OpenStudy) -> None:
    rows = tuple(replace(one, busy=0) for one in seen.rows)
    show(panel, replace(seen, rows=(replace(rows[0], busy=1), *rows[1:])))
    model, names = panel.table.study, [one.name for one in panel.table.study.metrics]
    rtf, ratio = (model.columnCount() - len(names) + names.index(one) for one in ("real_time_factor", "ops_ratio"))
    places = (0, rtf), (1, rtf), (0, ratio)
    marked = [model.index(*place).data(Qt.ItemDataRole.DecorationRole) is not None for place in places]
    assert marked == [True, False, False]
    figure = model.index(0, rtf)
    said = f"busy during 1 of {seen.rows[0].finished} takes: other processes took"
    assert said in figure.data(Qt.ItemDataRole.ToolTipRole)
    assert figure.data(Qt.ItemDataRole.AccessibleTextRole).endswith("doubtful: the machine was busy")
