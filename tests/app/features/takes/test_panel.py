"""The history of takes: what is shown, filtered, compared, and that ten thousand rows are no problem."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMessageBox, QStyle
from pytestqt.qtbot import QtBot

from paretone.errors import PlainError
from paretone.measure.metrics import metric
from paretone.models.base import Voice
from paretone.models.catalogue import entry
from paretone.session.commands import Synthesise
from paretone.setting import compatibility
from paretone.setting.knobs import Values
from paretone.setting.library import Library, TakeSummary
from paretone.setting.setting import Setting, UsedTechnique
from paretone.setting.take import Measurements, Metrics, Take
from paretone_app.features.takes.panel import TakesActions, TakesPanel
from paretone_app.features.takes.table import COLUMNS, TAKE_ROLE, FailedTake, TakesModel
from paretone_app.results.takes import KeptTakes, OpenedLibrary
from paretone_app.shell.colours import LIGHT
from paretone_app.shell.theme import Scheme, Theme
from paretone_app.state.differences import technique_text
from tests.app.acting import acts_of
from tests.disk import counts_open_files, unnamed_files

BASELINE = Setting("f5-mini", Values(steps=8), (), 3)
FAST = BASELINE.with_technique(UsedTechnique("ditreducio", Values(threshold=0.25)))


def take(index: int, setting: Setting = BASELINE, **changes: object) -> Take:
    measurements = Measurements(1.0 + index, 2.0, 0.5, device="cpu", ops_ratio=0.5)
    made = Take(
        f"{index:032x}",
        # Long before today, whatever a machine takes for that: a take that fails is made then.
        f"2001-11-21T10:00:{index:02d}.000+00:00",
        f"Sentence {index}.",
        "anna",
        setting,
        24000,
        np.linspace(-0.5, 0.5, 2400, dtype=np.float32),
        measurements,
        label="Baseline" if setting == BASELINE else "DiTReducio δ = 0.25",
    )
    return replace(made, **changes)


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library(tmp_path) as made:
        for index in range(3):
            made.add(take(index))
        made.add(take(3, FAST))
        yield made


@pytest.fixture
def panel(library: Library, qtbot: QtBot) -> TakesPanel:
    made = TakesPanel(KeptTakes(OpenedLibrary(library)), LIGHT, acts_of(TakesActions))
    qtbot.addWidget(made)
    made.show()
    return made


def column(title: str) -> int:
    return next(index for index, one in enumerate(COLUMNS) if one.title == title)


def shown(panel: TakesPanel, title: str) -> list[str]:
    model = panel.table.model()
    return [model.index(row, column(title)).data() for row in range(model.rowCount())]


def test_every_column_is_as_wide_as_its_figures(
    panel: TakesPanel, library: Library, theme: Theme, qtbot: QtBot
) -> None:
    """With the sign of a busy machine in front of them, too, and as wide as the user made it."""
    theme.apply(Scheme.LIGHT)
    panel.resize(794, 400)
    table, header, style = panel.table, panel.table.horizontalHeader(), panel.table.style()
    margin = style.pixelMetric(QStyle.PixelMetric.PM_FocusFrameHMargin, None, table) + 1
    busy = Measurements(
        2345.678, 1.234, 0.5, device="cpu", ops_ratio=0.5, text_seconds=12.345, cpu_seconds=23456.0, cores=2
    )
    busy = replace(busy, other_seconds=0.5 * busy.seconds * busy.cores)
    panel.kept.add(take(7, measurements=busy))

    def too_narrow() -> list[str]:
        found = []
        for number, one in enumerate(COLUMNS):
            for row in range(table.model().rowCount()) if not one.shortened else ():
                index = table.model().index(row, number)
                marked = index.data(Qt.ItemDataRole.DecorationRole) is not None
                icon = style.pixelMetric(QStyle.PixelMetric.PM_SmallIconSize) + 2 * margin if marked else 0
                needed = table.fontMetrics().horizontalAdvance(index.data()) + 2 * margin + icon
                if header.sectionSize(number) < needed:
                    found.append(f"{one.title}: {index.data()} needs {needed} of {header.sectionSize(number)}")
            if header.sectionSize(number) < header.sectionSizeHint(number) and not one.shortened:
                found.append(one.title)
        return found

    index = table.model().index(0, column("RTF"))
    assert index.data(Qt.ItemDataRole.DecorationRole) is not None, "the machine was busy"
    qtbot.waitUntil(lambda: not too_narrow(), timeout=5000)
    # The first figure is not cut off by the edge, in windows of 1440 and of 1024 pixels.
    for width in (794, 613, 794):
        panel.resize(width, 400)
        rtf, words = column("RTF"), [column("Text"), column("Setting")]
        qtbot.waitUntil(
            lambda rtf=rtf: header.sectionPosition(rtf) + header.sectionSize(rtf) <= table.viewport().width(),
            timeout=5000,
        )
        assert not too_narrow() and min(map(header.sectionSize, words)) > 60
    panel.resize(1400, 400)
    qtbot.waitUntil(lambda: header.sectionSize(column("Text")) > 200, timeout=5000)
    header.resizeSection(column("RTF"), 20)
    panel.kept.add(take(8, measurements=busy))
    qtbot.wait(50)
    assert header.sectionSize(column("RTF")) < 60, "the user wants it so"


def test_takes_of_replaced_weights_say_so(panel: TakesPanel, library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        compatibility, "REPLACED", {"a" * 64: compatibility.ReplacedModel("f5-mini", "F5 mini", ("ann",))}
    )
    for index, changes in enumerate(({"checkpoint": "a" * 64}, {"checkpoint": "b" * 64}, {"voice": "ann"}), 5):
        panel.kept.add(take(index, **changes))
    assert shown(panel, "Model")[:3] == ["F5 mini (earlier)", "F5 mini", "F5 mini (earlier)"]
    assert set(shown(panel, "Model")[3:]) == {"F5 mini"}


def test_newest_first_and_any_column_sorts(panel: TakesPanel) -> None:
    assert shown(panel, "Text") == [f"Sentence {index}." for index in (3, 2, 1, 0)]
    panel.table.sortByColumn(column("RTF"), Qt.SortOrder.AscendingOrder)
    assert shown(panel, "RTF") == ["0.500", "1.000", "1.500", "2.000"]


def test_model_text_and_setting_come_first_and_tell_takes_apart(panel: TakesPanel, library: Library) -> None:
    assert [one.title for one in COLUMNS[:5]] == ["★", "A/B", "Model", "Text", "Setting"]
    library.add(take(4, replace(BASELINE, options=Values(steps=5), seed=9)))
    panel.kept.read()
    assert shown(panel, "Model") == ["F5 mini"] * 5
    usual = entry("f5-mini").options_with()["steps"]
    assert usual not in (5, 8)
    assert shown(panel, "Setting") == [
        "Baseline, Steps 5, seed 9",
        "DiTReducio δ = 0.25, Steps 8, seed 3",
        *["Baseline, Steps 8, seed 3"] * 3,
    ]


def test_the_filter_wants_every_word(panel: TakesPanel, qtbot: QtBot) -> None:
    qtbot.keyClicks(panel.search, "ditreducio 0.25")
    assert shown(panel, "Text") == ["Sentence 3."]
    panel.search.setText("sentence 1")
    assert shown(panel, "Text") == ["Sentence 1."]
    panel.search.setText("no such thing")
    assert shown(panel, "Text") == []


def test_the_sides_of_takes_are_shown(panel: TakesPanel) -> None:
    panel.show_comparison(take(0), take(3))
    assert shown(panel, "A/B") == ["B", "", "", "A"]


def test_buttons_say_why_they_are_disabled(panel: TakesPanel) -> None:
    def reasons() -> tuple[str, str]:
        return panel.can.play.reason, panel.can.delete.reason

    panel.table.clearSelection()
    assert reasons() == ("Select one take first.", "Select takes first.")
    panel.table.selectAll()
    assert reasons() == ("Select one take first.", "")
    panel.table.selectRow(0)
    assert reasons() == ("", "")


def test_the_difference_to_a_shows_differences_only(panel: TakesPanel) -> None:
    panel.show_comparison(take(0), None)
    panel.table.selectRow(0)
    text = panel._difference.text()
    assert "DiTReducio" in text
    assert "Sentence 3." in text
    assert "steps" not in text


def test_stars_filter_and_last(panel: TakesPanel, library: Library) -> None:
    panel.table.selectRow(1)
    panel.star()
    assert library.summary(f"{2:032x}").starred
    panel._starred.setChecked(True)
    assert shown(panel, "Text") == ["Sentence 2."]


def test_deleting_asks_first(panel: TakesPanel, library: Library, qtbot: QtBot) -> None:
    panel.table.selectRow(0)
    panel.delete()
    box = panel.findChild(QMessageBox)
    assert len(library) == 4
    assert (box.text(), box.informativeText().partition(".")[0]) == (
        "Delete this take?",
        "Its audio file is deleted, too",
    )
    box.button(QMessageBox.StandardButton.Cancel).click()
    assert len(library) == 4
    panel.delete()
    box = panel.findChildren(QMessageBox)[-1]
    box.button(QMessageBox.StandardButton.Yes).click()
    assert len(library) == 3
    assert shown(panel, "Text") == [f"Sentence {index}." for index in (2, 1, 0)]


def test_stars_and_deletions_are_undone(panel: TakesPanel, library: Library) -> None:
    stack = panel.undo_stack
    before = [library.load(one.id) for one in library.summaries()]
    panel.table.selectRow(1)
    panel.star()
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
def test_deleted_audio_is_on_the_disk_as_long_as_the_deletion_can_be_undone(
    panel: TakesPanel, library: Library
) -> None:
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


def test_ten_thousand_rows_are_asked_for_only_where_they_are_seen(panel: TakesPanel, library: Library) -> None:
    summary = library.summary(f"{0:032x}")
    model = panel._model
    asked = 0
    plain = TakesModel.data

    def counting(self: TakesModel, *arguments: object) -> object:
        nonlocal asked
        asked += 1
        return plain(self, *arguments)

    TakesModel.data = counting
    try:
        model.set_takes([_copy(summary, index) for index in range(10_000)])
        panel.table.model().rowCount()
        asked = 0
        panel.grab()
        assert asked < 20_000, "painting asks for the rows in view, not for all"
    finally:
        TakesModel.data = plain
    assert panel.table.model().rowCount() == 10_000
    panel.search.setText("number 9999")
    assert shown(panel, "Text") == ["Number 9999"]


def _copy(summary: TakeSummary, index: int) -> TakeSummary:
    return replace(summary, id=f"{index}", text=f"Number {index}")


def test_the_technique_is_named_with_its_symbol() -> None:
    assert technique_text(BASELINE) == "baseline"
    assert technique_text(FAST) == "DiTReducio δ = 0.25"
    of_another_version = BASELINE.with_technique(UsedTechnique("unheard-of", Values(strength=2)))
    assert technique_text(of_another_version) == "unheard-of", "a take outlives the technique it was made with"


def test_a_row_knows_its_take(panel: TakesPanel) -> None:
    panel.table.selectRow(2)
    assert [one.id for one in panel.selected()] == [f"{1:032x}"]
    assert panel.table.model().index(2, 0).data(TAKE_ROLE).id == f"{1:032x}"


def test_every_figure_is_shown_with_its_unit_and_its_definition(panel: TakesPanel, library: Library) -> None:
    heard = Metrics(loudness=-20.25, clipping=0.0012, silence=0.25, mel_cepstral_distortion=1.234, pitch_error=0.5)
    measurements = Measurements(
        2.0, 4.0, 0.5, text_seconds=0.001, backbone_seconds=1.5, decoder_seconds=0.25, peak_memory_bytes=300 * 2**20
    )
    made = take(9, FAST, measurements=measurements, metrics=heard, log_mel_distance=0.125, machine="This machine.")
    panel.kept.add(made)
    model = panel.table.model()
    row = {one.title: model.index(0, number).data() for number, one in enumerate(COLUMNS)}
    assert row["RTF"] == "0.500"
    assert (row["Front end"], row["Backbone"], row["Decoder"]) == ("0.001 s", "1.50 s", "0.25 s")
    assert (row["Backbone RTF"], row["TTFA (P90)"]) == ("0.375", "–"), "one run has no tail"
    panel.kept.repeat(made.id, [replace(measurements, first_audio_seconds=one) for one in (0.5, 0.6, 0.7)])
    again = {one.title: model.index(0, number).data() for number, one in enumerate(COLUMNS)}
    assert (again["TTFA"], again["TTFA (P90)"]) == ("0.60 s", "0.68 s")
    assert (row["Memory"], row["Loudness"], row["Clipping"]) == ("300 MiB", "−20.2 LUFS", "0.12 %")
    assert (row["MCD"], row["F0"], row["Distance"], row["Voicing"]) == ("1.23 dB", "0.50 st", "0.125", "–")
    assert row["Machine"] == "This machine."
    tips = [model.index(0, number).data(Qt.ItemDataRole.ToolTipRole) for number in range(len(COLUMNS))]
    assert metric("mel_cepstral_distortion").definition in tips[column("MCD")]
    assert tips[column("MCD")].startswith("1.23 dB\nMel-cepstral distortion (dB). ")
    assert "Needs a baseline" in tips[column("Voicing")]
    assert COLUMNS[-1].title == "Created", "what the table is sorted by at first"


def test_what_is_selected_stays_so_however_rows_move(panel: TakesPanel, qtbot: QtBot) -> None:
    panel.table.selectRow(1)
    (chosen,) = panel.selected()
    panel.table.sortByColumn(column("RTF"), Qt.SortOrder.AscendingOrder)
    assert [one.id for one in panel.selected()] == [chosen.id]
    panel.search.setText(chosen.text)
    assert [one.id for one in panel.selected()] == [chosen.id]
    panel.search.setText("nothing of the kind")
    assert panel.selected() == []
    assert shown(panel, "Text") == []


def test_only_takes_that_come_or_go_are_a_change(panel: TakesPanel, library: Library, qtbot: QtBot) -> None:
    with qtbot.assertNotEmitted(panel.kept.changed):
        panel.search.setText("sentence 1")
        panel.table.sortByColumn(column("Text"), Qt.SortOrder.AscendingOrder)
    with qtbot.waitSignal(panel.kept.changed):
        panel.kept.add(take(11))
    assert shown(panel, "Text") == ["Sentence 1.", "Sentence 11."], "in its place"
    with qtbot.waitSignal(panel.kept.changed):
        panel.kept.add(take(5))
    assert len(shown(panel, "Text")) == 2, "filtered away"
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
    assert why in panel._difference.text()
    enabled = {one.text() for one in panel.table.actions() if one.isEnabled()}
    assert enabled == {"use", "delete"} and why in panel.can.set_a.reason
    with pytest.raises(PlainError, match="failed and has no audio"):
        panel.load_chosen()
    again = panel.chosen
    assert (again.setting, again.text, again.voice) == (FAST, "It was to say this.", "anna")
    panel.delete()
    panel.findChild(QMessageBox).accept()
    assert not any(one.startswith("Failed") for one in shown(panel, "Setting"))
    assert len(library) == 4


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


def test_the_take_that_plays_is_marked(panel: TakesPanel) -> None:
    def marked() -> list[int]:
        role = Qt.ItemDataRole.DecorationRole
        return [row for row in range(model.rowCount()) if model.index(row, 1).data(role) is not None]

    model = panel.table.model()
    take = model.index(1, 0).data(TAKE_ROLE)
    assert marked() == []
    panel.show_playing(take.id)
    assert marked() == [1]
    assert model.index(1, 1).data(Qt.ItemDataRole.AccessibleTextRole).endswith("playing")
    panel.show_playing("")
    assert marked() == []


def test_a_cell_without_text_says_something_to_screen_readers(panel: TakesPanel, library: Library) -> None:
    model = panel.table.model()
    spoken = [model.data(model.index(0, column), Qt.ItemDataRole.AccessibleTextRole) for column in range(len(COLUMNS))]
    assert spoken[:2] == ["Not starred", "Neither A nor B"]
    assert all(spoken)


def test_times_of_a_busy_machine_are_marked(panel: TakesPanel, library: Library) -> None:
    measured = Measurements(2.0, 2.0, 1.0, ops_ratio=0.5, cpu_seconds=1.0, other_seconds=0.1, cores=2)
    for index, others in enumerate((0.1, 3.0), 5):
        panel.kept.add(take(index, measurements=replace(measured, other_seconds=others)))
    model = panel.table.model()
    assert shown(panel, "Others")[:3] == ["75 %", "2 %", "–"]
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


def test_a_take_timed_again_shows_the_median_and_says_the_interval(panel: TakesPanel, library: Library) -> None:
    panel.kept.add(take(5))
    runs = [Measurements(seconds, 2.0, device="cpu") for seconds in (2.0, 2.2, 2.1, 9.0, 2.3)]
    panel.kept.repeat(take(5).id, runs)
    assert shown(panel, "RTF")[0] == "1.100"
    tip = panel.table.model().index(0, column("RTF")).data(Qt.ItemDataRole.ToolTipRole)
    assert tip.startswith("1.100\nMedian of 5 repeats, 95 % interval 1.0")
    assert "repeats" not in panel.table.model().index(0, column("Ops")).data(Qt.ItemDataRole.ToolTipRole)


def test_a_take_that_was_not_finished_says_so(panel: TakesPanel, library: Library) -> None:
    panel.kept.add(take(5, unfinished="cancelled after 12 of 126 passages"))
    assert shown(panel, "Setting")[0].startswith("Cancelled after 12 of 126 passages: Baseline")
    assert [one.unfinished for one in library.summaries(unfinished=False)] == [""] * 4
