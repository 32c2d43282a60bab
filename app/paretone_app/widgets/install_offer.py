"""A button that installs what a sentence says is missing, in one click; it stands below that sentence."""

from __future__ import annotations

from PySide6.QtWidgets import QLabel, QPushButton, QSizePolicy, QWidget

from paretone import extras
from paretone.errors import PlainError
from paretone.extras import Extra
from paretone_app.state.installing import Installing
from paretone_app.widgets import build
from paretone_app.widgets.layouts import HBoxLayout


class InstallOffer(QWidget):
    """Hidden unless something is missing. While that is installed, the button cancels, and a line says what is done."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._installing: Installing | None = None
        self._extra: Extra | None = None
        self.button = QPushButton("Install")
        self.button.clicked.connect(self._press)
        self.said = QLabel()
        self.said.setProperty("look", "muted")
        self.said.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        build.fill(HBoxLayout(self), [self.button, (self.said, 1)])
        self.hide()

    def follow(self, installing: Installing) -> None:
        """Install by ``installing``."""
        self._installing = installing
        installing.changed.connect(self._show)

    def offer(self, sentence: str) -> None:
        """Offer what ``sentence`` says to install, or nothing."""
        self.offer_extra(extras.named_in(sentence))

    def offer_extra(self, extra: Extra | None) -> None:
        """Offer ``extra``, or nothing."""
        if extra != self._extra or self._installing is None:
            self._extra = extra
            self.said.clear()
        self._show()

    def _show(self) -> None:
        installing, extra = self._installing, self._extra
        runs = installing is not None and extra is not None and installing.running == extra
        there = installing is not None and extra is not None and (runs or bool(extra.missing))
        self.setVisible(there)
        if installing is None or extra is None or not there:
            return
        names = ", ".join(extra.missing) or extra.title
        self.button.setText("Cancel installing" if runs else f"Install {names}")
        if runs:
            build.allow(self.button, "", "Stop; nothing that was there before is changed")
            self.said.setText(installing.text or "Installing…")
            return
        self.said.clear()
        tip = f"For: {extra.title}. Installs into Paretone's own environment; what is installed already stays as it is."
        build.allow(self.button, installing.why_not(), tip)

    def refresh(self) -> None:
        """Something else runs, or nothing does any more."""
        self._show()

    def _press(self) -> None:
        installing, extra = self._installing, self._extra
        if installing is None or extra is None:
            return
        if installing.running == extra:
            installing.cancel()
            return
        try:
            installing.start(extra.name)
        except PlainError as error:
            self.said.setText(str(error))
