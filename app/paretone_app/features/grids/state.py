"""The placed grid in use: searched by the engine or opened, kept in files, taken up for what is selected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from PySide6.QtCore import QObject

from paretone.errors import ProfileError, SettingError
from paretone.sampling.grid_search import Trial
from paretone.session.commands import Prepare
from paretone.session.events import Event, PreparationReport, Prepared
from paretone.setting.compatibility import Compatibility
from paretone.setting.setting import UsedTechnique
from paretone.techniques import compatibility_of, conflict
from paretone.techniques.searched_grid import TECHNIQUE, PlacedGrid, Searched, SearchRequest, placed_for, solver_of
from paretone.techniques.searched_grid.command import read
from paretone_app.state.app_state import AppState
from paretone_app.state.artefact_store import ArtefactStore
from paretone_app.state.availability import require
from paretone_app.state.jobs import Jobs, Kind

NAME = TECHNIQUE.name


class GridState(ArtefactStore):
    """Placed grids: searched by the engine or opened."""

    kind = PlacedGrid
    unwritten = "The placed grid could not be written to {path} ({reason}). It can be used until the window closes."
    artefact: PlacedGrid | None

    def __init__(self, state: AppState, folder: Path, parent: QObject | None = None) -> None:
        super().__init__(state, TECHNIQUE, folder, parent)
        self.searched: Searched | None = None
        """The last search of this window."""

    def read(self, path: Path) -> PlacedGrid:
        return read(str(path))

    def file_name(self, artefact: PlacedGrid) -> str:
        return f"{artefact.steps}-{artefact.fingerprint}.json"

    @property
    def origin(self) -> tuple[str, str] | None:
        grid = self.artefact
        return None if grid is None else ("Placed grid", f"{grid.steps} evaluations{_after(grid.origin)}")

    def problem(self) -> str:
        if not self._selection.is_used(NAME) or self.artefact is not None:
            return ""
        return f"{TECHNIQUE.title} has no placed times for {self.evaluations} evaluations yet: search them in Grid."

    def compatibility(self) -> Compatibility | None:
        """What a grid must have been placed for, but for its number of evaluations."""
        if not self._selection.ready or self._selection.loaded.family not in TECHNIQUE.families:
            return None
        try:
            others = self._selection.setting.without(NAME)
            return compatibility_of(self._selection.loaded, others)
        except SettingError:
            return None

    def serves(self, artefact: PlacedGrid, wanted: Compatibility) -> bool:
        return artefact.compatibility == placed_for(wanted, artefact.steps)

    def chosen(self, wanted: Compatibility | None) -> PlacedGrid | None:
        """The newest for what is selected, one for the selected solver if there is."""
        if wanted is None:
            return None
        fitting = [one for one in reversed(self.kept) if one.steps == self.evaluations and self.serves(one, wanted)]
        solver = solver_of(self._selection.setting)
        return min(fitting, key=lambda one: one.solver != solver, default=None)

    def knobs_of(self, artefact: PlacedGrid) -> Mapping[str, object]:
        return {"evaluations": artefact.steps}

    # --- What can be done ---------------------------------------------------------------------------------------------
    @property
    def evaluations(self) -> int:
        """The selected number of evaluations."""
        return int(self._selection.knobs(NAME)["evaluations"])

    def why_not_search(self) -> str:
        """Why no grid can be searched now, as a sentence, or ``""``."""
        if not any(one.name == NAME for one in self._selection.techniques):
            return f"{self._selection.entry.title} takes no steps from noise to speech: choose a flow model in Setup."
        if not self._selection.is_used(NAME):
            return f"Switch {TECHNIQUE.title} on first: only it needs a search."
        return self._state.availability.why_not_synthesise() or conflict(self._selection.setting) or ""

    def search(self) -> None:
        """Search times on the selected sentence. Raises when it cannot be done."""
        require(self.why_not_search())
        selection = self._selection
        setting = selection.setting.with_technique(UsedTechnique(NAME, selection.knobs(NAME)))
        request = SearchRequest((selection.utterance,), setting)
        self._state.jobs.start(Kind.GRID, lambda job: Prepare(job, NAME, request))

    def open(self, path: Path) -> None:
        """Use the grid in a file. Raises :class:`ProfileError` if there is none, or it is for something else."""
        grid = read(str(path))
        wanted = self.compatibility()
        mismatch = None if wanted is None else grid.compatibility.mismatch(placed_for(wanted, grid.steps))
        if mismatch:
            raise ProfileError(f"The placed grid {path.name} cannot be used here: {mismatch}.")
        self.adopt(grid, f"open {path.name}")

    def follow(self, event: Event) -> None:
        """Take up a grid that was found."""
        if isinstance(event, Prepared) and isinstance(event.result, Searched):
            self.searched = event.result
            self.keep(event.result.grid)
            self._find()


def running_trials(events: Sequence[Event], jobs: Jobs) -> list[Trial]:
    """Trials of running searches; those of ended ones are ignored."""
    return [
        one.report
        for one in events
        if isinstance(one, PreparationReport)
        and one.technique == NAME
        and isinstance(one.report, Trial)
        and jobs.find(one.job) is not None
    ]


def _after(origin: str) -> str:
    return f", {origin}" if origin else ""
