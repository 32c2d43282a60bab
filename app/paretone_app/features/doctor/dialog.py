"""The page of findings, and copying it for a report to others."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QTextBrowser, QWidget

from paretone.doctor import GOOD, NOTE, PROBLEM, Check, as_text, shareable
from paretone_app.shell.colours import Colours
from paretone_app.widgets import build
from paretone_app.widgets.layouts import VBoxLayout

_LOOKING = "<p>Looking…</p>"
_MARKS = {GOOD: "✓", NOTE: "–", PROBLEM: "✗"}
_WIDTH, _HEIGHT = 44, 34
"""In heights of the font."""


class DoctorDialog(QDialog):
    """Methods in."""

    def __init__(self, colours: Colours, folder: Path, parent: QWidget | None = None) -> None:
        """``folder`` is where the user's data are kept."""
        super().__init__(parent)
        self._colours, self._folder = colours, folder
        self._checks: tuple[Check, ...] = ()
        self.setWindowTitle("Check installation")
        self.page = build.named(QTextBrowser(), "Findings")
        self.page.setHtml(_LOOKING)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        self.copy_button = buttons.addButton("&Copy for a bug report", QDialogButtonBox.ButtonRole.ActionRole)
        self.copy_button.setToolTip("Copy these lines without any folder of yours")
        self.copy_button.setEnabled(False)
        self.copy_button.clicked.connect(self._copy)
        buttons.rejected.connect(self.close)
        build.fill(VBoxLayout(self), ((self.page, 1), buttons))
        unit = self.fontMetrics().height()
        self.resize(_WIDTH * unit, _HEIGHT * unit)

    def show_findings(self, checks: Sequence[Check]) -> None:
        """Show what was found."""
        self._checks = tuple(checks)
        inks = {GOOD: self._colours.good, NOTE: self._colours.muted, PROBLEM: self._colours.danger}
        rows = []
        for one in self._checks:
            mark = f'<span style="color:{inks[one.state]}">{_MARKS[one.state]}</span>'
            advice = f"<br><i>{escape(one.advice)}</i>" if one.advice else ""
            rows.append(
                f"<tr><td>{mark}&nbsp;</td><td><b>{escape(one.name)}</b>: {escape(one.found)}{advice}</td></tr>"
            )
        self.page.setHtml(f"<table cellspacing='0' cellpadding='3'>{''.join(rows)}</table>")
        self.copy_button.setEnabled(True)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(as_text(shareable(self._checks, self._folder)))
        self.copy_button.setText("Copied")
