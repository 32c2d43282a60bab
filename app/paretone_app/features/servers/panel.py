"""Servers: the address, the load, and what was measured."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit, QWidget

from paretone.errors import SettingError
from paretone_app.numbers import fixed, localised
from paretone_app.shell.entries import Term
from paretone_app.widgets import build
from paretone_app.widgets.action import Action, ActionButton
from paretone_app.widgets.boxes import SpinBox
from paretone_app.widgets.invitation import Invited
from paretone_app.widgets.layouts import GridLayout, HBoxLayout
from paretone_app.widgets.panel_parts import TextsTable

COLUMNS = (
    ("Server", "Address, and what was asked for"),
    ("Load", "Clients that each ask again once answered, or requests a second at random times"),
    ("Answered", "Answered requests, of all"),
    ("First audio p50 (s)", "Until the first samples have come: half of the requests are faster"),
    ("p95 (s)", "Nineteen of twenty are faster"),
    ("Latency p50 (s)", "Until the last samples have come"),
    ("RTF", "Wall seconds over seconds of audio: below 1 is faster than it plays"),
    ("Underruns (s)", "Seconds for which a player waits that starts at once, and with 0.3 s of buffer; mean per reply"),
    ("Audio s/s", "Seconds of audio that the server makes in a second"),
    ("Failures", "By kind"),
)
TERMS = tuple(Term(title, f"{meaning}.", owner="Servers") for title, meaning in COLUMNS[1:])
REQUESTS = 20


@dataclass(frozen=True)
class Wanted:
    """A server, and the load on it."""

    url: str
    model: str
    voice: str
    token: str
    clients: tuple[int, ...]
    requests: int

    @property
    def named(self) -> str:
        asked = ", ".join(filter(None, (self.model, self.voice)))
        return f"{self.url} ({asked})" if asked else self.url


class ServersPanel(QWidget):
    def __init__(self, measure: Action, cancel: Action, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._measure = measure
        self.url = build.named(QLineEdit(placeholderText="http://127.0.0.1:8880"), "Address of the server")
        self.model = build.named(QLineEdit(placeholderText="the server's own"), "Model to ask for")
        self.voice = build.named(QLineEdit(placeholderText="the server's own"), "Voice to ask for")
        self.token = build.named(QLineEdit(echoMode=QLineEdit.EchoMode.Password), "Token", "It is not kept")
        self.clients = build.named(QLineEdit("1 2 4"), "Clients at once", "One load after another, such as 1 2 4 8")
        self.requests = build.named(SpinBox(minimum=1, maximum=10_000), "Requests at each load")
        self.requests.setValue(REQUESTS)
        for field in (self.url, self.clients):
            field.textChanged.connect(measure.refresh)
        form, buttons = QWidget(), build.row(ActionButton(measure, look="primary"), ActionButton(cancel), 1)
        grid = GridLayout(form)
        places = (
            (("A&ddress", self.url), ("&Token", self.token)),
            (("M&odel", self.model), ("Vo&ice", self.voice)),
            (("C&lients", self.clients), ("Re&quests", self.requests)),
        )
        for row, pair in enumerate(places):
            for place, (title, one) in enumerate(pair):
                grid.addWidget(build.title_of(title, one), row, 2 * place)
                grid.addWidget(one, row, 2 * place + 1)
        self.state = build.words("muted", name="State of the measurement")
        left = build.column(form, buttons, self.state, 1)
        self.table = TextsTable("Measured servers", COLUMNS, numbers=range(3, 9))
        self.pages = Invited(self.table)
        self.pages.offer(measure)
        em = self.fontMetrics().height()
        outer = HBoxLayout(self)
        parts = [(left, 0), (self.pages, 1)]
        outer.addWidget(build.splitter(Qt.Orientation.Horizontal, parts, [30 * em, 50 * em], em))
        self.setFocusProxy(self.url)
        self.show_rows([])

    @property
    def problem(self) -> str:
        """Why nothing can be measured, as a sentence, or ``""``."""
        if not self.url.text().strip():
            return "Type the address of a server, such as http://127.0.0.1:8880."
        try:
            self.wanted()
        except SettingError as error:
            return str(error)
        return ""

    def wanted(self) -> Wanted:
        """Raises :class:`SettingError`."""
        url = self.url.text().strip()
        if not re.match(r"https?://[^\s/]+", url):
            raise SettingError(f"“{url}” is no address; type one such as http://127.0.0.1:8880.")
        numbers = re.findall(r"[^\s,;]+", self.clients.text())
        if not numbers or not all(one.isdecimal() and 0 < int(one) <= 1000 for one in numbers):
            raise SettingError("Type numbers of clients from 1 to 1,000, such as 1 2 4.")
        model, voice, token = (one.text().strip() for one in (self.model, self.voice, self.token))
        return Wanted(url, model, voice, token, tuple(map(int, numbers)), self.requests.value())

    def show_state(self, text: str) -> None:
        self.state.setText(localised(text))

    def show_rows(self, rows: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Show figures (:meth:`paretone.serving.load.Measured.row`) by server."""
        self.table.show_rows([_cells(server, row) for server, row in rows])
        self.pages.show_content(bool(rows))
        self.pages.invite("Measure what a speech server does with one client and with many.")


def _cells(server: str, row: Mapping[str, Any]) -> tuple[str, ...]:
    def figure(name: str, digits: int = 2) -> str:
        value = row.get(name)
        return fixed(value, digits) if isinstance(value, float) else "–"

    asked = row["requests"]
    return (
        server,
        row["load"],
        f"{asked - row['failed']} of {asked}",
        figure("first_audio_p50"),
        figure("first_audio_p95"),
        figure("latency_p50"),
        figure("real_time_factor_p50"),
        f"{figure('underrun_seconds_0_ms')}, {figure('underrun_seconds_300_ms')}",
        figure("audio_seconds_per_second", 1),
        ", ".join(f"{kind}: {number}" for kind, number in row["failures"].items()),
    )
