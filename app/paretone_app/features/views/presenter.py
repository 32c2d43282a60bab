"""The views presenter: figures about the loaded model, computed and written to files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from paretone.session.commands import ComputeView
from paretone.session.events import Event, ViewComputed
from paretone.setting.knobs import Values
from paretone.setting.setting import UsedTechnique
from paretone.views import views
from paretone.views.figure import Figure
from paretone_app.features.presenter import Presenter, Services, built
from paretone_app.shell import file_dialogs
from paretone_app.state.availability import require
from paretone_app.state.jobs import Job, Kind, Outcome

if TYPE_CHECKING:
    from paretone_app.features.views.panel import ViewsPanel


class ViewsPresenter(Presenter):
    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self.views: ViewsPanel | None = None
        tip = "Run the model and draw the figure"
        self._compute = services.actions.add("Com&pute", self.compute, tip, self._why_not_compute)
        self.later = {"views": self._build_views}

    def refresh(self) -> None:
        if self.views is not None:
            self.views.set_model(self._state.selection.info if self._state.selection.ready else None)

    def _why_not_compute(self) -> str:
        state = self._state
        if reason := state.availability.why_not_synthesise():
            return reason
        info = state.selection.loaded
        if not any(one.subject(info) for one in views()):
            return f"No view supports models like {info.title}; load another model."
        return ""

    def follow(self, event: Event) -> None:
        if isinstance(event, ViewComputed) and self.views is not None:
            self.views.show_figure(event.figure)

    def _build_views(self) -> ViewsPanel:
        from paretone_app.features.views.panel import ViewsPanel

        cancel, save = self._add_cancel("Cancel", Kind.VIEW), self._add_exports("the figure", self._ask_for_figure)
        self.views = ViewsPanel(self._theme.colours, self._compute, cancel, save)
        self._bar = self.views.progress
        return self.views

    def open(self, name: str) -> None:
        """Show the view called ``name``, and compute it if it has no figure yet."""
        if self.views is not None:
            self.views.choose(name)
            self._workspaces.go_to("views")
            if self.views.figure is None:
                self._compute.trigger()

    def compute(self) -> None:
        """Compute the chosen view for the selection. Raises :class:`PlainError` if that is not possible."""
        state, panel = self._state, built(self.views)
        name, knobs = panel.view.name, Values(panel.values)
        require(state.availability.why_not_synthesise())
        setting = state.selection.baseline_setting
        records = tuple(record for source in state.artefacts.sources for record in source.records)
        for one in state.selection.techniques:
            if one.views and state.artefacts.source(one.name) is not None:
                setting = setting.with_technique(UsedTechnique(one.name, state.selection.knobs(one.name)))
        utterance = state.selection.utterance
        panel.begin(name)
        job = state.jobs.start(Kind.VIEW, lambda job: ComputeView(job, name, utterance, setting, knobs, records))
        self._own_job = job.number

    def job_ended(self, job: Job, outcome: Outcome, sentence: str) -> None:
        if job.kind is Kind.VIEW and self.views is not None:
            said = {Outcome.CANCELLED: "Cancelled; no results were kept.", Outcome.FAILED: sentence}
            self.views.end(said.get(outcome, ""))

    def _ask_for_figure(self, ending: str) -> None:
        if (figure := built(self.views).figure) is not None:
            name = f"{figure.view}-{figure.provenance.stem}.{ending}"
            self._ask_where_to_write(
                f"Figure as {ending.upper()}", file_dialogs.PLOTS[ending], name, lambda path: self.write(figure, path)
            )

    def write(self, figure: Figure, path: Path) -> None:
        """Write ``figure`` in the format of the ending of ``path``. Raises :class:`PlainError` if that fails."""
        from paretone_app.plotting.sheet import write_figure

        write_figure(figure, path)
        self._notices.note(f"Wrote {path}")
