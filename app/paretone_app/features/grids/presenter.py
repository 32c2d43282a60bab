"""The grid presenter: searches times, follows the search, opens and saves grids."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from paretone.errors import ProfileError, SettingError
from paretone.sampling.grid_search import Trial
from paretone.session.commands import Prepare
from paretone.session.events import Event, PreparationReport, Prepared
from paretone.setting.compatibility import Compatibility
from paretone.setting.setting import UsedTechnique
from paretone.techniques import compatibility_of, conflict
from paretone.techniques.searched_grid import (
    TECHNIQUE,
    PlacedGrid,
    Searched,
    SearchRequest,
    figure_of,
    figure_text,
    placed_for,
    solver_of,
)
from paretone_app.features.presenter import Services, StorePresenter
from paretone_app.numbers import displayed, fixed
from paretone_app.shell import file_dialogs
from paretone_app.state.artefact_store import ArtefactStore
from paretone_app.state.availability import require
from paretone_app.state.jobs import Job, Kind, Outcome

if TYPE_CHECKING:
    from paretone_app.features.grids.panel import GridPanel

NAME = TECHNIQUE.name


class GridState(ArtefactStore):
    technique, kind, request = TECHNIQUE, PlacedGrid, SearchRequest
    unwritten = "The placed grid could not be written to {path} ({reason}). It can be used until the window closes."
    artefact: PlacedGrid | None
    searched: Searched | None = None

    def file_name(self, artefact: PlacedGrid) -> str:
        return f"{artefact.steps}-{artefact.fingerprint}.json"

    def proposal(self, artefact: PlacedGrid) -> str:
        return f"grid-{artefact.compatibility.model}-{artefact.steps}.json"

    @property
    def origin(self) -> tuple[str, str] | None:
        if (grid := self.artefact) is None:
            return None
        return "Placed grid", ", ".join(filter(None, (f"{grid.steps} evaluations", grid.origin)))

    def problem(self) -> str:
        if not self._selection.is_used(NAME) or self.artefact is not None:
            return ""
        return f"{TECHNIQUE.title} has no placed times for {self.evaluations} evaluations yet: search them in Grid."

    def compatibility(self) -> Compatibility | None:
        """Compatibility that a grid must have, apart from its number of evaluations."""
        if not self._selection.ready or self._selection.loaded.family not in TECHNIQUE.families:
            return None
        with suppress(SettingError):
            return compatibility_of(self._selection.loaded, self._selection.setting.without(NAME), of_flow=True)
        return None

    def serves(self, artefact: PlacedGrid, wanted: Compatibility) -> bool:
        return artefact.compatibility == placed_for(wanted, artefact.steps)

    def chosen(self, wanted: Compatibility | None) -> PlacedGrid | None:
        """The newest grid for the selection, preferably one placed for the selected solver."""
        if wanted is None:
            return None
        fitting = [one for one in reversed(self.kept) if one.steps == self.evaluations and self.serves(one, wanted)]
        solver = solver_of(self._selection.setting)
        return min(fitting, key=lambda one: one.solver != solver, default=None)

    def knobs_of(self, artefact: PlacedGrid) -> Mapping[str, object]:
        return {"evaluations": artefact.steps}

    @property
    def evaluations(self) -> int:
        return int(self._selection.knobs(NAME)["evaluations"])

    def why_not_search(self) -> str:
        """Why no grid can be searched now, as a sentence, or ``""``."""
        if not any(one.name == NAME for one in self._selection.techniques):
            return f"{self._selection.entry.title} takes no steps from noise to speech: choose a flow model in Setup."
        if not self._selection.is_used(NAME):
            return f"Switch {TECHNIQUE.title} on first: only it needs a search."
        return self._state.availability.why_not_synthesise() or conflict(self._selection.setting) or ""

    def search(self) -> None:
        require(self.why_not_search())
        selection = self._selection
        setting = selection.setting.with_technique(UsedTechnique(NAME, selection.knobs(NAME)))
        request = SearchRequest((selection.utterance,), setting)
        self._state.jobs.start(Kind.GRID, lambda job: Prepare(job, NAME, request))

    def open(self, path: Path) -> None:
        """Use the grid in a file. Raises :class:`ProfileError` if it holds none, or one for another selection."""
        grid = self.read(path)
        wanted = self.compatibility()
        mismatch = None if wanted is None else grid.compatibility.mismatch(placed_for(wanted, grid.steps))
        if mismatch:
            raise ProfileError(f"The placed grid {path.name} cannot be used here: {mismatch}.")
        self.adopt(grid, f"open {path.name}")

    def follow(self, event: Event) -> None:
        if isinstance(event, Prepared) and isinstance(event.result, Searched):
            self.searched = event.result
            self._take_in(event.job, event.result.grid)


class GridsPresenter(StorePresenter):
    state: GridState

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self.state = GridState(services.state, services.folder / "placed-grids", self)
        self.grids: GridPanel | None = None
        self._objective = ""
        self.later = {"grids": self._build_grids}
        add, state = services.actions.add, self.state
        tip = "Search times for the number of evaluations in Setup"
        searching = "Times are being searched, or wait for it in the queue. A cancelled search goes on where it was."
        wait = partial(services.state.jobs.why_one, Kind.GRID, searching)
        self._search = add("Search &times", state.search, tip, lambda: state.why_not_search() or wait())
        ask = partial(self._ask_for_file, "Placed grid", file_dialogs.JSON, state.open)
        self._open = add("&Open grid…", ask, "Use a placed grid from a file")
        self._save = self._add_saving("grid", "There is no grid yet.", "Placed grid")
        self.state.changed.connect(self.refresh)

    def refresh(self) -> None:
        self._search.refresh()
        self._save.refresh()
        if self.grids is not None:
            grid, searched = self.state.artefact, self.state.searched
            of_it = searched if searched is not None and searched.grid == grid else None
            self.grids.set_grid(grid, of_it, self._objective)

    def follow(self, event: Event) -> None:
        super().follow(event)
        if isinstance(event, Prepared) and isinstance(found := event.result, Searched):
            best, *figures = (
                displayed(figure_text(figure_of(one.value, self._objective), self._objective))
                for one in (found.best, *(start.trial for start in found.starts))
            )
            starts = ", ".join(f"{one.title} {figure}" for one, figure in zip(found.starts, figures, strict=True))
            self._notices.note(
                f"Searched {found.grid.steps} evaluations with {found.trials} grids in {fixed(found.seconds, 1)} s: "
                f"{best}, and {starts} ({found.unit})"
            )

    def show_reports(self, events: Sequence[Event]) -> None:
        # Those of ended searches are ignored.
        reports = (one for one in events if isinstance(one, PreparationReport) and one.technique == NAME)
        running = (one.report for one in reports if self._state.jobs.find(one.job) is not None)
        trials = [one for one in running if isinstance(one, Trial)]
        if trials and self.grids is not None:
            self.grids.add_trials(trials)

    def job_began(self, job: Job) -> None:
        if job.kind is Kind.GRID and isinstance(job.command, Prepare):
            self._objective = str(job.command.request.setting.technique(NAME).knobs["objective"])
            if self.grids is not None:
                self.grids.begin(self._objective)

    def job_ended(self, job: Job, outcome: Outcome, sentence: str) -> None:
        if job.kind is Kind.GRID and self.grids is not None:
            self.grids.end()

    def _build_grids(self) -> "GridPanel":
        from paretone_app.features.grids.panel import GridPanel

        self.grids = GridPanel(self._theme.colours, self._search, self._open, self._save)
        return self.grids
