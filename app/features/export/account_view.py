"""What an export honours of a profile and what it drops, as two lists."""

from __future__ import annotations

from html import escape

from PySide6.QtWidgets import QTextBrowser, QWidget

from app.widgets import build
from engine.export.accounts import Account, Line

LINES = 9
"""Lines that are seen at once."""


class AccountView(QTextBrowser):
    """Hidden where there is nothing to say: for Paretone's own profiles, which hold everything, and for targets that
    cannot have the profile, whose reason is said below the path."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        build.named(self, "Honoured and dropped")
        self.setTabChangesFocus(True)
        self.setFixedHeight(self.fontMetrics().lineSpacing() * LINES)

    def show_account(self, account: Account | None) -> None:
        """Show what a target does with the profile; ``None``: nothing is lost."""
        self.setVisible(account is not None and not account.why_not)
        if account is not None:
            self.setHtml(_list("Honoured", account.honours) + _list("Dropped", account.drops))


def _list(title: str, lines: tuple[Line, ...]) -> str:
    items = "".join(f"<li><b>{escape(line.subject)}</b>: {escape(line.how)}</li>" for line in lines)
    return f"<p><b>{title}</b></p><ul>{items}</ul>" if lines else f"<p><b>{title}</b>: nothing</p>"
