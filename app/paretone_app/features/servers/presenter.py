"""Measuring servers in the background; the figures stay until the window closes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from paretone.errors import Cancelled
from paretone.extras import require_serving
from paretone.models import catalogue
from paretone_app.features.presenter import Presenter, Services, built
from paretone_app.shell.bridge import Background, arrived

if TYPE_CHECKING:
    from paretone_app.features.servers.panel import ServersPanel, Wanted

_REMEMBERED = ("url", "model", "voice", "clients")
TEXTS = 20
"""Harvard sentences to ask for."""


class ServersPresenter(Presenter):
    _told = Signal(object)
    """A row of figures by server, or the state as a sentence, from the worker."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._settings = services.settings
        self._rows: list[tuple[str, Mapping[str, Any]]] = []
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
        from paretone.serving.load import Level, Load, Target

        def check() -> None:
            if self._cancelled.is_set():
                raise Cancelled

        def progress(level: Level, done: int, total: int) -> None:
            self._told.emit(f"{level}: {done} of {total} answered …")

        load = Load(
            Target(wanted.url, wanted.model, wanted.voice, wanted.token),
            catalogue.harvard_sentences()[:TEXTS],
            requests=wanted.requests,
            check=check,
            progress=progress,
        )
        for found in load.run([Level(clients=one) for one in wanted.clients]):
            self._told.emit((wanted.named, found.row()))

    def _show(self, told: object) -> None:
        panel = built(self.servers)
        if isinstance(told, str):
            panel.show_state(told)
        elif isinstance(told, tuple):
            self._rows.append(told)
            panel.show_rows(self._rows)

    def _done(self, found: BaseException | None) -> None:
        if self._worker is not None:
            self._worker.shut_down(wait=False)
        self._worker = None
        if isinstance(found, Cancelled):
            self._show("Cancelled; the loads that were finished are listed.")
        elif arrived(found, self._failed):
            self._show("Measured.")
        self.changed.emit()

    def _failed(self, sentence: str) -> None:
        self._show(sentence)
        self._notices.warn(sentence)

    def _why_not_measure(self) -> str:
        if self._worker is not None:
            return "A server is being measured; wait, or cancel it."
        return self.servers.problem if self.servers is not None else ""

    def refresh(self) -> None:
        for action in (self._measure, self._cancel):
            action.refresh()

    def _build(self) -> QWidget:
        from paretone_app.features.servers.panel import ServersPanel

        self.servers = panel = ServersPanel(self._measure, self._cancel)
        for name in _REMEMBERED:
            if kept := str(self._settings.value(f"servers/{name}", "")):
                getattr(panel, name).setText(kept)
        self.refresh()
        return panel

    def shut_down(self) -> None:
        self._cancelled.set()
        if self._worker is not None:
            self._worker.shut_down()
