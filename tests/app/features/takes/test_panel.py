"""The history of takes: what is shown, filtered, compared, and that ten thousand rows are no problem."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QUndoStack
from PySide6.QtWidgets import QMessageBox
from pytestqt.qtbot import QtBot

from paretone.errors import PlainError
from paretone.measure.metrics import metric
from paretone.models.base import Voice
from paretone.models.catalogue import entry
from paretone.session.commands import Synthesise
from paretone.setting import compatibility
from paretone.setting.knobs import Values
from paretone.setting.library import Library
from paretone.setting.setting import Setting, UsedTechnique
from paretone.setting.take import Measurements, Metrics, Take
from paretone_app.features.takes.panel import TakesPanel
from paretone_app.features.takes.table import COLUMNS, TAKE_ROLE, FailedTake, TakesModel, made_at
from paretone_app.results.takes import KeptTakes, OpenedLibrary
from paretone_app.shell.colours import LIGHT
from paretone_app.shell.theme import Scheme, Theme
from paretone_app.state.comparison import Comparison
from tests.app.acting import NamedActs
from tests.app.conftest import on_screen
from tests.disk import counts_open_files, unnamed_files

BASELINE = Setting("f5-mini", Values(steps=8), (), 3)
FAST = BASELINE.with_technique(UsedTechnique("ditreducio", Values(threshold=0.25)))


def take(index: int, setting: Setting = BASELINE, **changes: object) -> Take:
    measured = Measurements(1.0 + index, 2.0, 0.5, device="cpu", ops_ratio=0.5)
    # Long before today, whatever a machine takes for that: a take that fails is made then.
    name, created = f"{index:032x}", f"2001-11-21T10:00:{index:02d}.000+00:00"
    sound, label = np.linspace(-0.5, 0.5, 2400, dtype=np.float32), "DiTReducio δ = 0.25"
    made = Take(name, created, f"Sentence {index}.", "anna", setting, 24000, sound, measurements=measured)
    return replace(made, label="Baseline" if setting == BASELINE else label, **changes)


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library(tmp_path) as made:
        for index in range(3):
            made.add(take(index))
        made.add(take(3, FAST))
        yield made


@pytest.fixture
def panel(library: Library, qtbot: QtBot) -> TakesPanel:
    kept = KeptTakes(OpenedLibrary(library))
    return on_screen(TakesPanel(kept, LIGHT, NamedActs(), QUndoStack(kept)), qtbot)


def column(title: str) -> int:
    return next(index for index, one in enumerate(COLUMNS) if one.title == title)


def shown(panel: TakesPanel, title: str) -> list[str]:
    model = panel.table.model()
    return [" ".join(model.index(row, column(title)).data().split()) for row in range(model.rowCount())]


def test_columns_are_as_wide_as_their_figures(panel: TakesPanel, library: Library, theme: Theme, qtbot: QtBot) -> None:
    theme.apply(Scheme.LIGHT)
    table, header, rtf = panel.table, panel.table.horizontalHeader(), column("RTF")
    busy = Measurements(2345.678, 1.234, 0.5, device="cpu", ops_ratio=0.5, text_seconds=12.345, cores=2)
    panel.kept.add(take(7, measurements=replace(busy, cpu_seconds=23456.0, other_seconds=busy.seconds)))
    assert table.model().index(0, rtf).data(Qt.ItemDataRole.DecorationRole) is not None, "the machine was busy"

    def too_narrow() -> list[str]:
        return [
            f"{one.title}: {index.data()}"
            for number, one in enumerate(COLUMNS)
            if not one.shortened
            for row in range(table.model().rowCount())
            if (index := table.model().index(row, number)).data() is not None
            and header.sectionSize(number) < max(table.sizeHintForIndex(index).width(), header.sectionSizeHint(number))
        ]

    # The first figure is not cut off by the edge, in windows of 1440 and of 1024 pixels.
    for width in (794, 613):
        panel.resize(width, 400)
        qtbot.waitUntil(lambda: not too_narrow(), timeout=5000)
        qtbot.waitUntil(lambda: header.sectionViewportPosition(rtf + 1) <= table.viewport().width(), timeout=5000)
        assert min(header.sectionSize(column(one)) for one in ("Text", "Setting")) > 60
    panel.resize(1400, 400)
    qtbot.waitUntil(lambda: header.sectionSize(column("Text")) > 200, timeout=5000)
    header.resizeSection(rtf, 20)
    panel.kept.add(take(8, measurements=busy))
    qtbot.wait(50)
    assert header.sectionSize(rtf) < 60, "the user wants it so"


def test_takes_of_replaced_weights_say_so(panel: TakesPanel, library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    replaced = compatibility.ReplacedModel("f5-mini", "F5 mini", ("ann",))
    monkeypatch.setattr(compatibility, "REPLACED", {"a" * 64: replaced})
    for index, changes in enumerate(({"checkpoint": "a" * 64}, {"checkpoint": "b" * 64}, {"voice": "ann"}), 5):
        panel.kept.add(take(index, **changes))
    assert shown(panel, "Model")[:3] == ["F5 mini (earlier)", "F5 mini", "F5 mini (earlier)"]
    assert set(shown(panel, "Model")[3:]) == {"F5 mini"}


def test_model_text_and_setting_come_first_and_tell_takes_apart(panel: TakesPanel, library: Library) -> None:
    assert [one.title for one in COLUMNS[:5]] == ["★", "Lane", "Model", "Text", "Setting"]
    library.add(take(4, replace(BASELINE, options=Values(steps=5), seed=9)))
    panel.kept.read()
    assert shown(panel, "Model") == ["F5 mini"] * 5
    assert entry("f5-mini").options_with()["steps"] not in (5, 8), "not said where it is the usual one"
    others = ["Baseline, Steps 8, seed 3"] * 3
    assert shown(panel, "Setting") == ["Baseline, Steps 5, seed 9", "DiTReducio δ = 0.25, Steps 8, seed 3", *others]


def test_sides_and_the_difference_to_a_are_shown(panel: TakesPanel) -> None:
    compared = Comparison(panel)
    compared.arrange((take(0), take(3), take(1)))
    panel.show_comparison(compared)
    assert shown(panel, "Lane") == ["B", "", "3", "A"]
    panel.table.selectRow(0)
    text = panel.difference.text()
    assert "DiTReducio" in text and "Sentence 3." in text and "steps" not in text


def test_deleting_asks_first(panel: TakesPanel, library: Library, qtbot: QtBot) -> None:
    panel.table.selectRow(0)
    panel.delete()
    box = panel.findChild(QMessageBox)
    assert len(library) == 4 and box.text() == "Delete this take?"
    assert box.informativeText().startswith("Its audio file is deleted, too")
    box.button(QMessageBox.StandardButton.Cancel).click()
    assert len(library) == 4
    panel.delete()
    panel.findChildren(QMessageBox)[-1].button(QMessageBox.StandardButton.Yes).click()
    assert len(library) == 3 and shown(panel, "Text") == [f"Sentence {index}." for index in (2, 1, 0)]


def test_stars_filter_and_stars_and_deletions_are_undone(panel: TakesPanel, library: Library) -> None:
    stack = panel.undo_stack
    before = [library.load(one.id) for one in library.summaries()]
    panel.table.selectRow(1)
    panel.star()
    assert library.summary(f"{2:032x}").starred
    panel.starred.setChecked(True)
    assert shown(panel, "Text") == ["Sentence 2."]
    panel.starred.setChecked(False)
    panel.table.selectAll()
    panel.star()
    assert [stack.text(index) for index in range(stack.count())] == ["star 1 take", "star 3 takes"]
    panel.table.selectAll()
    panel.delete()
    panel.findChild(QMessageBox).button(QMessageBox.StandardButton.Yes).click()
    assert not len(library) and stack.undoText() == "delete 4 takes"
    stack.undo()
    assert len(shown(panel, "Text")) == 4 and all(one.starred for one in library.summaries())
    stack.redo()
    assert not len(library)
    for _ in range(3):
        stack.undo()
    after = [library.load(one.id) for one in library.summaries()]
    for one, other in zip(before, after, strict=True):
        assert np.array_equal(one.samples, other.samples)
        assert library.summary(one.id).created == one.created and one.measurements == other.measurements


@counts_open_files
def test_deleted_audio_is_on_the_disk_while_it_can_be_brought_back(panel: TakesPanel, library: Library) -> None:
    library.audio_path(f"{1:032x}").unlink()
    panel.table.selectAll()
    panel.delete()
    panel.findChild(QMessageBox).accept()
    assert (len(library), shown(panel, "Text"), panel.undo_stack.undoText()) == (0, [], "delete 3 takes")
    assert unnamed_files(library.folder) == 1
    panel.undo_stack.undo()
    assert shown(panel, "Text") == ["Sentence 3.", "Sentence 2.", "Sentence 0."], "what could be read"
    panel.undo_stack.redo()
    assert unnamed_files(library.folder) == 1
    panel.undo_stack.clear()
    assert unnamed_files(library.folder) == 0


def test_only_rows_in_view_are_asked_for(panel: TakesPanel, library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    summary, asked, plain = library.summary(f"{0:032x}"), [], TakesModel.data
    panel.model.set_takes([replace(summary, id=f"{one}", text=f"Number {one}") for one in range(10_000)])
    assert panel.table.model().rowCount() == 10_000
    monkeypatch.setattr(TakesModel, "data", lambda self, *given: asked.append(1) or plain(self, *given))
    panel.grab()
    assert len(asked) < 20_000, "painting asks for the rows in view, not for all"
    panel.search.setText("number 9999")
    assert shown(panel, "Text") == ["Number 9999"]


def test_every_figure_is_shown_with_its_unit_and_its_definition(panel: TakesPanel) -> None:
    heard = Metrics(loudness=-20.25, clipping=0.0012, silence=0.25, mel_cepstral_distortion=1.234, pitch_error=0.5)
    measured = Measurements(2.0, 4.0, 0.5, text_seconds=0.001, backbone_seconds=1.5, peak_memory_bytes=300 * 2**20)
    panel.kept.add(take(9, FAST, measurements=measured, metrics=heard, log_mel_distance=0.125, machine="This machine."))
    model = panel.table.model()

    def row() -> dict[str, str]:
        return {one.title: model.index(0, number).data() for number, one in enumerate(COLUMNS)}

    expected = {"RTF": "0.500", "Front end": "0.001 s", "Backbone": "1.50 s", "Backbone RTF": "0.375"}
    expected |= {"Memory": "300 MiB", "Loudness": "−20.2 LUFS", "Clipping": "0.12 %", "MCD": "1.23 dB"}
    expected |= {"F0": "0.50 st", "Distance": "0.125", "Voicing": "–", "Machine": "This machine.", "TTFA (P90)": "–"}
    assert expected.items() <= row().items()
    panel.kept.repeat(f"{9:032x}", [replace(measured, first_audio_seconds=one) for one in (0.5, 0.6, 0.7)])
    assert (row()["TTFA"], row()["TTFA (P90)"]) == ("0.60 s", "0.68 s")
    tips = [model.index(0, number).data(Qt.ItemDataRole.ToolTipRole) for number in range(len(COLUMNS))]
    assert tips[column("MCD")].startswith("1.23 dB\nMel-cepstral distortion (dB). ")
    assert metric("mel_cepstral_distortion").definition in tips[column("MCD")]
    assert "Needs a baseline" in tips[column("Voicing")]
    assert COLUMNS[-1].title == "Created", "what the table is sorted by at first"


def test_rows_are_sorted_and_filtered_and_what_is_selected_stays_so(panel: TakesPanel, qtbot: QtBot) -> None:
    assert shown(panel, "Text") == [f"Sentence {index}." for index in (3, 2, 1, 0)], "newest first"
    panel.table.selectRow(1)
    (chosen,) = panel.selected()
    panel.table.sortByColumn(column("RTF"), Qt.SortOrder.AscendingOrder)
    assert shown(panel, "RTF") == ["0.500", "1.00", "1.50", "2.00"]
    assert panel.table.model().index(1, column("RTF")).data() == "1.00\u2007", "decimal points are below each other"
    assert [one.id for one in panel.selected()] == [chosen.id]
    panel.search.setText(chosen.text)
    assert [one.id for one in panel.selected()] == [chosen.id]
    panel.search.clear()
    qtbot.keyClicks(panel.search, "ditreducio 0.25")
    assert shown(panel, "Text") == ["Sentence 3."], "every word is wanted"
    panel.search.setText("nothing of the kind")
    assert panel.selected() == [] and shown(panel, "Text") == []


def test_only_takes_that_come_or_go_are_a_change(panel: TakesPanel, library: Library, qtbot: QtBot) -> None:
    with qtbot.assertNotEmitted(panel.kept.changed):
        panel.search.setText("sentence 1")
        panel.table.sortByColumn(column("Text"), Qt.SortOrder.AscendingOrder)
    for index in (11, 5):
        with qtbot.waitSignal(panel.kept.changed):
            panel.kept.add(take(index))
    assert shown(panel, "Text") == ["Sentence 1.", "Sentence 11."], "in its place, or filtered away"
    with qtbot.waitSignal(panel.kept.changed):
        panel.kept.read()


def test_a_take_that_failed_is_marked_says_why_and_can_be_run_again(panel: TakesPanel, library: Library) -> None:
    why = "The graphics card failed while synthesising; the model is loaded again."
    command = Synthesise(7, "It was to say this.", Voice("anna", "Anna", "", "Hello."), FAST, (), "DiTReducio")
    panel.add_failed(FailedTake.of(command, why))
    panel.kept.read()
    assert shown(panel, "Setting")[0].startswith("Failed: DiTReducio"), "the newest, and there after a new reading"
    assert {one.title for one in COLUMNS if one.numeric and shown(panel, one.title)[0] != "–"} == set(), "no figures"
    assert panel.table.model().index(0, column("Setting")).data(Qt.ItemDataRole.ToolTipRole) == why
    panel.table.selectRow(0)
    assert why in panel.difference.text()
    enabled = {one.text() for one in panel.table.actions() if one.isEnabled()}
    assert enabled == {"use", "delete"} and why in panel.can["set_a"].reason
    with pytest.raises(PlainError, match="failed and has no audio"):
        panel.load_chosen()
    again = panel.chosen
    assert (again.setting, again.text, again.voice) == (FAST, "It was to say this.", "anna")
    panel.delete()
    panel.findChild(QMessageBox).accept()
    assert not any(one.startswith("Failed") for one in shown(panel, "Setting")) and len(library) == 4


def test_figures_that_come_later_are_shown_and_kept(panel: TakesPanel, library: Library) -> None:
    (newest, *_) = library.summaries()
    assert shown(panel, "Naturalness") == ["–"] * 4
    panel.table.sortByColumn(column("Naturalness"), Qt.SortOrder.AscendingOrder)
    panel.kept.measure(newest.id, {"naturalness": 4.25, "pitch_range": 0.15})
    assert sorted(shown(panel, "Naturalness")) == ["4.25", "–", "–", "–"]
    assert shown(panel, "Naturalness")[0] == "4.25", "sorted anew"
    assert shown(panel, "Range")[0] == "0.150"
    with Library(library.folder) as again:
        found = again.summary(newest.id)
    assert (found.metrics.naturalness, found.metrics.pitch_range) == (4.25, 0.15)
    assert found.metrics.loudness == newest.metrics.loudness
    panel.kept.measure("f" * 32, {"naturalness": 4.25})
    assert len(shown(panel, "Range")) == 4, "nothing is kept of a take that was deleted"


def test_the_take_that_plays_is_marked_and_every_cell_says_something_to_screen_readers(panel: TakesPanel) -> None:
    def marked() -> list[int]:
        role = Qt.ItemDataRole.DecorationRole
        return [row for row in range(model.rowCount()) if model.index(row, 1).data(role) is not None]

    model, spoken = panel.table.model(), Qt.ItemDataRole.AccessibleTextRole
    take = model.index(1, 0).data(TAKE_ROLE)
    texts = [model.index(0, one).data(spoken) for one in range(len(COLUMNS))]
    assert texts[:2] == ["Not starred", "No lane"] and all(texts)
    panel.model.set_playing(take.id)
    assert marked() == [1] and model.index(1, 1).data(spoken).endswith("playing")
    panel.model.set_playing("")
    assert marked() == []


def test_times_of_a_busy_machine_are_marked(panel: TakesPanel, library: Library) -> None:
    measured = Measurements(2.0, 2.0, 1.0, ops_ratio=0.5, cpu_seconds=1.0, other_seconds=0.1, cores=2)
    for index, others in enumerate((0.1, 3.0), 5):
        panel.kept.add(take(index, measurements=replace(measured, other_seconds=others)))
    model = panel.table.model()
    assert shown(panel, "Others")[:3] == ["75.0 %", "2.50 %", "–"]
    assert shown(panel, "CPU RTF")[:3] == ["0.500", "0.500", "–"]

    def data(row: int, title: str, role: Qt.ItemDataRole) -> object:
        return model.index(row, column(title)).data(role)

    for title in ("RTF", "TTFA", "Backbone"):
        marks = [data(row, title, Qt.ItemDataRole.DecorationRole) is not None for row in range(3)]
        assert marks == [True, False, False]
        assert "75 % of the cores" in data(0, title, Qt.ItemDataRole.ToolTipRole)
        assert data(0, title, Qt.ItemDataRole.AccessibleTextRole).endswith("doubtful: the machine was busy")
    assert data(0, "CPU RTF", Qt.ItemDataRole.DecorationRole) is None
    assert data(0, "Ops", Qt.ItemDataRole.DecorationRole) is None


def test_a_take_timed_again_shows_the_median_a_cut_one_says_so(panel: TakesPanel, library: Library) -> None:
    panel.kept.add(take(5, unfinished="cancelled after 12 of 126 passages"))
    assert shown(panel, "Setting")[0].startswith("Cancelled after 12 of 126 passages: Baseline")
    panel.kept.repeat(take(5).id, [Measurements(seconds, 2.0, device="cpu") for seconds in (2.0, 2.2, 2.1, 9.0, 2.3)])
    assert shown(panel, "RTF")[0] == "1.10"
    tip = panel.table.model().index(0, column("RTF")).data(Qt.ItemDataRole.ToolTipRole)
    assert tip.startswith("1.10\nMedian of 5 repeats, 95 % interval 1.0")
    assert "repeats" not in panel.table.model().index(0, column("Ops")).data(Qt.ItemDataRole.ToolTipRole)


@pytest.mark.parametrize("created", ["2026", "0001-01-01T00:00:00", "yesterday"])
def test_a_damaged_time_is_shown_as_it_is(created: str) -> None:
    assert made_at(take(1, created=created)) == created


def test_only_faulty_takes_are_shown_and_their_number_is_a_column(library: Library, qtbot: QtBot) -> None:
    for index, faults in ((0, 0.0), (1, 2.0)):
        library.measure(take(index).id, {"faults": faults})
    model = TakesModel()
    model.set_takes(library.summaries())
    faults = COLUMNS[column("Faults")]
    assert [faults.text(one) for one in library.summaries()] == ["–", "–", "2", "0"], "newest first"
    model.show_only("", False, faulty=True)
    assert model.rowCount() == 1 and model.rows_of((take(1).id,)) == [0]
