"""The line under the trade-off plot: what is shown and what to beware of, and playing the front."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from paretone_app.shell.theme import set_look
from paretone_app.widgets import build
from paretone_app.widgets.boxes import Slider
from paretone_app.widgets.layouts import HBoxLayout

_HEARD, _NO_LONGER = "Now I hear it", "I no longer hear it"


class TradeoffFoot(QWidget):
    """Methods in, signals out."""

    everything_wanted = Signal()
    """Show all of both axes."""
    play_wanted = Signal()
    """Start or stop playing the front."""
    mark_wanted = Signal()
    """The user marked an audible change at the current point."""

    along_wanted = Signal(int)
    """Use another point of the front as the current one: its place from the left, from 0."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._counts, self._remarks = build.label(look="muted", name="What is shown"), QLabel()
        self._remarks.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.everything_button = build.button(
            "Show everything", self.everything_wanted, "Show all of both axes (0 or double click in the plot)"
        )
        self.everything_button.hide()
        self.everything_button.setStyleSheet("padding: 0.1em 0.45em;")
        self.slider = build.named(Slider(Qt.Orientation.Horizontal), "Along the front")
        self.slider.setToolTip("Walk along the front, from left to right")
        self.slider.setPageStep(1)
        self.slider.setMinimumWidth(6 * self.fontMetrics().height())
        self.slider.valueChanged.connect(self.along_wanted)
        self.slider.hide()
        self.mark_button = build.button(
            _HEARD, self.mark_wanted, "Mark where you begin to hear a difference, and on the way back where it ends (N)"
        )
        self.mark_button.hide()
        self.play_button = build.button(
            "Play the front",
            self.play_wanted,
            "Hear one sentence by each setting in turn; walk along the front, or drag, to repeat one (Ctrl+9)",
        )
        self.play_button.setCheckable(True)
        row = HBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        # The plot shall not change its size when the button comes.
        row.addStrut(self.everything_button.sizeHint().height())
        row.addWidget(self._counts)
        row.addWidget(self.everything_button)
        row.addWidget(self._remarks, 1)
        row.addWidget(self.slider)
        row.addWidget(self.mark_button)
        row.addWidget(self.play_button)

    def show_counts(self, text: str, zoomed: bool) -> None:
        """Counts of shown points; when a section is shown, all of it can be asked for."""
        self._counts.setText(text)
        self.everything_button.setVisible(zoomed)

    def show_remarks(self, cautions: Sequence[str], others: Sequence[str] = ()) -> None:
        """Sentences on what is shown, what to beware of first."""
        sentences = (*cautions, *others)
        self._remarks.setText("  ".join(sentences))
        self._remarks.setToolTip("\n".join(sentences))
        self._remarks.setAccessibleName(self._remarks.text())
        set_look(self._remarks, "warning" if cautions else "muted")

    def show_playing(self, on: bool) -> None:
        """Whether the front is played; only then the slider walks along it, and something can be marked."""
        self.play_button.setChecked(on)
        self.slider.setVisible(on)
        self.mark_button.setVisible(on)

    def show_place(self, at: int, count: int) -> None:
        """Where on the front of ``count`` points the current one is, from the left; emits no signal."""
        with QSignalBlocker(self.slider):
            self.slider.setRange(0, max(count - 1, 0))
            self.slider.setValue(at)

    def show_direction(self, faster: bool) -> None:
        """Which way the listener walks."""
        self.mark_button.setText(_HEARD if faster else _NO_LONGER)

    @property
    def remarks(self) -> str:
        """The sentences."""
        return self._remarks.text()

    @property
    def counts(self) -> str:
        """Counts of shown points, in a line."""
        return self._counts.text()
