"""The decoding presenter: how the speech tokens of A and B came to be, and hearing them from any token on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtWidgets import QMainWindow, QWidget

from app.features.listen.presenter import ListeningPresenter
from app.shell.theme import Theme
from app.state.app_state import AppState
from engine.views import speculation

if TYPE_CHECKING:
    from app.features.decoding.panel import DecodingPanel


class DecodingPresenter(QObject):
    """Owns Decoding."""

    view_wanted = Signal(str)
    """The user wants the view of this name."""

    def __init__(self, window: QMainWindow, state: AppState, listening: ListeningPresenter, theme: Theme) -> None:
        super().__init__(window)
        self._state = state
        self._listening = listening
        self._theme = theme
        self.decoding: DecodingPanel | None = None
        self.later: dict[str, Callable[[], QWidget]] = {"decoding": self._build_decoding}
        state.comparison_changed.connect(self._show_takes)

    def refresh(self) -> None:
        """As :class:`app.features.presenter.Presenter` says. Takes are shown as they come."""

    def _build_decoding(self) -> QWidget:
        from app.features.decoding.panel import DecodingPanel

        self.decoding = DecodingPanel(self._theme.colours)
        self.decoding.hear_wanted.connect(self._listening.hear)
        self.decoding.sweep_wanted.connect(lambda: self.view_wanted.emit(speculation.VIEW.name))
        self._listening.heard_at.connect(self.decoding.set_position)
        self._show_takes()
        return self.decoding

    @Slot()
    def _show_takes(self) -> None:
        if self.decoding is not None:
            self.decoding.set_takes(self._state.take_a, self._state.take_b)
