"""The window writes numbers with the decimal sign of the user's language; files keep the point."""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractSpinBox, QGraphicsSimpleTextItem, QLabel, QTableView, QWidget
from pytestqt.qtbot import QtBot

import paretone
import paretone_app
from paretone import wording
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.setting.take import Take
from paretone.studies.wording import described
from paretone_app import numbers
from paretone_app.plotting.chart import Chart
from paretone_app.plotting.frame import TickAxis
from paretone_app.plotting.words import Labels, Legend
from paretone_app.shell.window import MainWindow
from paretone_app.state.differences import label_of, technique_text
from paretone_app.widgets.action import Action
from paretone_app.widgets.boxes import DoubleSpinBox
from tests.app.acting import items
from tests.app.conftest import run

WITH_POINT = re.compile(r"(?<![\d.])\d+\.\d+(?![\d.])")
"""A number with a point; not the version 1.2.3."""
NAMES = re.compile(r"arXiv \d{4}\.\d{5}|<[^>]*>")
"""What looks like one: papers, and sizes of rich text."""


@pytest.fixture(autouse=True)
def comma() -> Iterator[None]:
    numbers.use_sign(",")
    yield
    numbers.use_sign(".")


def test_numbers_in_every_form() -> None:
    assert numbers.fixed(0.5, 2) == "0,50"
    assert numbers.with_sign(0.25, "+") == "+0,2" and numbers.fixed(-24.0, 0) == "−24", "a true minus"
    assert numbers.significant(0.2567) == "0,257" and numbers.significant(12.0) == "12,0"
    assert numbers.significant(0.001234, 3) == "0,001"
    assert numbers.aligned("12,5 s", 3) == "12,5\u2007\u2007 s" and numbers.aligned("–", 3) == "–"
    assert numbers.aligned("1\u202f234", 2) == "1\u202f234\u2008\u2007\u2007"
    assert numbers.percent(0.125, 1) == "12,5 %"
    assert numbers.localised("<b>0.5</b> of 2.5") == "<b>0,5</b> of 2,5"
    assert numbers.general(0.1) == "0,1" and numbers.general(3.0) == "3"
    assert numbers.general(5432.1, 3) == numbers.grouped(5432) != "5432" and numbers.general(1e20, 3) == "1e+20"
    assert numbers.localised("w = 0.67 equals g = 2.03, in torch 2.13.0 (arXiv 2509.09748).") == (
        "w = 0,67 equals g = 2,03, in torch 2.13.0 (arXiv 2509.09748)."
    )


def lines(pattern: re.Pattern[str]) -> Iterator[tuple[Path, str]]:
    """The lines of our sources with ``pattern``, each with its file."""
    for root in (Path(one.__file__).parent for one in (paretone, paretone_app)):
        for path in root.rglob("*.py"):
            for line in filter(pattern.search, path.read_text("utf-8").splitlines()):
                yield path, f"{path.relative_to(root.parent)}: {line.strip()}"


def test_one_place_writes_percent() -> None:
    """With a space, as before every unit: in the window, on the command line and in reports."""
    assert wording.percent(2 / 3, 1) == "66.7 %" and wording.percent(0.1) == "10 %"
    other = re.compile(r":[+\d]*\.\d%\}|\d%[\"'., ]")
    assert not [line for path, line in lines(other) if "front_end" not in path.parts]


def test_one_place_groups_digits() -> None:
    """A comma between thousands would be a decimal sign in German: groups are of :mod:`paretone.wording` only."""
    assert numbers.grouped(23457) == wording.grouped(23457.0) == "23\u202f457", "the engine's sentences, too"
    assert numbers.localised(f"{wording.grouped(1234.5, 1)} GB/s") == "1\u202f234,5 GB/s"
    numbers.use_sign(".")
    assert numbers.grouped(23457) == wording.grouped(23457) == "23,457"
    other = re.compile(r":,(\.(\d|\{\w+\}))?[dfg]?\}")
    assert not [line for path, line in lines(other) if path != Path(wording.__file__)]


def test_names_of_files_and_links_stay() -> None:
    for name in ("/data/f5-mini-w-0.67/log.txt", "C:\\data\\0.5", "https://x.org/v/1.5"):
        assert numbers.localised(f"Wrote {name}, in 1.5 s at -24.3 dB.") == f"Wrote {name}, in 1,5 s at -24,3 dB."


@pytest.mark.parametrize(("number", "said"), [(1, "1 page"), (1200, "1\u202f200 pages")])
def test_one_page_and_more(number: int, said: str) -> None:
    assert numbers.counted(number, "page", "pages") == said


def test_no_plural_is_made_by_adding_a_letter() -> None:
    """Sentences are whole, so that they can be translated."""
    added = re.compile(r"""(['"])\1 if [^}\n]* else (['"])s\2|(['"])s\3 if """)
    found = [path for path in Path(paretone_app.__file__).parent.rglob("*.py") if added.search(path.read_text("utf-8"))]
    assert not found


def test_a_box_shows_a_comma_and_reads_both(qtbot: QtBot) -> None:
    box = DoubleSpinBox(minimum=0.0, maximum=1.0, decimals=3, suffix=" s")
    qtbot.addWidget(box)
    box.setValue(0.15)
    assert box.text() == "0,150 s"
    for typed in ("0,25", "0.25"):
        box.lineEdit().setText(typed)
        box.interpretText()
        assert box.value() == 0.25 and box.text() == "0,250 s"


def test_no_number_of_the_window_has_a_point(window: MainWindow, qtbot: QtBot) -> None:
    """After the main job, in every panel: labels, boxes, tables, axes and what screen readers are told."""
    for action in (window.action.baseline, window.action["calibrate"], window.action.accelerated):
        run(window, action, qtbot)
    window.action["open_example"].trigger()
    qtbot.waitUntil(lambda: bool(window.results.studies))
    window.workspaces.go_to("tradeoff")
    shown = window.panels["tradeoff"].plot
    qtbot.waitUntil(lambda: any("baseline" in one for one in _painted(shown)))
    for place, _ in window.workspaces:
        if place.name != "log":
            window.workspaces.go_to(place.name)
            qtbot.wait(50)
    found = {text for text in _texts(window) if WITH_POINT.search(NAMES.sub("", text))}
    assert not found
    assert any("," in text for text in _texts(window.panels["meters"])), "there are numbers"
    state = window.state
    told = [text for one in state.artefacts.sources if one.origin is not None for text in one.origin]
    assert told and not any(WITH_POINT.search(text) for text in told), "what a profile holds"
    window.notices.warn("δ must be between 0.0 and 1.5.")
    assert window.notices.banner.text == "δ must be between 0,0 and 1,5.", "the engine's sentences, too"
    window.status.say("Layer 3 of 8, error 0.073")
    assert window.status.text == "Layer 3 of 8, error 0,073"
    (action := Action("Calibrate")).set_reason("δ must not be below 0.1.")
    assert action.reason == "δ must not be below 0,1."


def _texts(around: QWidget) -> Iterator[str]:
    for one in around.findChildren(QWidget):
        yield one.accessibleName()
        yield one.accessibleDescription()
        if isinstance(one, QLabel | QAbstractSpinBox):
            yield one.text()
        elif isinstance(one, QTableView):
            model = one.model()
            for row, column in product(range(model.rowCount()), range(model.columnCount())):
                yield str(model.index(row, column).data(Qt.ItemDataRole.DisplayRole) or "")
        elif isinstance(one, Chart):
            yield from _painted(one)


def _painted(chart: Chart) -> Iterator[str]:
    for axis in items(chart, TickAxis):
        yield from axis.spelled(axis.size().width())
    yield from (label.text for labels in items(chart, Labels) for label, _ in labels.placed)
    yield from (entry.text for legend in items(chart, Legend) for entry in legend.entries)
    yield from (item.text() for item in items(chart, QGraphicsSimpleTextItem))


def test_a_knob_is_written_in_one_way_whatever_wrote_the_label() -> None:
    setting = Setting("f5-mini").with_technique(UsedTechnique("ditreducio", Values(threshold=0.2)))
    assert described(setting).startswith("DiTReducio δ = 0.2"), "reports and the command line"
    assert technique_text(setting) == "DiTReducio δ = 0,2"
    labels = ("DiTReducio δ 0.2", "DiTReducio δ 0,2", "DiTReducio δ = 0.2", "DiTReducio δ = 0,2")
    take = Take("one", "2026-11-21", "Text.", "anna", setting, 24000, np.zeros(9, np.float32))
    shown = [label_of(replace(take, label=one)) for one in (*labels, "Mine, 2.5 times", "Baseline")]
    assert shown == ["DiTReducio δ = 0,2"] * 4 + ["Mine, 2,5 times", "Baseline"]
