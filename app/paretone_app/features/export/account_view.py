"""What an export honours of a profile and what it drops, as two lists."""

from __future__ import annotations

from html import escape

from PySide6.QtWidgets import QTextBrowser, QWidget

from paretone.export.accounts import Account, Line
from paretone_app.widgets import build

LINES = 11
"""Lines that are seen at once."""


class AccountView(QTextBrowser):
    """What is dropped comes first: it is what must not be missed. Hidden where there is nothing to say: for Paretone's
    own profiles, which hold everything, and for targets that cannot have the profile, whose reason is below the path.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        build.named(self, "Dropped and honoured")
        self.setTabChangesFocus(True)
        self.setFixedHeight(self.fontMetrics().lineSpacing() * LINES)
        self.document().setDefaultStyleSheet("p { margin: 2px 0 } ul { margin: 0 0 0 14px; -qt-list-indent: 0 }")

    def show_account(self, account: Account | None) -> None:
        """Show what a target does with the profile; ``None``: nothing is lost."""
        self.setVisible(account is not None and not account.why_not)
        if account is not None:
            self.setHtml(_list("Dropped", account.drops) + _list("Honoured", account.honours))


def _list(title: str, lines: tuple[Line, ...]) -> str:
    """A list in which lines with the same reason are one."""
    if not lines:
        return f"<p><b>{title}</b>: nothing</p>"
    together: dict[str, list[str]] = {}
    for line in lines:
        together.setdefault(line.how, []).append(line.subject)
    items = "".join(f"<li>{escape(', '.join(named))}: <i>{escape(how)}</i></li>" for how, named in together.items())
    return f"<p><b>{title}</b></p><ul>{items}</ul>"
