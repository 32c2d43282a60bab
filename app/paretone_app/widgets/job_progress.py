"""Progress and remaining time of a job."""

from __future__ import annotations

from PySide6.QtWidgets import QProgressBar, QWidget

from paretone_app.numbers import rough_duration


class JobProgress(QProgressBar):
    """Busy until the first figures come."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        """``name`` is for screen readers."""
        super().__init__(parent)
        self.setAccessibleName(name)

    def begin(self) -> None:
        """A job begins of which nothing is known yet."""
        self.setRange(0, 0)
        self.setFormat("")

    def show_progress(self, done: int, total: int, seconds_left: float | None) -> None:
        """``done`` of ``total`` is done."""
        self.setRange(0, total)
        self.setValue(done)
        left = (
            "" if seconds_left is None or seconds_left < 1 else f", {rough_duration(seconds_left, tenths=False)} left"
        )
        self.setFormat(f"%p %{left}")
