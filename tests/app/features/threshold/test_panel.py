"""The Threshold panel as people use it: δ dragged, clicked, typed and stepped on the real widget."""

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QGuiApplication, QMouseEvent
from PySide6.QtTest import QSignalSpy, QTest
from PySide6.QtWidgets import QApplication, QWidget

from paretone.models.base import OperationCounts
from paretone.sampling.actions import SkipAction
from paretone.techniques.ditreducio import UNITS
from paretone.techniques.ditreducio.record import CalibrationRecord
from paretone.wording import percent
from paretone_app.features.threshold.panel import ThresholdPanel
from paretone_app.plotting.frame import Blocks
from paretone_app.shell.colours import LIGHT
from paretone_app.widgets.action import Action
from tests.app.acting import items, press
from tests.app.conftest import in_front
from tests.engine.techniques.ditreducio.observing import LAYERS, calibrate

OPERATIONS = OperationCounts(attention=3.0, feed_forward=5.0, fixed=7.0, layers=LAYERS, branches=2)
KEY = Qt.Key


@pytest.fixture
def empty(qtbot) -> ThresholdPanel:
    panel = in_front(ThresholdPanel(LIGHT, Action("Calibrate")), qtbot, 700, 480)
    panel.setFocus()
    return panel


@pytest.fixture
def record() -> CalibrationRecord:
    return calibrate(0.1, 0)


@pytest.fixture
def panel(empty: ThresholdPanel, record: CalibrationRecord) -> ThresholdPanel:
    empty.set_record(record)
    empty.set_threshold(0.1)
    empty.set_operations(OPERATIONS)
    return empty


def place(plot, value: float) -> QPoint:
    """Position of an axis value in the plot."""
    return QPoint(round(float(plot.frame.to_x(value))), round(plot.frame.area.center().y()))


def send_mouse(plot: QWidget, kind: QEvent.Type, where: QPoint) -> None:
    """A mouse event with the left button held, which QTest's moves are not."""
    held = Qt.MouseButton.NoButton if kind is QEvent.Type.MouseButtonRelease else Qt.MouseButton.LeftButton
    button = Qt.MouseButton.NoButton if kind is QEvent.Type.MouseMove else Qt.MouseButton.LeftButton
    place = QPointF(where)
    event = QMouseEvent(kind, place, plot.mapToGlobal(place), button, held, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(plot, event)


def test_it_is_exact_at_its_own_threshold_only(panel: ThresholdPanel, record: CalibrationRecord, qtbot) -> None:
    assert panel.verdict.text().startswith("✓ Exact") and panel.verdict.property("look") == "good"
    assert panel.calibrate_button.isHidden() and not panel.return_button.isEnabled()
    press(panel.histogram, KEY.Key_Right, modifier=Qt.KeyboardModifier.ShiftModifier)
    assert panel.threshold == 0.2
    assert panel.verdict.text().startswith("△ Predicted: needs a calibration at this δ.")
    first = record.derive(0.2).differs_at
    assert f"From layer {first.layer + 1}, step {first.step + 1} on" in panel.verdict.text()
    assert panel.verdict.property("look") == "warning"
    assert panel.calibrate_button.text() == "Calibrate at δ = 0.2"
    with qtbot.waitSignal(panel.calibrate_button.action.triggered):
        QTest.mouseClick(panel.calibrate_button, Qt.MouseButton.LeftButton)
    panel.set_threshold(0.01)
    unmeasured = record.derive(0.01).unmeasured
    assert unmeasured > 0
    assert f"Branch skipping was not measured for {unmeasured} of the computed cells" in panel.verdict.text()


def test_a_calibration_for_the_end_has_no_threshold(empty: ThresholdPanel, record: CalibrationRecord) -> None:
    empty.set_record(replace(record, knobs=record.knobs.replace(objective="end", operations=45.0)))
    empty.set_threshold(1.3)
    assert "Calibrated for 45 %" in empty.verdict.text() and "does not change" in empty.verdict.text()
    assert empty.derivation is not None and empty.derivation.table == record.table
    assert empty.calibrate_button.isHidden()


def test_keys_step_and_jump_and_return(panel: ThresholdPanel, record: CalibrationRecord) -> None:
    moved: list[float] = []
    panel.threshold_changed.connect(moved.append)
    press(panel.histogram, KEY.Key_Right)
    press(panel.share, KEY.Key_Left, KEY.Key_Left)
    press(panel.histogram, KEY.Key_PageUp, KEY.Key_PageDown, KEY.Key_Home)
    assert moved == [0.11, 0.1, 0.09, 0.19, 0.09, 0.1]
    press(panel.histogram, KEY.Key_PageDown, KEY.Key_PageDown)
    assert panel.threshold == 0.0 == panel.derivation.table.skipped_share


def test_dragging_the_line_derives_live(panel: ThresholdPanel, record, qtbot) -> None:
    changes = QSignalSpy(panel.threshold_changed)
    where = [place(panel.histogram, float(value)) for value in np.linspace(0.1, 0.2, 4)]
    send_mouse(panel.histogram, QEvent.Type.MouseButtonPress, where[0])
    for one in where:
        send_mouse(panel.histogram, QEvent.Type.MouseMove, one)
    send_mouse(panel.histogram, QEvent.Type.MouseButtonRelease, where[-1])
    qtbot.waitUntil(lambda: abs(panel.threshold - 0.2) < 0.005)
    assert 0 < changes.count() <= len(where) + 1
    shown = panel.derivation
    assert shown.table == record.derive(panel.threshold).table and shown.exact is False


def test_many_positions_in_one_turn_of_the_event_loop_are_one_change(panel: ThresholdPanel, qtbot) -> None:
    changes = QSignalSpy(panel.threshold_changed)
    for value in np.linspace(0.1, 0.3, 50):
        panel.histogram.moved_to.emit(float(value))
    qtbot.waitUntil(lambda: changes.count() > 0)
    assert changes.count() == 1 and panel.threshold == 0.3
    panel.histogram.moved_to.emit(0.3)
    panel.set_threshold(0.05)
    qtbot.wait(60)
    assert changes.count() == 1, "set from outside, which ends a drag"
    assert panel.threshold == panel.spin_box.value() == 0.05


def test_figures_are_those_of_the_derived_table(panel: ThresholdPanel, record: CalibrationRecord) -> None:
    for threshold in (0.05, 0.1, 0.3):
        panel.set_threshold(threshold)
        table = record.derive(threshold).table
        ratio = table.ops_ratio(OPERATIONS)
        expected = [percent(table.skipped_share, 1), percent(ratio, 1), f"{1 / ratio:.2f}×"]
        assert [one.text() for one in panel.figures.values()] == expected


def test_histogram_and_curve_show_the_trials_and_their_tables(panel: ThresholdPanel, record: CalibrationRecord) -> None:
    for action in (SkipAction.TS, SkipAction.BS):
        errors = record.normalised_errors(action)
        edges = panel.histogram.edges
        inside = np.count_nonzero((errors >= edges[0]) & (errors <= edges[-1]))
        assert panel.histogram.counts[action].sum() == inside > 0
    every = sum(counts.sum() for counts in panel.histogram.counts.values())
    assert sum(bar.y[1] - bar.y[0] for bars in items(panel.histogram, Blocks) for bar in bars.blocks) == every
    thresholds, shares = panel.share.thresholds, panel.share.shares
    assert record.threshold == pytest.approx(min(thresholds, key=lambda one: abs(one - record.threshold)))
    for threshold, share in zip(thresholds, shares, strict=True):
        assert share == pytest.approx(100 * record.derive(float(threshold)).table.skipped_share)
    assert shares[0] < shares[-1]


def test_a_logarithmic_axis_shows_the_same_threshold_and_answers_to_clicks(panel: ThresholdPanel, qtbot) -> None:
    press(panel.log_box, KEY.Key_Space)
    assert panel.histogram.frame.across.logarithmic and panel.share.frame.across.logarithmic
    assert panel.histogram.threshold == panel.threshold == 0.1
    with qtbot.waitSignal(panel.threshold_changed):
        QTest.mouseClick(panel.histogram, Qt.MouseButton.LeftButton, pos=place(panel.histogram, 0.2))
    assert panel.threshold == pytest.approx(0.2, abs=0.01)
    assert panel.histogram.interval == panel.record.exact_interval
    panel.set_threshold(0.0)
    red = QColor(LIGHT.danger)
    shown, y = panel.histogram.grab().toImage(), place(panel.histogram, 0.1).y()
    left = round(panel.histogram.frame.area.left())
    assert any(shown.pixelColor(x, y) == red for x in range(left - 2, left + 3)), "0 is at the left end"


def test_both_plots_show_the_same_section(panel: ThresholdPanel) -> None:
    whole = panel.histogram.frame.across
    press(panel.share, KEY.Key_Plus)
    section = panel.histogram.frame.across
    assert section == panel.share.frame.across != whole
    assert panel.histogram.frame.up.low == 0.0, "up, all is shown"
    press(panel.histogram, KEY.Key_Right, modifier=Qt.KeyboardModifier.ControlModifier)
    assert panel.share.frame.across.low > section.low and panel.threshold == 0.1
    press(panel.histogram, KEY.Key_Home, *[KEY.Key_Left] * 40)
    assert panel.threshold == 0.0 and panel.share.frame.across.low == 0.0, "δ stays in view"
    press(panel.share, KEY.Key_0)
    assert panel.histogram.frame.across == panel.share.frame.across == whole


def test_plots_can_be_read_by_the_mouse_and_copied_as_tables(panel: ThresholdPanel, record: CalibrationRecord) -> None:
    for plot, words in ((panel.histogram, "temporal"), (panel.share, "% skipped")):
        rows = [line.split("\t") for line in plot.as_text().splitlines()]
        assert len(rows) > 20 and len({len(row) for row in rows}) == 1
        assert words in plot.tip_at(QPointF(place(plot, 0.05)))[0] and plot.tip_at(QPointF(0, 0)) is None
    press(panel.histogram, KEY.Key_C, modifier=Qt.KeyboardModifier.ControlModifier)
    rows = [line.split("\t") for line in QGuiApplication.clipboard().text().split("\n")]
    split = rows.index(["threshold", "skipped share"])
    counted = sum(int(row[2]) + int(row[3]) for row in rows[1 : split - 1])
    assert counted == sum(counts.sum() for counts in panel.histogram.counts.values())
    shares = {float(row[0]): float(row[1]) for row in rows[split + 1 :]}
    for threshold in (0.0, 0.1, 2.0):
        assert shares[threshold] == pytest.approx(record.derive(threshold).table.skipped_share, abs=1e-4)


def test_the_axis_names_the_metrics_unit(empty: ThresholdPanel, record: CalibrationRecord) -> None:
    first, second = sorted(UNITS)[:2]
    empty.set_metric(first)
    assert UNITS[first] in empty.share.frame.bottom.dimension.title and UNITS[first] in empty.spin_box.toolTip()
    empty.set_record(replace(record, knobs=record.knobs.replace(metric=first)))
    empty.set_metric(second)
    assert UNITS[first] in empty.share.frame.bottom.dimension.title, "what was measured has a unit already"


def test_without_a_record_it_says_what_to_do_and_still_offers_a_first_calibration(empty: ThresholdPanel, qtbot) -> None:
    assert "calibrate once" in empty.verdict.text() and empty.figures["Skipped"].text() == "–"
    with qtbot.waitSignal(empty.threshold_changed):
        press(empty.histogram, KEY.Key_Right)
    assert empty.derivation is None and empty.threshold == 0.11
    assert empty.pages.is_empty and empty.pages.empty.buttons[0].isEnabled()


def test_screen_readers_hear_threshold_verdict_and_share(panel: ThresholdPanel) -> None:
    press(panel.histogram, KEY.Key_Right)
    for plot in (panel.histogram, panel.share):
        assert plot.accessibleName() and "δ is 0.11." in plot.accessibleDescription()
        assert panel.figures["Skipped"].text() in plot.accessibleDescription()
    panel.set_threshold(2.0)
    for plot in (panel.histogram, panel.share):
        assert plot.frame.area.contains(QPointF(place(plot, 2.0))), "in view, beyond all errors"
