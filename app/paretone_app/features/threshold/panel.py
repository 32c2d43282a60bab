"""Threshold: where does δ cut? The measured errors, a δ to drag through them, and what would then be skipped.

The panel is given its actions and knows neither the application's state nor the engine. Keys in the plots: left and
right move δ by one step of the spin box, with Shift (or Page Up and Down) by ten, Home returns to the calibrated δ,
Ctrl+C copies the plotted data as tab-separated text, T shows the data of one plot as a table.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from PySide6.QtCore import QSignalBlocker, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QCheckBox,
    QLabel,
    QSizePolicy,
    QWidget,
)

from paretone.figures.scales import Scale
from paretone.figures.scatter import Dimension
from paretone.sampling.actions import SkipAction
from paretone.sampling.operations import OperationCounts
from paretone.techniques.ditreducio import TECHNIQUE, THRESHOLD, UNITS
from paretone.techniques.ditreducio.record import CalibrationRecord, Derivation
from paretone_app.features.strategy.grid import action_colours
from paretone_app.features.threshold.plot import Histogram, SharePlot
from paretone_app.numbers import fixed, general, percent
from paretone_app.shell.colours import Colours
from paretone_app.shell.entries import TERM
from paretone_app.shell.theme import BROAD, set_look
from paretone_app.widgets import build, sketching
from paretone_app.widgets.action import Action, ActionButton
from paretone_app.widgets.boxes import DoubleSpinBox
from paretone_app.widgets.invitation import Invited
from paretone_app.widgets.layouts import GridLayout, HBoxLayout, VBoxLayout

DECIMALS = 3
"""Moving δ rounds it to this many decimals, so that what is read is what is meant."""
SHARE_POINTS = 61
"""Thresholds at which the curve of the skipped share is computed; each is a table derived in about a millisecond."""
BINS = 48
_COALESCE_MILLISECONDS = 15


class ThresholdPanel(QWidget):
    """Histogram of the measured errors, share of skipped cells over δ, and whether the table at δ is exact."""

    threshold_changed = Signal(float)
    """The user moved δ. Coalesced while dragging."""

    def __init__(
        self,
        colours: Colours,
        calibrate: Action,
        derive: Callable[[float], Derivation | None] | None = None,
        parent: QWidget | None = None,
    ) -> None:
        """``calibrate`` calibrates at :attr:`threshold`; ``derive`` gives what the record shown gives at a threshold,
        where someone else keeps that as well."""
        super().__init__(parent)
        self._calibrate = calibrate
        self._derived = derive
        self._colours = colours
        self._record: CalibrationRecord | None = None
        self._derivation: Derivation | None = None
        self._operations: OperationCounts | None = None
        self._threshold = float(THRESHOLD.default)
        self._metric = "mae"
        self._errors = {SkipAction.TS: np.empty(0), SkipAction.BS: np.empty(0)}
        self._reason, self._yet = "", "calibrate once"
        self._pending: float | None = None
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(_COALESCE_MILLISECONDS)
        self._timer.timeout.connect(self._move)
        self._build()
        self.set_colours(colours)
        self._draw()
        self._show()

    def _build(self) -> None:
        self.verdict = build.words(selectable=True)
        self.verdict.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self.verdict.setMinimumHeight(self.fontMetrics().height() * 2 + 4)
        self.calibrate_button = ActionButton(self._calibrate)

        self.histogram, self.share = Histogram(self._colours), SharePlot(self._colours)
        for plot, other in ((self.histogram, self.share), (self.share, self.histogram)):
            plot.section_changed.connect(lambda plot=plot, other=other: other.show_sections(plot.sections))
            plot.moved_to.connect(self._drag)
            plot.steps_wanted.connect(self._step)
            plot.home_wanted.connect(self._return)
            plot.copy_wanted.connect(lambda: QGuiApplication.clipboard().setText(self.as_text()))
        self.legend = build.words(name="Legend", rich=True)

        self.spin_box = build.named(DoubleSpinBox(), "Threshold δ")
        self.spin_box.setProperty(TERM, f"{TECHNIQUE.title}: {THRESHOLD.title}")
        self.spin_box.setDecimals(DECIMALS)
        self.spin_box.setRange(THRESHOLD.minimum, THRESHOLD.maximum)
        self.spin_box.setSingleStep(THRESHOLD.step)
        self.spin_box.setValue(self._threshold)
        self.spin_box.valueChanged.connect(self._move_to)
        label = QLabel("&Threshold δ")
        label.setBuddy(self.spin_box)
        self.return_button = build.button(
            "Calibrated δ", self._return, "Return to the threshold of the calibration (Home)"
        )
        self.log_box = build.named(QCheckBox("Logarithmic"), tip="Logarithmic error axis")
        self.log_box.toggled.connect(self._change_axis)

        self._figures: dict[str, QLabel] = {}
        figures = GridLayout()
        figures.setHorizontalSpacing(BROAD)
        figures.setVerticalSpacing(0)
        for column, name in enumerate(("Skipped", "Operations", "Allows up to")):
            head, value = QLabel(name), QLabel("–")
            head.setProperty(TERM, name)
            head.setProperty("look", "muted")
            value.setProperty("look", "title")
            for row, one in enumerate((head, value)):
                one.setAlignment(Qt.AlignmentFlag.AlignRight)
                figures.addWidget(one, row, column)
            self._figures[name] = value

        self._top = QWidget()
        top = build.fill(HBoxLayout(self._top), [(self.verdict, 1)])
        top.addWidget(self.calibrate_button, 0, Qt.AlignmentFlag.AlignTop)
        drawn = build.column(self.legend, (self.histogram, 3), (self.share, 2))
        self.pages = Invited(drawn, sketch=sketching.histogram())
        self.pages.offer(self._calibrate, "Calibrate")
        bottom = HBoxLayout()
        for one in (label, self.spin_box, self.return_button, self.log_box):
            bottom.addWidget(one)
        bottom.addStretch(1)
        bottom.addLayout(figures)
        layout = VBoxLayout(self)
        layout.addWidget(self._top)
        layout.addWidget(self.pages, 1)
        layout.addLayout(bottom)
        self.setFocusProxy(self.histogram)

    # --- Methods in --------------------------------------------------------------------------------------------------
    @property
    def threshold(self) -> float:
        """δ as shown."""
        return self._threshold

    @property
    def derivation(self) -> Derivation | None:
        """The table at δ and whether it is exact; ``None`` without a record."""
        return self._derivation

    def set_record(self, record: CalibrationRecord | None) -> None:
        """Show what a calibration measured. δ stays where it is; see :meth:`set_threshold`."""
        if record is self._record:
            return
        self._record = record
        if record is not None:
            self._metric = str(record.knobs["metric"])
        for action in self._errors:
            errors = np.empty(0) if record is None else record.normalised_errors(action).ravel()
            self._errors[action] = errors[~np.isnan(errors)]
        self._derive()
        self._draw()
        self._show()

    def set_threshold(self, threshold: float) -> None:
        """Put δ here without emitting anything."""
        self._pending = None
        if threshold == self._threshold:
            return
        self._threshold = threshold
        self._derive()
        self._show()

    def set_metric(self, metric: str) -> None:
        """Error metric to name the unit of while there is no record."""
        if self._record is None and metric != self._metric:
            self._metric = metric
            self._label()

    def set_reason(self, reason: str, yet: str = "calibrate once") -> None:
        """Why nothing can be measured of the model, as a sentence, or ``""``; ``yet``: what to do to measure, as the
        end of one."""
        self._reason, self._yet = reason, yet
        self._show()

    def set_operations(self, operations: OperationCounts | None) -> None:
        """Operations of a backbone evaluation, to predict the ops ratio."""
        self._operations = operations
        self._show()

    def set_colours(self, colours: Colours) -> None:
        self._colours = colours
        fills = action_colours(colours)
        for plot in (self.histogram, self.share):
            plot.set_colours(colours)
        self.legend.setText(
            f"<span style='color:{fills[SkipAction.TS][0]}'>■</span> temporal skip tried &nbsp; "
            f"<span style='color:{fills[SkipAction.BS][0]}'>▒</span> branch skip tried, on top &nbsp; "
            f"<span style='color:{colours.danger}'>┃</span> δ: everything to its left is skipped &nbsp; "
            f"<span style='color:{colours.good}'>▒</span> δ for which the table is exact"
        )
        self._label()

    def as_text(self) -> str:
        """The plotted data as tab-separated text."""
        head, *rows = self.histogram.as_text().split("\n")
        lines = [f"{head}\t({UNITS[self._metric]})", *rows, "", "threshold\tskipped share"]
        if self._record is not None:
            thresholds = np.arange(THRESHOLD.minimum, THRESHOLD.maximum + THRESHOLD.step / 2, THRESHOLD.step)
            lines += [f"{one:.{DECIMALS}f}\t{_skipped_share(self._record, one):.4f}" for one in thresholds]
        return "\n".join(lines)

    # --- Moving δ ----------------------------------------------------------------------------------------------------
    def _drag(self, position: float) -> None:
        # Repainting per mouse event would lag behind the mouse; the latest position wins.
        self._pending = position
        if not self._timer.isActive():
            self._timer.start()

    def _move(self) -> None:
        if self._pending is not None:
            self._move_to(self._pending)

    def _step(self, steps: int) -> None:
        self._move_to(self._threshold + steps * THRESHOLD.step)

    def _return(self) -> None:
        if self._record is not None:
            self._move_to(self._record.threshold)

    def _move_to(self, threshold: float) -> None:
        self._pending = None
        threshold = round(min(max(threshold, THRESHOLD.minimum), THRESHOLD.maximum), DECIMALS)
        if threshold == self._threshold:
            self._place()
            return
        self._threshold = threshold
        self._derive()
        self._show()
        self.threshold_changed.emit(threshold)

    def _derive(self) -> None:
        if self._record is None:
            self._derivation = None
        else:
            self._derivation = (self._derived or self._record.derive)(self._threshold)

    # --- Showing -----------------------------------------------------------------------------------------------------
    def _change_axis(self) -> None:
        self._draw()
        self._show()

    def _label(self) -> None:
        unit = UNITS[self._metric]
        self.share.frame.bottom.set_title(Dimension(f"Error ÷ (l/L) of layer l of L, {unit}", unit))
        self.spin_box.setToolTip(f"{THRESHOLD.meaning} Unit: {UNITS[self._metric]}.")

    def _draw(self) -> None:
        """Everything that depends on the record and the axis, not on δ."""
        record, logarithmic = self._record, self.log_box.isChecked()
        every = np.concatenate(list(self._errors.values()))
        calibrated = self._threshold if record is None else record.threshold
        if every.size:
            most = max(float(np.percentile(every, 97)), 2.2 * calibrated)
            least = max(float(every.min()), 10.0**-DECIMALS)
        else:
            most, least = 2.2 * max(calibrated, THRESHOLD.step), 10.0**-DECIMALS
        across = Scale(least, max(most, 2 * least), True) if logarithmic else Scale(0.0, most)
        edges = _spread(across, BINS + 1)
        counts = {
            action: np.histogram(np.maximum(errors, across.low), edges)[0] for action, errors in self._errors.items()
        }
        self.histogram.show_counts(across, edges, counts)
        thresholds = shares = np.empty(0)
        if record is not None:
            thresholds = np.unique([*_spread(across, SHARE_POINTS), max(record.threshold, across.low)])
            shares = np.array([100 * _skipped_share(record, one) for one in thresholds])
        self.share.show_curve(across, thresholds, shares)

    def _place(self) -> None:
        """Put line, point and spin box where δ is."""
        derivation = self._derivation
        self.share.share = None if derivation is None else 100 * derivation.table.skipped_share
        for plot in (self.histogram, self.share):
            plot.show_threshold(self._threshold, None if self._record is None else self._record.exact_interval)
        with QSignalBlocker(self.spin_box):
            self.spin_box.setValue(self._threshold)

    def _show(self) -> None:
        """Everything that depends on δ."""
        self._place()
        figures = self._figures
        for label in figures.values():
            label.setText("–")
        derivation, operations = self._derivation, self._operations
        if derivation is not None:
            figures["Skipped"].setText(percent(derivation.table.skipped_share, 1))
            if operations is not None and operations.layers == derivation.table.layers:
                ratio = derivation.table.ops_ratio(operations)
                figures["Operations"].setText(percent(ratio, 1))
                figures["Allows up to"].setText(f"{fixed(1 / ratio, 2)}×" if ratio else "–")
        self._say_verdict()
        exact = derivation is not None and derivation.exact
        self._calibrate.setText(f"Calibrate at δ = {general(self._threshold)}")
        self.calibrate_button.setVisible(not exact)
        set_look(self.calibrate_button, "" if derivation is None else "primary")
        self.return_button.setEnabled(self._record is not None and self._record.threshold != self._threshold)
        said = f"δ is {general(self._threshold)}. {self.verdict.text()} Skipped: {figures['Skipped'].text()}."
        for plot in (self.histogram, self.share):
            plot.summary = said
            plot.refresh()
        for name, label in figures.items():
            label.setAccessibleName(f"{name}: {label.text()}")

    def _say_verdict(self) -> None:
        derivation, record = self._derivation, self._record
        self.pages.show_content(record is not None)
        self._top.setVisible(record is not None)
        if derivation is None or record is None:
            yet = f"No measurements yet: {self._yet}, then drag δ to see what would be skipped."
            self.verdict.setText(self._reason or yet)
            self.pages.invite(self.verdict.text())
            set_look(self.verdict, "muted")
            return
        if record.is_for_end:
            budget = f"{general(record.knobs['operations'])} % of the operations"
            self.verdict.setText(f"✓ Calibrated for {budget}: δ does not change the table.")
            set_look(self.verdict, "good")
            return
        if derivation.exact:
            low, high = record.exact_interval
            until = f"to {general(high, 4)}" if np.isfinite(high) else "upwards"
            self.verdict.setText(
                f"✓ Exact: a calibration at δ = {general(self._threshold)} gives the same table "
                f"(as for every δ from {general(low, 4)} {until})."
            )
            set_look(self.verdict, "good")
            return
        text, first = "△ Predicted: needs a calibration at this δ.", derivation.differs_at
        if first is not None:
            text += (
                f" From layer {first.layer + 1}, step {first.step + 1} onwards, decisions differ from the measured "
                "calibration."
            )
        if derivation.unmeasured:
            text += f" Branch skipping was not measured for {derivation.unmeasured} of the computed cells."
        self.verdict.setText(text)
        set_look(self.verdict, "warning")


def _spread(scale: Scale, count: int) -> np.ndarray:
    """Figures evenly apart along an axis, from its beginning to its end."""
    inner = (scale.at(share) for share in np.linspace(0.0, 1.0, count)[1:-1].tolist())
    return np.array([scale.low, *inner, scale.high])


def _skipped_share(record: CalibrationRecord, threshold: float) -> float:
    return record.derive(float(threshold)).table.skipped_share
