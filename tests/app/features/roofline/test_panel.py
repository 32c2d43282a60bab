"""The Roofline panel as people use it: real key presses and clicks on the real widgets."""

import itertools
import json
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtTest import QSignalSpy, QTest
from pytestqt.qtbot import QtBot

from paretone.measure.roofline.ceilings import Ceilings
from paretone.measure.roofline.counts import Work
from paretone.measure.roofline.report import (
    ATTENTION,
    DECODER,
    FEED_FORWARD,
    NORMS,
    SAMPLING,
    Component,
    Phase,
    RooflineReport,
)
from paretone.session.events import EngineStatus
from paretone.setting.setting import Setting
from paretone_app.features.roofline.panel import RooflinePanel, summary
from paretone_app.plotting.frame import Blocks
from paretone_app.plotting.words import Labels
from paretone_app.shell.colours import DARK, LIGHT
from paretone_app.shell.window import MainWindow
from paretone_app.shell.workspaces import recolour
from paretone_app.state.jobs import Kind, Outcome
from tests.app.acting import NamedActs, acts, items, press
from tests.app.conftest import SMALL, in_front
from tests.app.holding import Posts
from tests.engine.measure.roofline.known import keep_known_ceilings

KEY = Qt.Key
PARTS = f"{SMALL} strategy roofline"


def report(factor: float = 1.0, precision: str = "float32", model: str = "small") -> RooflineReport:
    """100 ms of evaluations times ``factor``, and a decoder."""
    known = Ceilings("A processor", "CPU seconds", {"float32": 1e11, "bfloat16": 5e11}, {"float32": 1e10}, 2e-6)
    components = (
        Component(ATTENTION, 8, Work(2e8, 1e6), precision, 1, 0.004 * factor),
        Component(FEED_FORWARD, 8, Work(4e8, 2e6), precision, 4, 0.006 * factor, "half is skipped"),
        Component(NORMS, 8, Work(1e5, 2e6), "float32", 2, 0.0005 * factor),
        Component(SAMPLING, 4, Work(0, 1e5), "float32", 5, 0.00001),
    )
    decoder = Component(DECODER, 1, Work(1e8, 1e7), "float32", 50, 0.004 * factor)
    phases = (
        Phase("evaluation", "Evaluations", 4, components, 0.022 * factor, 30, (14, 14), "2 branches × 100 frames"),
        Phase("decoder", "Decoder", 1, (decoder,), None, 50),
    )
    return RooflineReport(model, "Small", Setting(model), known, phases, "A text.", "anna", 2.0, notes=("A note.",))


@pytest.fixture
def panel(qtbot: QtBot) -> RooflinePanel:
    made = RooflinePanel(LIGHT, NamedActs(), dict(zip("AB", acts(2), strict=True)), acts(3))
    made.show_report("A", report())
    made.show_report("B", report(0.5, "bfloat16"))
    in_front(made, qtbot, 1000, 640)
    return made


def test_what_was_measured_is_summed_up(panel: RooflinePanel) -> None:
    assert panel.side == "B"
    said, tip = summary(panel.reports["B"]), panel.headline.toolTip().splitlines()
    assert panel.headline.text() == said and "46.0 ms for 2.0 s of audio (" in said and "170 launches" in said
    assert "own seconds are wall time" in tip[1] and tip[2] == "A note."
    assert panel.bars.describe().startswith("A: 92.0 ms; Attention 32.0 ms, Feed-forward 48.0 ms")
    assert "as fast as A" in panel.bars.frame.titles[0]
    panel.show_report("B", replace(report(0.5), text="Another text."))
    assert panel.bars.frame.titles[0] == "Where the time goes: A and B spoke different sentences"


def test_a_card_is_shown_on_paper(panel: RooflinePanel, tmp_path: Path) -> None:
    box = panel.ceilings_box
    box.setCurrentIndex(box.findText("NVIDIA L20"))
    assert "On paper, NVIDIA L20: a floor of" in panel.headline.text()
    assert len(panel.bars.as_text().splitlines()) == 11
    known = box.currentData()
    assert len(panel.plot.points) == 8
    for point in panel.plot.points:
        roof = min(known.operations_of(point.component.precision), point.intensity * known.bytes_of("float32"))
        assert point.reached == pytest.approx(roof), "on its roof"
        assert "on paper" in panel.plot.describe(0)
    assert panel.table.item(1, 6).text() == "–" != panel.table.item(1, 5).text()
    panel.write(tmp_path / "paper.csv")
    assert "NVIDIA L20" in (tmp_path / "paper.csv").read_text()
    box.setCurrentIndex(0)
    assert "the floor of" in panel.headline.text() and panel.reports["A"] == report()


def test_a_rest_within_noise_or_below_0_says_so(panel: RooflinePanel) -> None:
    measured = report()
    evaluations = replace(measured.phases[0], rest_range=(-0.003, 0.002))
    panel.show_report("A", replace(measured, phases=(evaluations, measured.phases[1])))
    panel.show_side("A")
    assert [panel.table.item(5, column).text().strip() for column in (0, 8)] == ["Rest", "within noise"]
    assert "Within noise: between -12 and 8 ms" in panel.table.item(5, 0).toolTip()
    of_a, of_b = panel.bars.describe().splitlines()
    assert "Rest 3.96 ms (within noise)" in of_a and "noise" not in of_b
    # Below 0, it goes back and is no time spent.
    saved = replace(measured.phases[0], whole_seconds=0.018, rest_range=(-0.004, -0.002))
    panel.show_report("A", replace(measured, phases=(saved, measured.phases[1])))
    assert panel.table.item(5, 8).text().strip() == "saved together"
    bars = [bar for blocks in items(panel.bars, Blocks) for bar in blocks.blocks]
    (rest,) = (bar for bar in bars if bar.x[1] < bar.x[0])
    assert rest.outline is not None and rest.fill.style() is not Qt.BrushStyle.SolidPattern, "it goes back"
    assert len(bars) > 10 and all(bar.outline is None for bar in bars if bar is not rest)
    assert "saved, less than 0" in [entry.text for entry in panel.bars.legend.entries]
    panel.bars.grab()
    words = [label.text for labels in items(panel.bars, Labels) for label, _ in labels.placed]
    assert [one for one in words if one.startswith("−")] == ["−12.0 ms: saved"]
    panel.show_report("A", measured)
    assert "saved, less than 0" not in [entry.text for entry in panel.bars.legend.entries]


def test_points_have_their_places_under_the_roof(panel: RooflinePanel) -> None:
    plot = panel.plot
    # Sampling has no operations, and what is left was not counted: both have no place.
    assert [point.component.name for point in plot.points] == [ATTENTION, FEED_FORWARD, NORMS, DECODER] * 2
    area = plot.frame.area
    for index, point in enumerate(plot.points):
        place = plot.frame.place(point.intensity, point.reached)
        assert area.contains(place)
        known = panel.reports[point.side].ceilings
        allowed = point.component.work.operations / known.floor(point.component.work, point.component.precision)
        assert plot.frame.place(point.intensity, allowed).y() <= place.y() and plot.point_at(place) == index
    assert plot.point_at(QPointF(1, 1)) is None
    assert "50 GFLOP/s at 200 FLOP/B, 2.00× the floor, bound by compute" in plot.describe(0)


def test_plot_and_table_choose_together(panel: RooflinePanel) -> None:
    panel.plot.setFocus()
    for key, name in ((KEY.Key_End, "Decoder"), (KEY.Key_Home, "Attention"), (KEY.Key_Right, "Feed-forward")):
        press(panel.plot, key)
        assert panel.table.currentItem().text().strip() == name
    assert panel.side == "A", "the first point is A's, so A's table came forward"
    panel.table.setFocus()
    press(panel.table, KEY.Key_Down)
    assert "Norms" in panel.plot.accessibleDescription()
    point = panel.plot.points[3]
    place = panel.plot.frame.place(point.intensity, point.reached).toPoint()
    QTest.mouseClick(panel.plot, Qt.MouseButton.LeftButton, pos=place)
    assert panel.side == "A" and panel.table.currentItem().text().strip() == "Decoder"


def test_the_table_says_all(panel: RooflinePanel) -> None:
    panel.show_side("A")
    texts = [panel.table.item(row, 0).text().strip() for row in range(panel.table.rowCount())]
    head = "Evaluations: 4 × 2 branches × 100 frames; 22.0 ms each; 30 launches each (14 per layer)"
    assert texts[:6] == [head, "Attention", "Feed-forward", "Norms, residuals", "Sampling", "Rest"]
    assert texts[6:] == ["Decoder: 1 × ; 50 launches each", "Decoder"]
    row = [panel.table.item(2, column).text().strip() for column in range(9)]
    assert row == ["Feed-forward", "8", "400", "2.00", "4", "32.0", "48.0", "1.50", "compute"]
    assert panel.table.item(2, 0).toolTip().endswith("Half is skipped.")
    panel.show_side("B")
    assert panel.table.item(1, 0).text().strip() == "Attention (bfloat16)"


def test_measuring_is_asked_for_and_followed(panel: RooflinePanel) -> None:
    buttons = (panel.measure_buttons["A"], panel.again_button, panel.trace_button, panel.cancel_button)
    asked = [QSignalSpy(one.action.triggered) for one in buttons]
    for button in buttons:
        button.click()
    assert [one.count() for one in asked] == [1, 1, 1, 1]
    panel.begin("A")
    assert panel.cancel_button.isVisible()
    panel.say("Measuring components …")
    panel.progress.show_progress(30, 60, 4.0)
    assert panel.progress.format() == "%p %, 4 s left" and panel.state.text() == "Measuring components …"
    panel.end("Cancelled; no results were kept.")
    assert panel.state.text().startswith("Cancelled") and panel.cancel_button.isHidden()
    panel.end("It went wrong.", failed=True)
    assert panel.state.property("look") == "warning"


def test_plot_and_bars_are_copied_as_tables(panel: RooflinePanel) -> None:
    for chart, head, line in (
        (panel.plot, "side\tcomponent\tFLOP/B\tFLOP/s\tseconds", "A\tAttention\t200\t5e+10\t0.032"),
        (panel.bars, "side\tcomponent\tseconds\tfloor, seconds", "A\tAttention\t0.032\t0.016"),
    ):
        press(chart, KEY.Key_C, modifier=Qt.KeyboardModifier.ControlModifier)
        assert QGuiApplication.clipboard().text().splitlines()[:2] == [head, line]


def test_everything_is_written(panel: RooflinePanel, tmp_path: Path) -> None:
    drawing, picture, table = (tmp_path / f"roofline.{ending}" for ending in ("svg", "png", "csv"))
    for path in (drawing, picture, table):
        panel.write(path)
    for said in ("Where the time goes", "Feed-forward (bfloat16)", "compute", "A text."):
        assert said in drawing.read_text()
    assert QImage(str(picture)).width() == 2400
    lines = table.read_text().splitlines()
    assert sum(line.startswith("phase,component") for line in lines) == 2 and "# side: B" in lines


def test_the_other_scheme_is_drawn(panel: RooflinePanel) -> None:
    recolour(panel, DARK)
    for image in (panel.plot.grab().toImage(), panel.bars.grab().toImage()):
        places = itertools.product(range(0, image.width(), 2), range(0, image.height(), 2))
        assert {DARK.base, DARK.baseline, DARK.accelerated} <= {image.pixelColor(x, y).name() for x, y in places}


@pytest.fixture(autouse=True)
def known_ceilings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Ceilings that are kept for this machine, so that no test has to measure them."""
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path / "own"))
    keep_known_ceilings()


def test_a_and_b_are_measured_and_written(window: MainWindow, posts: Posts, qtbot: QtBot, tmp_path: Path) -> None:
    presenter, panel = window.features["roofline"], window.panels["roofline"]
    assert "component runs alone" in panel.pages.invitation.text() and panel.measure_buttons["A"].isEnabled()
    assert not panel.measure_buttons["B"].isEnabled(), "DiTReducio is used and has no table yet"
    posts.hold_at(EngineStatus)
    with qtbot.waitSignal(window.jobs.ended) as ended:
        panel.measure_buttons["A"].click()
        panel.cancel_button.click()
        posts.go_on()
    assert ended.args[1] is Outcome.CANCELLED
    assert panel.reports["A"] is None and panel.state.text().startswith("Cancelled")
    window.state.selection.set_text("One. Two.")
    with qtbot.waitSignal(window.jobs.ended) as ended:
        panel.measure_buttons["A"].click()
        assert not panel.measure_buttons["A"].isEnabled() and panel.cancel_button.isVisibleTo(panel)
    assert (ended.args[0].kind, ended.args[1]) == (Kind.ROOFLINE, Outcome.FINISHED)
    report = panel.reports["A"]
    assert [phase.name for phase in report.phases] == ["conditioning", "evaluation", "decoder"]
    assert report.notes[-1] == "Measured on the first of 2 passages." and not report.setting.techniques

    window.state.selection.switch("ditreducio", False)
    window.state.selection.switch("steps", True)
    window.state.selection.set_knob("steps", "steps", 3)
    trace = tmp_path / "trace.json"
    with qtbot.waitSignal(window.jobs.ended):
        presenter.measure("B", trace=trace)
    assert panel.side == "B" and panel.reports["B"].phases[1].forwards == 3
    assert panel.state.text() == f"Wrote {trace}." and json.loads(trace.read_bytes())["traceEvents"]
    presenter.write(tmp_path / "roofline.csv")
    assert "# side: B" in (tmp_path / "roofline.csv").read_text()
