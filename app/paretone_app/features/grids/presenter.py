"""The presenter of Grid: searches placed times, follows the search, opens and saves grids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QWidget

from paretone.session.commands import Prepare
from paretone.session.events import Event, Prepared
from paretone.techniques.searched_grid import Searched, figure_of
from paretone_app.features.grids.state import NAME, GridState, running_trials
from paretone_app.features.presenter import Presenter, Services
from paretone_app.numbers import fixed, general
from paretone_app.shell import file_dialogs
from paretone_app.shell.notices import Level
from paretone_app.state.jobs import Job, Kind

if TYPE_CHECKING:
    from paretone_app.features.grids.panel import GridPanel


class GridsPresenter(Presenter):
    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self.state = GridState(services.state, services.folder / "placed-grids", self)
        self.grids: GridPanel | None = None
        self._objective = ""
        """The figure of the last search."""
        self.later: dict[str, Callable[[], QWidget]] = {"grids": self._build_grids}
        add, state = services.actions.add, self.state
        tip = "Search times for the number of evaluations in Setup"
        self._search = add("Search &times", state.search, tip, lambda: state.why_not_search() or self._why_wait())
        self._open = add("&Open grid…", self._ask_for_grid, "Use a placed grid from a file")
        self._save = add(
            "Save &grid…",
            self._ask_where_to_keep,
            "Save as JSON, for --grid",
            lambda: "" if state.artefact else "There is no grid yet.",
        )
        self.state.changed.connect(self.refresh)
        services.state.jobs.began.connect(self._job_began)
        services.state.jobs.ended.connect(self._job_ended)

    def engine_starts(self) -> None:
        """Say which grids could not be read."""
        self._tell_problems()

    @Slot()
    def refresh(self) -> None:
        self._search.refresh()
        self._save.refresh()
        if self.grids is None:
            return
        grid, searched = self.state.artefact, self.state.searched
        of_it = searched if searched is not None and searched.grid == grid else None
        self.grids.set_grid(grid, of_it, self._objective)

    def _why_wait(self) -> str:
        jobs = self._state.jobs
        if any(job.kind is Kind.GRID for job in jobs.running):
            return "Times are being searched; press Esc to cancel. A search of the same goes on where it was."
        return jobs.why_wait

    def follow(self, event: Event) -> None:
        """Take up a grid, and log what was found."""
        self.state.follow(event)
        self._tell_problems()
        if isinstance(event, Prepared) and isinstance(event.result, Searched):
            found = event.result
            starts = ", ".join(
                f"{one.title} {general(figure_of(one.trial.value, self._objective), 4)}" for one in found.starts
            )
            self._notices.note(
                f"Searched {found.grid.steps} evaluations with {found.trials} grids in {fixed(found.seconds, 1)} s: "
                f"{general(figure_of(found.best.value, self._objective), 4)}, and {starts} ({found.unit})"
            )

    def show_reports(self, events: Sequence[Event]) -> None:
        """Show the trials of a running search."""
        trials = running_trials(events, self._state.jobs)
        if trials and self.grids is not None:
            self.grids.add_trials(trials)

    @Slot(object)
    def _job_began(self, job: Job) -> None:
        if job.kind is Kind.GRID and isinstance(job.command, Prepare):
            used = job.command.request.setting.technique(NAME)
            self._objective = str(used.knobs["objective"])
            if self.grids is not None:
                self.grids.begin(self._objective)

    @Slot(object)
    def _job_ended(self, job: Job) -> None:
        if job.kind is Kind.GRID and self.grids is not None:
            self.grids.end()

    def _build_grids(self) -> QWidget:
        from paretone_app.features.grids.panel import GridPanel

        self.grids = GridPanel(self._theme.colours, self._search, self._open, self._save)
        self.refresh()
        return self.grids

    # --- Files --------------------------------------------------------------------------------------------------------
    def _ask_for_grid(self) -> None:
        file_dialogs.ask_for_file(
            self._window,
            "Placed grid",
            file_dialogs.JSON,
            lambda path: self._actions.attempt(lambda: self.state.open(path)),
        )

    def _ask_where_to_keep(self) -> None:
        grid = self.state.artefact
        if grid is not None:
            name = f"grid-{grid.compatibility.model}-{grid.steps}.json"
            self._ask_where_to_write("Placed grid", file_dialogs.JSON, name, self.write)

    def write(self, path: Path) -> None:
        """Write the grid in use to ``path``. Raises :class:`PlainError` when it cannot be written."""
        if self.state.write(path):
            self._notices.note(f"Wrote {path}")

    def _tell_problems(self) -> None:
        for sentence in self.state.problems:
            self._notices.note(sentence, Level.WARNING)
        self.state.problems.clear()
