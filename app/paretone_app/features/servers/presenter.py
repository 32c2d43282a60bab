"""Measuring servers, as jobs of the engine; every measurement is kept, and is a point of Trade-off. Replies are takes,
which are judged once all loads are measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QWidget

from paretone.audio.recording import read_recording
from paretone.errors import told
from paretone.models.voices import own_voice
from paretone.serving import records
from paretone.serving.records import ServerRecord
from paretone.session.commands import MeasureServer
from paretone.session.events import EngineStatus, Event, ServerMeasured
from paretone_app.features.presenter import Presenter, Services, built
from paretone_app.state.jobs import Job, Kind, Outcome

if TYPE_CHECKING:
    from paretone_app.features.servers.panel import ServersPanel

_KIND = Kind.SERVER
_REMEMBERED = ("url", "model", "voice", "clients", "reference")


class ServersPresenter(Presenter):
    servers: ServersPanel | None = None

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._settings, self._folder = services.settings, services.results.servers_folder
        self._records: tuple[ServerRecord, ...] = ()
        """Newest first."""
        self.later: dict[str, Callable[[], QWidget]] = {"servers": self._build}
        add = services.actions.add
        busy = partial(self._state.jobs.why_one, _KIND, "A server is being measured; wait, or cancel it.")
        problem = lambda: self.servers.problem if self.servers else ""  # noqa: E731
        tip = "Ask this server under each load, from the machine of the engine"
        self._measure = add("Me&asure", self.measure, tip, lambda: busy() or problem())
        self._cancel = self._add_cancel("Ca&ncel", _KIND)
        tip = "Delete the selected measurement; Trade-off loses its point, its takes stay"
        unselected = lambda: "" if self.servers and self.servers.selected else "Select a measurement first."  # noqa: E731
        self._forget = add("Forge&t", self.forget, tip, lambda: busy() or unselected())
        services.actions.bind(services.actions["measure_server"], lambda: services.workspaces.go_to("servers"))

    def measure(self) -> None:
        """Measure the server of the panel. Raises :class:`paretone.errors.PlainError`."""
        panel = built(self.servers)
        order = panel.wanted()
        for name in _REMEMBERED:
            self._settings.setValue(f"servers/{name}", getattr(panel, name).text())
        if panel.like:
            read_recording(panel.like)  # Before anything is asked.
            order = replace(order, target=replace(order.target, like=own_voice(panel.like)))
        panel.state.setText("Waits for the jobs before it (Queue) …" if self._state.jobs.busy else "")
        self._state.jobs.start(_KIND, lambda number: MeasureServer(number, order))

    def job_began(self, job: Job) -> None:
        if job.kind is _KIND:
            self._own_job = job.number
            built(self.servers).progress.begin()
            self.refresh()

    def follow(self, event: Event) -> None:
        if isinstance(event, EngineStatus) and 0 < event.job == self._own_job:
            built(self.servers).state.setText(event.text)
        elif isinstance(event, ServerMeasured) and (job := self._state.jobs.find(event.job)) is not None:
            assert isinstance(job.command, MeasureServer)
            like = job.command.order.target.like
            with told(self._notices.warn):
                self._results.takes.add(*event.takes)
                for take, figures in event.judged.items():
                    self._results.takes.measure(take, figures)
            # The path of a recording is this machine's.
            self._put(replace(event.record, reference=like.audio if like else ""))

    def _put(self, record: ServerRecord) -> None:
        """Keep ``record``, in place of an earlier state of it."""
        if not record.loads:
            return
        self._records = (record, *(one for one in self._records if one.key != record.key))
        built(self.servers).show_records(self._records)
        with told(self._notices.warn):
            records.write(record, self._folder)

    def job_ended(self, job: Job, outcome: Outcome, sentence: str) -> None:
        if job.kind is not _KIND:
            return
        assert isinstance(job.command, MeasureServer)
        judges = job.command.order.judges
        said = {
            Outcome.FINISHED: "Measured and judged." if judges else "Measured.",
            Outcome.CANCELLED: "Cancelled; finished loads are listed.",
        }
        built(self.servers).state.setText(said.get(outcome, sentence))
        if outcome is Outcome.FAILED:
            self._notices.warn(sentence)
        self._results.read_servers()
        self.changed.emit()

    def refresh(self) -> None:
        if self.servers is not None:
            self.servers.progress.setVisible(bool(self._state.jobs.why_one(_KIND, "measured")))

    def forget(self) -> None:
        """Delete the selected measurement. Raises :class:`paretone.errors.PlainError`."""
        panel = built(self.servers)
        if (one := panel.selected) is not None:
            records.forget(one, self._folder)
            self._records = tuple(other for other in self._records if other.key != one.key)
            panel.show_records(self._records)
            self._results.read_servers()
            self.changed.emit()

    def _build(self) -> QWidget:
        from paretone_app.features.servers.panel import ServersPanel

        self.servers = panel = ServersPanel(self._theme.colours, self._measure, self._cancel, self._forget)
        self._bar = panel.progress
        panel.chosen.connect(self._forget.refresh)
        self._records, problems = records.read_all(self._folder)
        panel.show_records(self._records)
        for problem in problems:
            self._notices.warn(problem)
        for name in _REMEMBERED:
            if kept := str(self._settings.value(f"servers/{name}", "")):
                getattr(panel, name).setText(kept)
        panel.check()
        return panel
