"""The roofline presenter: measures components, and writes the reports to files."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from paretone.session.commands import MeasureRoofline
from paretone.session.events import EngineStatus, Event, RooflineMeasured
from paretone_app.features.presenter import Presenter, Services, built
from paretone_app.shell import file_dialogs
from paretone_app.state.availability import require
from paretone_app.state.jobs import Job, Kind, Outcome

if TYPE_CHECKING:
    from paretone_app.features.roofline.panel import RooflinePanel

_MEASURED = {"A": "the model without techniques", "B": "the model with the techniques in use"}


class RooflinePresenter(Presenter):
    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._side = "A"
        self._trace: Path | None = None
        self.roofline: RooflinePanel | None = None
        self.later = {"roofline": self._build_roofline}
        add, measure, why_not = services.actions.add, self.measure, self._why_not_now
        self._measure = {
            side: add(f"Measure &{side}", partial(measure, side), f"Measure {what}", partial(why_not, side))
            for side, what in _MEASURED.items()
        }
        tip = "Measure this machine's matrix products, copies and launches again, then the shown side"
        self._again = add("Measure the machi&ne", lambda: measure(self._shown, again=True), tip, why_not)
        tip = "Measure the shown side and write its operators for chrome://tracing or Perfetto"
        self._write_trace = add("Trace", self._ask_where_to_trace, tip, why_not)

    @property
    def _shown(self) -> str:
        return "A" if self.roofline is None else self.roofline.side

    def refresh(self) -> None:
        if self.roofline is not None:
            self.roofline.set_model(self._state.selection.model_id if self._state.selection.ready else "")

    def _why_not_now(self, side: str = "") -> str:
        """``""``: the shown side."""
        measuring = "The roofline is being measured, or waits for it in the queue."
        return self._why_not(side or self._shown) or self._state.jobs.why_one(Kind.ROOFLINE, measuring)

    def _why_not(self, side: str) -> str:
        state = self._state
        return state.availability.why_not_synthesise() if side == "A" else state.availability.why_not_accelerate()

    def follow(self, event: Event) -> None:
        if self.roofline is not None and event.job == self._own_job:
            if isinstance(event, RooflineMeasured):
                self.roofline.show_report(self._side, event.report)
            elif isinstance(event, EngineStatus):
                self.roofline.say(event.text)

    def _build_roofline(self) -> RooflinePanel:
        from paretone_app.features.roofline.panel import RooflinePanel

        cancel = self._add_cancel("Cancel", Kind.ROOFLINE)
        save = self._add_exports("plots and table", self._ask_for_sheet)
        can = {"again": self._again, "trace": self._write_trace, "cancel": cancel}
        self.roofline = RooflinePanel(self._theme.colours, can, self._measure, save)
        self._bar = self.roofline.progress
        return self.roofline

    def measure(self, side: str, again: bool = False, trace: Path | None = None) -> None:
        """Measure A, the model without techniques, or B, with those used. Raises :class:`PlainError`."""
        state = self._state
        require(self._why_not(side))
        setting = state.selection.baseline_setting if side == "A" else state.selection.setting
        artefacts = state.artefacts.of(setting)
        utterance, path = state.selection.utterance, "" if trace is None else str(trace)
        self._side, self._trace = side, trace
        built(self.roofline).begin(side)
        job = state.jobs.start(
            Kind.ROOFLINE, lambda job: MeasureRoofline(job, utterance, setting, artefacts, again, trace=path)
        )
        self._own_job = job.number

    def job_ended(self, job: Job, outcome: Outcome, sentence: str) -> None:
        if job.kind is Kind.ROOFLINE and self.roofline is not None:
            said = {Outcome.CANCELLED: "Cancelled; no results were kept.", Outcome.FAILED: sentence}
            wrote = f"Wrote {self._trace}." if self._trace is not None else ""
            self.roofline.end(said.get(outcome, wrote), failed=outcome is Outcome.FAILED)

    def _ask_for_sheet(self, ending: str) -> None:
        name = f"roofline-{self._state.selection.model_id}.{ending}"
        self._ask_where_to_write("Write the roofline", file_dialogs.PLOTS[ending], name, self.write)

    def write(self, path: Path) -> None:
        """Write the reports in the format of the ending of ``path``. Raises :class:`PlainError` if that fails."""
        built(self.roofline).write(path)
        self._notices.note(f"Wrote {path}")

    def _ask_where_to_trace(self) -> None:
        side = self._shown
        name, kind = f"trace-{self._state.selection.model_id}.json", "Chrome trace (*.json)"
        self._ask_where_to_write("Write a Chrome trace", kind, name, lambda path: self.measure(side, trace=path))
