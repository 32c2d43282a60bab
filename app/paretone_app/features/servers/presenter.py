"""Measuring servers in the background; every measurement is kept, and is a point of Trade-off. Replies are takes, which
the engine judges once all loads are measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from paretone.audio.recording import read_recording
from paretone.errors import Cancelled, PlainError, told
from paretone.extras import require_serving
from paretone.models import catalogue
from paretone.models.base import Voice
from paretone.models.voices import own_voice
from paretone.observer import Check
from paretone.serving import records
from paretone.serving.records import Level, ServerRecord
from paretone.session.commands import JudgeReplies
from paretone.session.events import Event, RepliesJudged
from paretone.setting.take import Take
from paretone_app.features.presenter import Presenter, Services, built
from paretone_app.numbers import localised
from paretone_app.shell.bridge import Background, arrived
from paretone_app.state.jobs import Job, Kind, Outcome

if TYPE_CHECKING:
    from paretone_app.features.servers.panel import ServersPanel, Wanted

_REMEMBERED = ("url", "model", "voice", "clients", "reference")


class ServersPresenter(Presenter):
    servers: ServersPanel | None = None
    _worker: Background | None = None
    _told = Signal(object)
    """From the worker: a :class:`ServerRecord` that begins, a load's row with its takes, or the state as a sentence."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._settings, self._folder = services.settings, services.results.servers_folder
        self._records: tuple[ServerRecord, ...] = ()
        """Newest first; while one is measured, that is the first."""
        self._unjudged: list[list[Take]] = []
        """Replies to each load of the running measurement."""
        self._judging: dict[int, tuple[str, int, list[Take]]] = {}
        """Jobs that judge: key of the record, number of the load, and its takes."""
        self.later: dict[str, Callable[[], QWidget]] = {"servers": self._build}
        add = services.actions.add
        tip = "Ask this server under each load"
        busy = lambda: "A server is being measured; wait, or cancel it." if self._worker else ""  # noqa: E731
        problem = lambda: self.servers.problem if self.servers else ""  # noqa: E731
        self._measure = add("Me&asure", self.measure, tip, lambda: busy() or problem())
        nothing = lambda: "" if self._worker or self._judging else "Nothing is measured."  # noqa: E731
        self._cancel = add("Ca&ncel", self.cancel, why_not=nothing)
        tip = "Delete the selected measurement; Trade-off loses its point, its takes stay"
        unselected = lambda: "" if self.servers and self.servers.selected else "Select a measurement first."  # noqa: E731
        self._forget = add("Forge&t", self.forget, tip, lambda: busy() or unselected())
        services.actions.bind(services.actions["measure_server"], lambda: services.workspaces.go_to("servers"))
        self._told.connect(self._hear)

    def measure(self) -> None:
        """Measure the server of the panel. Raises :class:`paretone.errors.PlainError`."""
        require_serving()
        wanted = built(self.servers).wanted()
        for name in _REMEMBERED:
            self._settings.setValue(f"servers/{name}", getattr(built(self.servers), name).text())
        self._worker = Background("servers", self)
        self._unjudged = []
        self._hear(f"Asking {wanted.target.url} …")
        self._worker.run(partial(self._ask, wanted, self._worker.check), self._done)
        self.changed.emit()

    def cancel(self) -> None:
        if self._worker is not None:
            self._worker.cancel()
        for job in [one for one in self._state.jobs.all if one.number in self._judging]:
            self._state.jobs.cancel(job)

    def _ask(self, wanted: Wanted, check: Check) -> None:
        """In the worker."""
        from paretone.serving.load import Load

        def progress(level: Level, done: float, total: float) -> None:
            said = f"{done:.0f} of {total:.0f}"
            self._told.emit(f"{level}: {said} s …" if wanted.seconds else f"{level}: {said} answered …")

        if wanted.reference:
            read_recording(wanted.reference)  # Before anything is asked.
        texts = catalogue.harvard_sentences()[:20]
        target = replace(wanted.target, like=own_voice(wanted.reference) if wanted.reference else None)
        load = Load(target, texts, requests=wanted.requests, seconds=wanted.seconds, check=check, progress=progress)
        self._told.emit(ServerRecord.of(wanted.named, target, texts))
        for found in load.run(wanted.loads):
            self._told.emit((found.row(), found.takes(wanted.named, target) if wanted.keeps else []))

    def _hear(self, told: object) -> None:
        if isinstance(told, str):
            built(self.servers).state.setText(localised(told))
        elif isinstance(told, ServerRecord):
            self._records = (told, *self._records)
        elif isinstance(told, tuple):
            row, takes = told
            try:
                self._results.takes.add(*takes)
            except PlainError as error:
                self._notices.warn(str(error))
                takes = []
            self._unjudged.append(takes)
            now = self._records[0]
            self._put(replace(now, loads=(*now.loads, {**row, "takes": [one.id for one in takes]})))

    def _put(self, record: ServerRecord) -> None:
        """Keep ``record`` in place of an earlier state of it."""
        self._records = tuple(record if one.key == record.key else one for one in self._records)
        built(self.servers).show_records(self._records)
        with told(self._notices.warn):
            records.write(record, self._folder)

    def _done(self, found: BaseException | None) -> None:
        if self._worker is not None:
            self._worker.shut_down(wait=False)
        self._worker = None
        if self._records and not self._records[0].loads:
            self._records = self._records[1:]
        if isinstance(found, Cancelled):
            self._hear("Cancelled; the loads that were finished are listed.")
        elif arrived(found, self._failed):
            self._hear("Measured.")
            voice = own_voice(self._records[0].reference) if self._records[0].reference else None
            for place, takes in enumerate(self._unjudged):
                if takes:
                    self._judge(place, takes, voice)
        self._results.read_servers()
        self.changed.emit()

    def _failed(self, sentence: str) -> None:
        self._hear(sentence)
        self._notices.warn(sentence)

    def _judge(self, place: int, takes: list[Take], voice: Voice | None) -> None:
        texts, sounds = tuple(one.text for one in takes), tuple(one.samples for one in takes)
        command = JudgeReplies(0, texts, sounds, takes[0].sample_rate, voice)
        job = self._state.jobs.start(Kind.REPLIES, lambda number: replace(command, job=number))
        self._judging[job.number] = self._records[0].key, place, takes
        self._hear("Measured; the replies are being judged …")

    def follow(self, event: Event) -> None:
        if isinstance(event, RepliesJudged) and event.job in self._judging:
            key, place, takes = self._judging[event.job]
            for take, figures in zip(takes, event.each, strict=True):
                self._results.takes.measure(take.id, figures)
            if (record := next((one for one in self._records if one.key == key), None)) is not None:
                loads = list(record.loads)
                loads[place] = {**loads[place], "judged": event.figures}
                self._put(replace(record, loads=tuple(loads)))

    def job_ended(self, job: Job, outcome: Outcome, sentence: str) -> None:
        if self._judging.pop(job.number, None) is None:
            return
        if outcome is Outcome.FAILED:
            self._failed(sentence)
        elif outcome is Outcome.CANCELLED:
            self._hear("Measured; judging was cancelled.")
        elif not self._judging:
            self._hear("Measured and judged.")
        self._results.read_servers()
        self.changed.emit()

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

    def shut_down(self) -> None:
        if self._worker is not None:
            self._worker.shut_down()
