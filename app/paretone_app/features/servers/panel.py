"""Servers: the address, the load, and what was measured."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QLineEdit, QWidget

from paretone.errors import SettingError
from paretone.measure.metrics import metric
from paretone.models import catalogue
from paretone.reading import is_regular, shortened
from paretone.serving import records
from paretone.serving.records import KEPT, MARKS, Level, Order, ServerRecord, Target, address
from paretone_app.numbers import displayed, fixed
from paretone_app.plotting.canvas import FigureCanvas
from paretone_app.shell.colours import Colours
from paretone_app.shell.entries import Term
from paretone_app.widgets import build
from paretone_app.widgets.action import Action, ActionButton
from paretone_app.widgets.invitation import Invited
from paretone_app.widgets.layouts import GridLayout, HBoxLayout
from paretone_app.widgets.panel_parts import JobProgress, TextsTable

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
    ("Word errors", "What a recogniser hears wrong in the replies, if they are judged"),
    ("Mark", MARKS),
    ("Failures", "By kind"),
)
TERMS = tuple(Term(title, f"{meaning}.", owner="Servers") for title, meaning in COLUMNS[1:])
_ERRORS = "word_error_rate"
REQUESTS, TEXTS = 20, 20


class ServersPanel(QWidget):
    chosen = Signal()

    def __init__(self, colours: Colours, measure: Action, cancel: Action, forget: Action) -> None:
        super().__init__()
        self.measure, self.cancel, self.forget = measure, cancel, forget
        self.url = build.named(QLineEdit(placeholderText="http://127.0.0.1:8880"), "Address of the server")
        self.model = build.named(QLineEdit(placeholderText="the server's own"), "Model to ask for")
        self.voice = build.named(QLineEdit(placeholderText="the server's own"), "Voice to ask for")
        self.token = build.named(QLineEdit(echoMode=QLineEdit.EchoMode.Password), "Token", "It is not kept")
        tip = "One load after another, such as 1 2 4 8, or requests a second at random times: 0.5/s"
        self.clients = build.named(QLineEdit("1 2 4"), "Clients at once", tip)
        tip = "More give narrower figures; or for how long to ask: 60 s"
        self.requests = build.named(QLineEdit(f"{REQUESTS}"), "Requests at each load", tip)
        tip = f"As takes, up to {KEPT} of each load: checked for faults; words, naturalness and variety are judged"
        self.keeps = build.named(QCheckBox("Keep and &judge the replies"), "", tip)
        self.keeps.setChecked(True)
        name, tip = "Recording of the voice", "A file with the voice of the server"
        self.reference = build.named(QLineEdit(placeholderText="for similarity"), name, tip)
        for field in (self.url, self.clients, self.requests, self.reference):
            field.textChanged.connect(self.check)
        own = ActionButton(measure)
        buttons = build.row(own, ActionButton(cancel), ActionButton(forget), 1)
        grid = GridLayout()
        rows = (
            (("A&ddress", self.url, 3),),
            (("To&ken", self.token, 1), ("Vo&ice", self.voice, 1)),
            (("M&odel", self.model, 1), ("Recordin&g", self.reference, 1)),
            (("C&lients", self.clients, 1), ("Re&quests", self.requests, 1)),
        )
        for row, fields in enumerate(rows):
            for place, (title, one, width) in enumerate(fields):
                grid.addWidget(build.title_of(title, one), row, 2 * place)
                grid.addWidget(one, row, 2 * place + 1, 1, width)
        grid.addWidget(self.keeps, len(rows), 1, 1, 3)
        self.state = build.words("muted", name="State of the measurement")
        self.progress = build.keeping_room(JobProgress("Progress of the measurement"))
        left = build.column(grid, buttons, self.state, self.progress, 1)
        self.table = TextsTable("Measured servers", COLUMNS, numbers=range(3, 10))
        self.table.itemSelectionChanged.connect(self._choose)
        self.canvas = FigureCanvas(colours)
        self._records: tuple[ServerRecord, ...] = ()
        self._of_row: list[ServerRecord] = []
        em = self.fontMetrics().height()
        parts = [(self.table, 2), (self.canvas, 3)]
        self.pages = Invited(build.splitter(Qt.Orientation.Vertical, parts, [12 * em, 18 * em], em))
        self.pages.offer(measure, double=own)
        parts = [(left, 0), (self.pages, 1)]
        HBoxLayout(self).addWidget(build.splitter(Qt.Orientation.Horizontal, parts, [30 * em, 70 * em], em))
        self.setFocusProxy(self.url)
        self.show_records(())

    def set_colours(self, colours: Colours) -> None:
        self.canvas.set_colours(colours)

    @property
    def like(self) -> str:
        """File with the voice that the replies should have, or ``""``."""
        return self.reference.text().strip()

    def check(self) -> None:
        """Say why nothing can be measured."""
        self.measure.refresh()
        if not self.cancel.isEnabled():  # Otherwise it says what is done.
            self.state.setText(self.measure.reason)

    @property
    def problem(self) -> str:
        """Why nothing can be measured, as a sentence, or ``""``."""
        try:
            self.wanted()
        except SettingError as error:
            return str(error)
        return ""

    def wanted(self) -> Order:
        """What is to be measured. Raises :class:`SettingError`."""
        url = address(self.url.text().strip())
        if not (loads := Level.typed(self.clients.text())):
            raise SettingError(f"{records.LOADS}.")
        model, voice, token = (one.text().strip() for one in (self.model, self.voice, self.token))
        if self.like and not is_regular(Path(self.like)):
            raise SettingError(f"There is no recording {shortened(self.like)}; check the path.")
        if (asked := re.fullmatch(r"0*([1-9]\d{0,3})( *s)?", self.requests.text().strip())) is None:
            raise SettingError("Type a number of requests from 1 to 9,999, such as 20, or for how long to ask: 60 s.")
        requests, seconds = (REQUESTS, float(asked[1])) if asked[2] else (int(asked[1]), 0.0)
        named, keeps = ", ".join(filter(None, (model, voice))), self.keeps.isChecked()
        return Order(
            Target(url, model, voice, token),
            tuple(catalogue.harvard_sentences()[:TEXTS]),
            title=f"{url} ({named})" if named else url,
            loads=loads,
            requests=requests,
            seconds=seconds,
            kept=KEPT if keeps else 0,
            judges=keeps,
        )

    def show_records(self, measured: Sequence[ServerRecord]) -> None:
        """Show all measurements, the newest first, with the curve of the newest."""
        self._records = tuple(measured)
        self._of_row = [one for one in measured for _ in one.loads]
        cells = []
        for one in measured:
            marked = records.marks(one.loads)
            cells += [_cells(one.title, row, marked.get(place, "")) for place, row in enumerate(one.loads)]
        self.table.show_rows(cells)
        self.pages.show_content(bool(measured))
        self.pages.invite("Measure what a speech server does with one client and with many.")
        self._show_curve(measured[0] if measured else None)

    @property
    def selected(self) -> ServerRecord | None:
        rows = self.table.selectionModel().selectedRows()
        return self._of_row[rows[0].row()] if rows and rows[0].row() < len(self._of_row) else None

    def _choose(self) -> None:
        self._show_curve(self.selected or (self._records[0] if self._records else None))
        self.chosen.emit()

    def _show_curve(self, record: ServerRecord | None) -> None:
        try:
            self.canvas.show_figure(None if record is None else records.latency_over_load([record]))
        except SettingError:  # Open loops have no number of clients.
            self.canvas.show_figure(None)


def _cells(server: str, row: Mapping[str, Any], mark: str) -> tuple[str, ...]:
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
        displayed(metric(_ERRORS).said(row["judged"][_ERRORS][0])) if _ERRORS in row.get("judged", {}) else "–",
        ", ".join(filter(None, (mark, records.inverse(row) and "reports the inverse RTF"))),
        ", ".join(f"{kind}: {number}" for kind, number in row["failures"].items())
        + (f", waited {fixed(waited, 1)} s for Retry-After" if (waited := row.get("retry_after_seconds")) else ""),
    )
