"""Threshold: the measured errors, a δ to drag through them, and the share of cells that it would skip. In the plots
left and right move δ, with Shift (or Page Up and Down) by ten steps; Home returns to the calibrated δ."""

from collections.abc import Callable

import numpy as np
from PySide6.QtCore import QMarginsF, QPointF, QRectF, QSignalBlocker, Qt, QTimer, Signal
from PySide6.QtGui import QBrush, QColor, QGuiApplication, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QCheckBox, QLabel, QSizePolicy, QWidget

from paretone.figures.glyphs import Glyph
from paretone.figures.scatter import Dimension, Scale
from paretone.sampling.actions import SkipAction
from paretone.sampling.operations import OperationCounts
from paretone.techniques.ditreducio import TECHNIQUE, THRESHOLD, UNITS
from paretone.techniques.ditreducio.record import CalibrationRecord, Derivation
from paretone_app.features.strategy.grid import action_colours
from paretone_app.numbers import general, percent, times
from paretone_app.plotting.chart import Wholes, ZoomChart
from paretone_app.plotting.curves import CurveLayers, Series
from paretone_app.plotting.frame import Block, Blocks, Shape, Shapes, pen
from paretone_app.plotting.points import Points
from paretone_app.shell.colours import Colours
from paretone_app.shell.entries import TERM
from paretone_app.shell.theme import BROAD, GAP, set_look
from paretone_app.shell.workspaces import recolour
from paretone_app.widgets import build
from paretone_app.widgets.action import Action, ActionButton
from paretone_app.widgets.boxes import DoubleSpinBox
from paretone_app.widgets.invitation import Invited
from paretone_app.widgets.layouts import GridLayout, VBoxLayout

_FAR_STEPS = 10
"""Steps that δ moves with Shift, or by Page Up and Page Down."""
_STEPS = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1, Qt.Key.Key_PageDown: -_FAR_STEPS, Qt.Key.Key_PageUp: _FAR_STEPS}
_LEFT, _MARK = 4.6, 0.32
"""In font heights: left margin for axis labels, equal in stacked plots; radius of a mark."""


class ErrorPlot(ZoomChart):
    """A plot over normalised errors, with δ and the interval of δ for which the table is exact."""

    moved_to = Signal(float)
    steps_wanted = Signal(int)
    home_wanted = Signal()
    copy_wanted = Signal()

    own_keys = (*_STEPS, Qt.Key.Key_Home)
    own_modifiers = ZoomChart.own_modifiers | Qt.KeyboardModifier.ShiftModifier
    both_axes = False
    ideal, least = (32.0, 12.0), (18.0, 6.0)

    def __init__(self, name: str, vertical: str, colours: Colours) -> None:
        super().__init__(name, colours)
        self._whole, self._up = Scale(), Scale()
        self.threshold = 0.0
        self.interval: tuple[float, float] | None = None
        self.summary = ""
        self._dragged = False
        self._exact, self._line = Shapes(self.frame, 1), Shapes(self.frame, 8)
        self.frame.left.set_title(Dimension(vertical))
        self.frame.margins = QMarginsF(_LEFT, 0.5, 0.8, 2.7)

    def show_axes(self, across: Scale, up: Scale) -> None:
        """Set the full ranges of both axes, and show them."""
        self._whole, self._up = across, up
        self.show_everything()
        self.draw_section()

    def show_threshold(self, threshold: float, interval: tuple[float, float] | None) -> None:
        """Move δ; ``interval``: of δ for which the table is exact."""
        self.threshold, self.interval = threshold, interval
        self.draw_section()
        if self.zoomed and not self._dragged:
            self.bring_into_view(QPointF(float(self.frame.to_x(threshold)), self.frame.area.center().y()))

    @property
    def wholes(self) -> Wholes:
        """The full ranges, extended to include δ."""
        whole = self._whole
        return Scale(whole.low, max(whole.high, 1.05 * self.threshold), whole.logarithmic), self._up

    def draw_section(self) -> None:
        across, up = self.sections[0] or self.wholes[0], self._up
        good, ends = QColor(self.colours.good), (up.low, up.high)
        fill = QColor(good)
        fill.setAlphaF(0.28)
        self._exact.shapes = []
        if self.interval is not None:
            low, high = (min(max(one, across.low), across.high) for one in self.interval)
            corners = [(low, up.low), (low, up.high), (high, up.high), (high, up.low)]
            # Intervals may be narrower than a pixel.
            edges = [Shape((one, one), ends, pen(good)) for one in (low, high)]
            self._exact.shapes = [Shape.through(corners, fill=QBrush(fill)), *edges]
        # On a logarithmic axis, δ = 0 is drawn at the left end.
        at = max(self.threshold, across.low) if across.logarithmic else self.threshold
        self._line.shapes = [Shape((at, at), ends, pen(self.colours.danger, 4.0 if self._dragged else 2.0))]
        self.frame.set_scales(across, up)

    def show_again(self) -> None:
        self.draw_section()

    def cursor_text(self) -> str:
        return self.summary

    def copy(self) -> None:
        self.copy_wanted.emit()

    def figure_at(self, place: QPointF) -> float:
        area = self.frame.area
        return self.frame.across.at((place.x() - area.left()) / max(1.0, area.width()))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if self.begins_move(event):
            return
        if event.button() is not Qt.MouseButton.LeftButton or not self.frame.area.contains(event.position()):
            super().mousePressEvent(event)
            return
        self._dragged = True
        self.moved_to.emit(self.figure_at(event.position()))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._dragged:
            self.moved_to.emit(self.figure_at(event.position()))
        elif not self.goes_on_moving(event):
            self.show_shape(event)
            line = float(self.frame.to_x(self.threshold))
            if self.frame.area.contains(event.position()) and abs(line - event.position().x()) < 5.0:
                self.setCursor(Qt.CursorShape.SplitHCursor)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if self._dragged:
            self._dragged = False
            self.draw_section()
        elif not self.ends_move(event):
            super().mouseReleaseEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, modifiers = Qt.Key(event.key()), event.modifiers() & ~self.own_modifiers
        if modifiers or key not in self.own_keys:
            super().keyPressEvent(event)
        elif key == Qt.Key.Key_Home:
            self.home_wanted.emit()
        else:
            steps = _STEPS[key]
            shifted = event.modifiers() & Qt.KeyboardModifier.ShiftModifier
            self.steps_wanted.emit(steps * _FAR_STEPS if shifted and abs(steps) == 1 else steps)


class Histogram(ErrorPlot):
    """Number of trials by error: temporal skips, and branch skips on top of them."""

    def __init__(self, colours: Colours) -> None:
        super().__init__("Histogram of the measured errors", "Trials", colours)
        self.edges = np.empty(0)
        self.counts: dict[SkipAction, np.ndarray] = {}
        self._bars = Blocks(self.frame, 2)
        self.frame.bottom.hide()
        self.frame.margins = QMarginsF(_LEFT, 0.5, 0.8, 0.4)

    def show_counts(self, across: Scale, edges: np.ndarray, counts: dict[SkipAction, np.ndarray]) -> None:
        """Show the number of errors of each action in the bins between ``edges``."""
        self.edges, self.counts = edges, counts
        most = max(1.0, float(np.sum(list(counts.values()), axis=0).max(initial=0)))
        self.show_axes(across, Scale(0.0, 1.1 * most))

    def draw_section(self) -> None:
        fills, bars = action_colours(self.colours), []
        below = np.zeros(max(0, len(self.edges) - 1))
        for action, counts in self.counts.items():
            ink, outline = QColor(fills[action][0]), pen(self.colours.base)
            bars += [
                Block((self.edges[one], self.edges[one + 1]), (below[one], below[one] + counts[one]), ink, outline)
                for one in np.flatnonzero(counts).tolist()
            ]
            below = below + counts
        self._bars.blocks = bars
        super().draw_section()

    def tip_at(self, place: QPointF) -> tuple[str, QRectF] | None:
        if not self.counts or not self.frame.area.contains(place):
            return None
        after = int(np.searchsorted(self.edges, self.figure_at(place)))
        index = min(max(after - 1, 0), len(self.edges) - 2)
        temporal, branch = (int(self.counts[one][index]) for one in (SkipAction.TS, SkipAction.BS))
        ends = f"{general(self.edges[index], 3)} to {general(self.edges[index + 1], 3)}"
        return f"{ends}: {temporal} temporal, {branch} branch skips", QRectF(self.rect())

    def as_text(self) -> str:
        lines = ["from\tto\ttemporal skip trials\tbranch skip trials"]
        for index in range(len(self.edges) - 1):
            counts = "\t".join(str(int(one[index])) for one in self.counts.values())
            lines.append(f"{self.edges[index]:.6g}\t{self.edges[index + 1]:.6g}\t{counts}")
        return "\n".join(lines)


class SharePlot(ErrorPlot):
    def __init__(self, colours: Colours) -> None:
        super().__init__("Share of skipped cells over δ", "Skip, %", colours)
        self.thresholds = self.shares = np.empty(0)
        """The curve; shares in per cent."""
        self.share: float | None = None
        """Share skipped at δ, in per cent, if known."""
        self._curve, self._point = CurveLayers(self.frame, 4), Points(self.frame, 9)

    def show_curve(self, across: Scale, thresholds: np.ndarray, shares: np.ndarray) -> None:
        self.thresholds, self.shares = thresholds, shares
        self.show_axes(across, Scale(0.0, 108.0))

    def draw_section(self) -> None:
        curve = Series("skipped", self.thresholds, self.shares, self.colours.accent)
        self._curve.show([curve], self.sections[0] or self.wholes[0], self._up)
        there = [] if self.share is None else [self.share]
        self._point.across, self._point.up = np.full(len(there), self.threshold), np.array(there, float)
        self._point.glyphs = [Glyph((self.colours.danger,), "circle")] * len(there)
        self._point.order, self._point.radius = np.arange(len(there)), _MARK * self.em
        super().draw_section()

    def tip_at(self, place: QPointF) -> tuple[str, QRectF] | None:
        if not len(self.thresholds) or not self.frame.area.contains(place):
            return None
        index = int(np.argmin(np.abs(self.frame.to_x(self.thresholds) - place.x())))
        words = f"δ = {general(self.thresholds[index], 3)}: {percent(self.shares[index] / 100, 1)} skipped"
        return words, QRectF(self.rect())

    def as_text(self) -> str:
        rows = zip(self.thresholds.tolist(), self.shares.tolist(), strict=True)
        return "\n".join(["δ\tskipped, %", *(f"{delta:.6g}\t{share:.4g}" for delta, share in rows)])


DECIMALS = 3
"""Decimals to which moving δ rounds it, so that the displayed value is exact."""


class ThresholdPanel(QWidget):
    """Histogram of the measured errors, share of skipped cells over δ, and whether the table at δ is exact."""

    threshold_changed = Signal(float)
    """The user moved δ. Coalesced while dragging."""

    def __init__(
        self, colours: Colours, calibrate: Action, derive: Callable[[float], Derivation | None] | None = None
    ) -> None:
        """``calibrate`` calibrates at :attr:`threshold`; ``derive`` derives the table of the shown record at a
        threshold, from a cache shared with others."""
        super().__init__()
        self._calibrate = calibrate
        self._derived = derive
        self._colours = colours
        self.record: CalibrationRecord | None = None
        self.derivation: Derivation | None = None
        """The table at δ and whether it is exact; ``None`` without a record."""
        self._operations: OperationCounts | None = None
        self.threshold = float(THRESHOLD.default)
        self._metric = "mae"
        self._errors = {SkipAction.TS: np.empty(0), SkipAction.BS: np.empty(0)}
        self._reason, self._yet = "", "calibrate once"
        self._pending: float | None = None
        self._timer = QTimer(self, singleShot=True, interval=15)
        self._timer.timeout.connect(self._move)
        self._build()
        recolour(self, colours)
        self._draw()

    def _build(self) -> None:
        self.verdict = build.words(selectable=True)
        self.verdict.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self.verdict.setMinimumHeight(self.fontMetrics().height() * 2 + 4)
        self.calibrate_button = ActionButton(self._calibrate)

        self.histogram, self.share = Histogram(self._colours), SharePlot(self._colours)
        for plot, other in ((self.histogram, self.share), (self.share, self.histogram)):
            plot.section_changed.connect(lambda plot=plot, other=other: other.show_sections(plot.sections))
            plot.moved_to.connect(self._drag)
            plot.steps_wanted.connect(lambda steps: self._move_to(self.threshold + steps * THRESHOLD.step))
            plot.home_wanted.connect(self._return)
            plot.copy_wanted.connect(lambda: QGuiApplication.clipboard().setText(self.as_text()))
        self.legend = build.words(name="Legend", rich=True)

        limits = {"minimum": THRESHOLD.minimum, "maximum": THRESHOLD.maximum, "singleStep": THRESHOLD.step}
        self.spin_box = build.named(DoubleSpinBox(decimals=DECIMALS, **limits, value=self.threshold), "Threshold δ")
        self.spin_box.setProperty(TERM, f"{TECHNIQUE.title}: {THRESHOLD.title}")
        self.spin_box.valueChanged.connect(self._move_to)
        self.return_button = build.button("Calibrated δ", self._return, "Return to the calibration's threshold (Home)")
        self.log_box = build.named(QCheckBox("Logarithmic"), tip="Logarithmic error axis")
        self.log_box.toggled.connect(self._draw)

        self.figures: dict[str, QLabel] = {}
        self.heads: dict[str, QLabel] = {}
        figures = GridLayout()
        figures.setHorizontalSpacing(BROAD)
        figures.setVerticalSpacing(0)
        for column, name in enumerate(("Skipped", "Operations", "Allows up to")):
            head, value = build.label(name, "muted"), build.label("–", "title")
            head.setProperty(TERM, name)
            for row, one in enumerate((head, value)):
                one.setAlignment(Qt.AlignmentFlag.AlignRight)
                figures.addWidget(one, row, column)
            self.figures[name], self.heads[name] = value, head

        self._top = build.row((self.verdict, 1), build.column(self.calibrate_button, 1))
        self.pages = Invited(build.column(self.legend, (self.histogram, 3), (self.share, 2)))
        self.pages.offer(self._calibrate, "Calibrate")
        controls = build.title_of("&Threshold δ", self.spin_box), self.spin_box, self.return_button, self.log_box
        build.fill(VBoxLayout(self), (self._top, (self.pages, 1), build.row(*controls, 1, figures)), (GAP,) * 4)
        self.setFocusProxy(self.histogram)

    def set_record(self, record: CalibrationRecord | None) -> None:
        """Show the measurements of a calibration. δ stays; see :meth:`set_threshold`."""
        if record is self.record:
            return
        self.record = record
        if record is not None:
            self._metric = str(record.knobs["metric"])
        for action in self._errors:
            errors = np.empty(0) if record is None else record.normalised_errors(action).ravel()
            self._errors[action] = errors[~np.isnan(errors)]
        self._derive()
        self._draw()

    def set_threshold(self, threshold: float) -> None:
        self._pending = None
        if threshold != self.threshold:
            self.threshold = threshold
            self._derive()
            self._show()

    def set_metric(self, metric: str) -> None:
        """Set the error metric whose unit is shown without a record."""
        if self.record is None and metric != self._metric:
            self._metric = metric
            self._label()

    def set_reason(self, reason: str, yet: str = "calibrate once") -> None:
        """Set why the model cannot be measured, or ``""``; ``yet``: how to measure it, as part of a sentence."""
        self._reason, self._yet = reason, yet
        self._show()

    def set_operations(self, operations: OperationCounts | None, title: str = "Operations") -> None:
        """Operations of a backbone evaluation, to predict the ops ratio; ``title``: their heading."""
        self._operations = operations
        self.heads["Operations"].setText(title)
        self._show()

    def set_colours(self, colours: Colours) -> None:
        self._colours = colours
        fills = action_colours(colours)
        self.legend.setText(
            f"<span style='color:{fills[SkipAction.TS][0]}'>■</span> temporal skip tried &nbsp; "
            f"<span style='color:{fills[SkipAction.BS][0]}'>■</span> branch skip tried, on top &nbsp; "
            f"<span style='color:{colours.danger}'>┃</span> δ: everything to its left is skipped &nbsp; "
            f"<span style='color:{colours.good}'>▒</span> δ for which the table is exact"
        )
        self._label()

    def as_text(self) -> str:
        head, *rows = self.histogram.as_text().split("\n")
        lines = [f"{head}\t({UNITS[self._metric]})", *rows, "", "threshold\tskipped share"]
        if self.record is not None:
            thresholds = np.arange(THRESHOLD.minimum, THRESHOLD.maximum + THRESHOLD.step / 2, THRESHOLD.step)
            tables = [(one, self.record.derive(float(one)).table) for one in thresholds]
            lines += [f"{one:.{DECIMALS}f}\t{table.skipped_share:.4f}" for one, table in tables]
        return "\n".join(lines)

    def _drag(self, position: float) -> None:
        # Repainting per mouse event would lag behind the mouse; the latest position wins.
        self._pending = position
        if not self._timer.isActive():
            self._timer.start()

    def _move(self) -> None:
        if self._pending is not None:
            self._move_to(self._pending)

    def _return(self) -> None:
        if self.record is not None:
            self._move_to(self.record.threshold)

    def _move_to(self, threshold: float) -> None:
        self._pending = None
        threshold = round(min(max(threshold, THRESHOLD.minimum), THRESHOLD.maximum), DECIMALS)
        if threshold == self.threshold:
            self._place()
            return
        self.threshold = threshold
        self._derive()
        self._show()
        self.threshold_changed.emit(threshold)

    def _derive(self) -> None:
        if self.record is None:
            self.derivation = None
        else:
            self.derivation = (self._derived or self.record.derive)(self.threshold)

    def _label(self) -> None:
        unit = UNITS[self._metric]
        self.share.frame.bottom.set_title(Dimension(f"Error ÷ (l/L) of layer l of L, {unit}", unit))
        self.spin_box.setToolTip(f"{THRESHOLD.meaning} Unit: {UNITS[self._metric]}.")

    def _draw(self) -> None:
        """Draw what depends on the record and the axis, then what depends on δ."""
        record, logarithmic = self.record, self.log_box.isChecked()
        every = np.concatenate(list(self._errors.values()))
        calibrated = self.threshold if record is None else record.threshold
        most, least = 2.2 * max(calibrated, THRESHOLD.step), 10.0**-DECIMALS
        if every.size:
            most = max(float(np.percentile(every, 97)), 2.2 * calibrated)
            least = max(float(every.min()), least)
        across = Scale(least, max(most, 2 * least), True) if logarithmic else Scale(0.0, most)
        edges = _spread(across, 48 + 1)
        counts = {
            action: np.histogram(np.maximum(errors, across.low), edges)[0] for action, errors in self._errors.items()
        }
        self.histogram.show_counts(across, edges, counts)
        thresholds = shares = np.empty(0)
        if record is not None:
            # Each derives a table in about 1 ms.
            thresholds = np.unique([*_spread(across, 61), max(record.threshold, across.low)])
            shares = np.array([100 * record.derive(float(one)).table.skipped_share for one in thresholds])
        self.share.show_curve(across, thresholds, shares)
        self._show()

    def _place(self) -> None:
        derivation = self.derivation
        self.share.share = None if derivation is None else 100 * derivation.table.skipped_share
        for plot in (self.histogram, self.share):
            plot.show_threshold(self.threshold, None if self.record is None else self.record.exact_interval)
        with QSignalBlocker(self.spin_box):
            self.spin_box.setValue(self.threshold)

    def _show(self) -> None:
        self._place()
        figures = self.figures
        for label in figures.values():
            label.setText("–")
        derivation, operations = self.derivation, self._operations
        if derivation is not None:
            figures["Skipped"].setText(percent(derivation.table.skipped_share, 1))
            if operations is not None and operations.layers == derivation.table.layers:
                ratio = derivation.table.ops_ratio(operations)
                figures["Operations"].setText(percent(ratio, 1))
                figures["Allows up to"].setText(times(1 / ratio) if ratio else "–")
        verdict, look = self._verdict()
        self.verdict.setText(verdict)
        set_look(self.verdict, look)
        self.pages.show_content(self.record is not None)
        self._top.setVisible(self.record is not None)
        if self.record is None:
            self.pages.invite(verdict)
        exact = derivation is not None and derivation.exact
        self._calibrate.setText(f"Calibrate at δ = {general(self.threshold)}")
        self.calibrate_button.setVisible(not exact)
        set_look(self.calibrate_button, "" if derivation is None else "primary")
        self.return_button.setEnabled(self.record is not None and self.record.threshold != self.threshold)
        said = f"δ is {general(self.threshold)}. {verdict} Skipped: {figures['Skipped'].text()}."
        for plot in (self.histogram, self.share):
            plot.summary = said
            plot.refresh()
        for name, label in figures.items():
            label.setAccessibleName(f"{self.heads[name].text()}: {label.text()}")

    def _verdict(self) -> tuple[str, str]:
        """What is known of the table at δ, and the look of that sentence."""
        derivation, record = self.derivation, self.record
        if derivation is None or record is None:
            yet = f"No measurements yet: {self._yet}, then drag δ to see what would be skipped."
            return self._reason or yet, "muted"
        if record.is_for_end:
            budget = f"{percent(record.knobs['operations'] / 100)} of the operations"
            return f"✓ Calibrated for {budget}: δ does not change the table.", "good"
        if derivation.exact:
            low, high = record.exact_interval
            until = f"to {general(high, 4)}" if np.isfinite(high) else "upwards"
            here = f"✓ Exact: a calibration at δ = {general(self.threshold)} gives the same table"
            return f"{here} (as for every δ from {general(low, 4)} {until}).", "good"
        text, first = "△ Predicted: needs a calibration at this δ.", derivation.differs_at
        if first is not None:
            text += (
                f" From layer {first.layer + 1}, step {first.step + 1} onwards, decisions differ from the measured "
                "calibration."
            )
        if derivation.unmeasured:
            text += f" Branch skipping was not measured for {derivation.unmeasured} of the computed cells."
        return text, "warning"


def _spread(scale: Scale, count: int) -> np.ndarray:
    """``count`` values evenly spaced along an axis, ends included."""
    inner = (scale.at(share) for share in np.linspace(0.0, 1.0, count)[1:-1].tolist())
    return np.array([scale.low, *inner, scale.high])
