"""Measuring servers in the background; every measurement is kept, and is a point of Trade-off."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from paretone.errors import Cancelled
from paretone.extras import require_serving
from paretone.models import catalogue
from paretone.serving import records
from paretone.serving.records import ServerRecord
from paretone_app.features.presenter import Presenter, Services, built
from paretone_app.shell.bridge import Background, arrived

if TYPE_CHECKING:
    from paretone_app.features.servers.panel import ServersPanel, Wanted

_REMEMBERED = ("url", "model", "voice", "clients")
TEXTS = 20
"""Harvard sentences to ask for."""


class ServersPresenter(Presenter):
    _told = Signal(object)
    """A :class:`ServerRecord`, renewed after every load, or the state as a sentence, from the worker."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._settings, self._folder = services.settings, services.results.servers_folder
        self._records: tuple[ServerRecord, ...] = ()
        self._cancelled = threading.Event()
        self._worker: Background | None = None
        """Of the running measurement."""
        self.servers: ServersPanel | None = None
        self.later: dict[str, Callable[[], QWidget]] = {"servers": self._build}
        self._measure = services.actions.add(
            "Me&asure", self.measure, "Ask this server under each load", self._why_not_measure
        )
        self._cancel = services.actions.add(
            "Ca&ncel", self._cancelled.set, why_not=lambda: "Nothing is measured." if self._worker is None else ""
        )
        self._forget = services.actions.add(
            "For&get", self.forget, "Delete the selected measurement; Trade-off loses its point", self._why_not_forget
        )
        services.actions.bind(services.actions["measure_server"], lambda: services.workspaces.go_to("servers"))
        self._told.connect(self._show)

    def measure(self) -> None:
        """Measure the server of the panel. Raises :class:`paretone.errors.PlainError`."""
        require_serving()
        wanted = built(self.servers).wanted()
        for name in _REMEMBERED:
            self._settings.setValue(f"servers/{name}", getattr(built(self.servers), name).text())
        self._worker = Background("servers", self)
        self._cancelled.clear()
        self._show(f"Asking {wanted.url} …")
        self._worker.run(partial(self._ask, wanted), self._done)
        self.changed.emit()

    def _ask(self, wanted: Wanted) -> None:
        """In the worker."""
        from paretone.serving.load import Level, Load, Target, hash_of

        def check() -> None:
            if self._cancelled.is_set():
                raise Cancelled

        def progress(level: Level, done: int, total: int) -> None:
            self._told.emit(f"{level}: {done} of {total} answered …")

        texts, target = (
            catalogue.harvard_sentences()[:TEXTS],
            Target(wanted.url, wanted.model, wanted.voice, wanted.token),
        )
        load = Load(
            target,
            texts,
            requests=wanted.requests,
            check=check,
            progress=progress,
        )
        record = ServerRecord.of(wanted.named, target.endpoint, len(texts), hash_of(texts), ())
        for found in load.run([Level(clients=one) for one in wanted.clients]):
            record = replace(record, loads=(*record.loads, found.row()))
            records.write(record, self._folder)
            self._told.emit(record)

    def _show(self, told: object) -> None:
        panel = built(self.servers)
        if isinstance(told, str):
            panel.show_state(told)
        elif isinstance(told, ServerRecord):
            self._records = (told, *(one for one in self._records if one.key != told.key))
            panel.show_records(self._records)

    def _done(self, found: BaseException | None) -> None:
        if self._worker is not None:
            self._worker.shut_down(wait=False)
        self._worker = None
        if isinstance(found, Cancelled):
            self._show("Cancelled; the loads that were finished are listed.")
        elif arrived(found, self._failed):
            self._show("Measured.")
        self._results.read_servers()
        self.changed.emit()

    def _failed(self, sentence: str) -> None:
        self._show(sentence)
        self._notices.warn(sentence)

    def forget(self) -> None:
        """Delete the selected measurement. Raises :class:`paretone.errors.PlainError`."""
        panel = built(self.servers)
        if (one := panel.selected) is not None:
            records.forget(one, self._folder)
            self._records = tuple(other for other in self._records if other.key != one.key)
            panel.show_records(self._records)
            self._results.read_servers()
            self.changed.emit()

    def _why_not_forget(self) -> str:
        if self._worker is not None:
            return "A server is being measured; wait, or cancel it."
        return "" if self.servers is not None and self.servers.selected is not None else "Select a measurement first."

    def _why_not_measure(self) -> str:
        if self._worker is not None:
            return "A server is being measured; wait, or cancel it."
        return self.servers.problem if self.servers is not None else ""

    def refresh(self) -> None:
        for action in (self._measure, self._cancel, self._forget):
            action.refresh()

    def _build(self) -> QWidget:
        from paretone_app.features.servers.panel import ServersPanel

        self.servers = panel = ServersPanel(self._theme.colours, self._measure, self._cancel, self._forget)
        panel.chosen.connect(self._forget.refresh)
        self._records, problems = records.read_all(self._folder)
        panel.show_records(self._records)
        for problem in problems:
            self._notices.warn(problem)
        for name in _REMEMBERED:
            if kept := str(self._settings.value(f"servers/{name}", "")):
                getattr(panel, name).setText(kept)
        self.refresh()
        return panel

    def shut_down(self) -> None:
        self._cancelled.set()
        if self._worker is not None:
            self._worker.shut_down()
