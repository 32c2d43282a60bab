"""The attention presenter: diagonal similarity per layer and step, and capture of a cell's maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from paretone.errors import PlainError
from paretone.session.commands import CaptureAttention
from paretone.session.events import AttentionCaptured, Event
from paretone.techniques import problem
from paretone.techniques.ditreducio.record import Similarities
from paretone_app.features.presenter import Presenter, Services, built
from paretone_app.features.strategy.presenter import StrategyPresenter
from paretone_app.features.strategy.state import NAME, running_reports
from paretone_app.state.availability import require
from paretone_app.state.jobs import Job, Kind, Outcome

if TYPE_CHECKING:
    from paretone_app.features.attention.panel import AttentionPanel


class AttentionPresenter(Presenter):
    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._strategy = services.features.find(StrategyPresenter).state
        self.attention: AttentionPanel | None = None
        self.later = {"attention": self._build_attention}
        self._capture_selected = services.actions.add(
            "Capture the selected cell", lambda: self._capture(*built(self.attention).grid.cursor_cell)
        )

    def _build_attention(self) -> AttentionPanel:
        from paretone_app.features.attention.panel import AttentionPanel

        self.attention = AttentionPanel(self._theme.colours, self._capture_selected)
        self.attention.grid.cell_activated.connect(self._capture)
        self._strategy.changed.connect(self._show_similarities)
        self._state.selection.model_changed.connect(self._follow_model)
        self._show_similarities()
        return self.attention

    def _show_similarities(self) -> None:
        state, record, panel = self._state, self._strategy.record, built(self.attention)
        panel.grid.set_times(state.selection.step_times)
        steps = state.selection.options_in_force.get("steps")
        if record is not None and not record.is_for_end and record.table.steps == steps:
            panel.set_similarities(record.similarities, record.cut)
        elif state.selection.info is not None and steps is not None:
            panel.set_layout(state.selection.info.layers, int(steps))

    def _follow_model(self) -> None:
        self._show_similarities()
        if not self._state.selection.ready:
            built(self.attention).clear_capture()

    def follow(self, event: Event) -> None:
        if isinstance(event, AttentionCaptured) and self.attention is not None and self._state.selection.ready:
            self.attention.show_capture(event.capture)

    def show_reports(self, events: Sequence[Event]) -> None:
        """Show similarities of a running calibration; ignore those of an ended one."""
        reports = running_reports(events, self._state.jobs)
        similarities = [one for one in reports if isinstance(one, Similarities)]
        if similarities and self.attention is not None:
            self.attention.set_similarities(similarities[-1].values)

    def capture(self, layer: int, step: int) -> None:
        """Capture the attention of one layer at one step. Raises :class:`SettingError` if that is not possible."""
        state, chosen = self._state, self._state.selection
        require(state.availability.why_not_synthesise())
        # Use the step grid in force, so that the steps match the strategy table.
        text, voice, setting = chosen.text, chosen.speaker, chosen.setting.without(NAME)
        require(problem(chosen.loaded, setting) or "")
        state.jobs.start(Kind.ATTENTION, lambda job: CaptureAttention(job, text, voice, setting, layer, step))

    def _capture(self, layer: int, step: int) -> None:
        for waiting in [one for one in self._state.jobs.waiting if one.kind is Kind.ATTENTION]:
            self._state.jobs.cancel(waiting)  # The last cell chosen counts.
        try:
            self.capture(layer, step)
        except PlainError as error:
            built(self.attention).say(str(error))
        else:
            built(self.attention).say(f"Capturing the attention of layer {layer + 1} at step {step + 1}…", "title")

    def job_ended(self, job: Job, outcome: Outcome, sentence: str) -> None:
        if self.attention is not None and job.kind is Kind.CALIBRATE:
            self._show_similarities()
        if self.attention is not None and job.kind is Kind.ATTENTION and outcome is not Outcome.FINISHED:
            self.attention.say(sentence or "The capture was cancelled; choose the cell again.")
