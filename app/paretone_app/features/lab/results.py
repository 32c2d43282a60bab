"""Results of listening tests, latest first, each with its limits."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QTextBrowser, QWidget

from paretone.listening.results import MushraResult, RankingResult, Result, StaircaseResult
from paretone_app.listening.planning import TITLES
from paretone_app.listening.wording import details, headline, speed_up
from paretone_app.numbers import fixed, percent
from paretone_app.shell.colours import Colours
from paretone_app.widgets import build, sketching
from paretone_app.widgets.invitation import Invited
from paretone_app.widgets.layouts import HBoxLayout, VBoxLayout


class LabResults(QWidget):
    """The last page of the lab."""

    back_wanted = Signal()
    export_wanted = Signal()
    """The results are wanted as webMUSHRA's CSV files."""

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._colours = colours
        self._found: tuple[tuple[str, Result], ...] = ()
        self._problems: tuple[str, ...] = ()
        self.page = build.named(QTextBrowser(), "Results of listening tests")
        self.back_button = build.button("&Another test", self.back_wanted, look="primary")
        self.export_button = build.button(
            "E&xport as CSV…", self.export_wanted, "Save all results in webMUSHRA's format"
        )
        buttons = HBoxLayout()
        buttons.addWidget(self.back_button)
        buttons.addWidget(self.export_button)
        buttons.addStretch(1)
        layout = VBoxLayout(self)
        self.pages = Invited(self.page, "No listening test has been completed yet.", sketching.bars(4))
        self.pages.offer(self.back_button, "Set up a test")
        layout.addWidget(self.pages, 1)
        layout.addLayout(buttons)
        self.setFocusProxy(self.back_button)

    def set_colours(self, colours: Colours) -> None:
        """Follow the theme."""
        self._colours = colours
        self._show()

    def show_results(self, found: Sequence[tuple[str, Result]], problems: Sequence[str] = ()) -> None:
        """``found``: method and result of each comparison, the one to show first; and what could not be read."""
        self._found, self._problems = tuple(found), tuple(problems)
        self._show()

    def _show(self) -> None:
        self.export_button.setEnabled(bool(self._found))
        muted, warning = self._colours.muted, self._colours.warning
        parts = [f"<p style='color:{warning}'>{escape(one)}</p>" for one in self._problems]
        self.pages.show_content(bool(self._found or self._problems))
        for method, result in self._found:
            parts.append(f"<p style='color:{muted}; margin-bottom:0'>{escape(TITLES[method])}</p>")
            parts.append(f"<h3 style='margin-top:0'>{escape(headline(result))}</h3>")
            if isinstance(result, MushraResult):
                parts.append(_ratings(result, muted))
            elif isinstance(result, StaircaseResult):
                parts.append(_row(result, muted))
            elif isinstance(result, RankingResult):
                parts.append(_ranks(result, muted))
            parts += [f"<p style='margin-top:0; margin-bottom:4'>{escape(one)}</p>" for one in details(result)]
            parts.append("<hr>")
        self.page.setHtml("".join(parts))


def _ratings(result: MushraResult, muted: str) -> str:
    rows = [
        (
            escape(one.condition),
            f"<b>{one.median:.0f}</b>",
            f"{one.lower_quartile:.0f} to {one.upper_quartile:.0f}",
            fixed(one.mean.mean, 1),
            f"{fixed(one.mean.low, 1)} to {fixed(one.mean.high, 1)}",
            str(one.mean.n),
        )
        for one in result.summaries
    ]
    return _table(("Condition", "Median", "Quartiles", "Mean", "95 % interval", "n"), rows, muted)


def _row(result: StaircaseResult, muted: str) -> str:
    rows = [
        (escape(title), speed_up(value), f"{right} of {trials}" if trials else "–")
        for title, value, (right, trials) in zip(result.titles, result.scale, result.right, strict=True)
    ]
    return _table(("Setting", "Speed-up", "Right"), rows, muted)


def _ranks(result: RankingResult, muted: str) -> str:
    rows = [
        (
            escape(title),
            f"<b>{fixed(one.strength, 2)}</b>",
            f"{fixed(one.low, 2)} to {fixed(one.high, 2)}",
            percent(one.best),
            str(one.compared),
        )
        for title, one in result.ranked
    ]
    return _table(("Setting", "Strength", "95 % interval", "Best with", "n"), rows, muted)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], muted: str) -> str:
    head = "".join(f"<td style='color:{muted}; padding-right:1.5em'>{one}</td>" for one in columns)
    body = "".join(
        "<tr>" + "".join(f"<td style='padding-right:1.5em'>{cell}</td>" for cell in cells) + "</tr>" for cells in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"
