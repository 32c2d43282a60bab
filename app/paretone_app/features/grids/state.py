"""The placed grid in use: searched by the engine or opened, kept in files, taken up for what is selected."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot

from paretone.errors import PlainError, ProfileError, SettingError
from paretone.files import reason, write_atomically
from paretone.sampling.grid_search import Trial
from paretone.session.commands import Prepare
from paretone.session.events import Event, PreparationReport, Prepared
from paretone.setting.compatibility import Compatibility
from paretone.setting.setting import Artefact, UsedTechnique
from paretone.techniques import conflict, resolve
from paretone.techniques.searched_grid import TECHNIQUE, solver_of
from paretone.techniques.searched_grid.command import read
from paretone.techniques.searched_grid.grid import PlacedGrid, Searched, SearchRequest, placed_for
from paretone_app.state.app_state import AppState
from paretone_app.state.availability import require
from paretone_app.state.jobs import Jobs, Kind
from paretone_app.state.undo import Edit

NAME = TECHNIQUE.name


class GridState(QObject):
    """The source of placed grids; see :class:`paretone_app.state.artefacts.ArtefactSource`."""

    changed = Signal()
    """The grid in use changed."""

    def __init__(self, state: AppState, folder: Path, parent: QObject | None = None) -> None:
        """``folder`` keeps the grids that were found, one file each."""
        super().__init__(parent)
        self._state, self._selection, self._folder = state, state.selection, folder
        self.grid: PlacedGrid | None = None
        self.searched: Searched | None = None
        """The last search of this window."""
        self.problems: list[str] = []
        """Files that could not be read or written, as sentences."""
        self._kept: list[PlacedGrid] = []
        for path in sorted(folder.glob("*.json"), key=lambda one: one.stat().st_mtime):
            try:
                self._kept.append(read(str(path)))
            except PlainError as error:
                self.problems.append(str(error))
        state.artefacts.add(NAME, self)
        state.selection.conditions_changed.connect(self._find)

    # --- As a source of artefacts -------------------------------------------------------------------------------------
    @property
    def artefact(self) -> PlacedGrid | None:
        return self.grid

    @property
    def origin(self) -> tuple[str, str] | None:
        grid = self.grid
        return None if grid is None else ("Placed grid", f"{grid.steps} evaluations{_after(grid.origin)}")

    @property
    def records(self) -> tuple[object, ...]:
        return ()

    def problem(self) -> str:
        """Why there is no grid for what is selected, as a sentence, or ``""``."""
        if not self._selection.is_used(NAME) or self.grid is not None:
            return ""
        return f"{TECHNIQUE.title} has no placed times for {self.evaluations} evaluations yet: search them in Grid."

    def find(self, entry: UsedTechnique) -> PlacedGrid | None:
        """The grid that a setting names, among those that are kept."""
        return next((one for one in self._kept if one.fingerprint == entry.artefact), None)

    def fits(self, artefact: Artefact) -> bool:
        return isinstance(artefact, PlacedGrid) and self._fits(artefact, self.compatibility())

    def adopt(self, artefact: Artefact, why: str) -> None:
        if isinstance(artefact, PlacedGrid) and artefact != self.grid:
            self._keep(artefact)
            self._state.undo_stack.push(Edit(why, self.grid, artefact, self._use))

    def put_back(self, artefact: Artefact) -> None:
        if isinstance(artefact, PlacedGrid) and self.fits(artefact) and artefact != self.grid:
            self._use(artefact)

    def compare_with(self, artefact: Artefact | None) -> None:
        """No-op: grids have no comparison."""

    def set_knob(self, knob: str, value: object) -> bool:
        """Grids are searched again for other knobs."""
        return False

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

    def compatibility(self) -> Compatibility | None:
        """What a grid must have been placed for; ``None`` without a loaded model that takes one."""
        if not self._selection.ready or self._selection.loaded.family not in TECHNIQUE.families:
            return None
        try:
            others = self._selection.setting.without(NAME)
            return resolve(self._selection.loaded, others, prepared=False).compatibility
        except SettingError:
            return None

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
            self._keep(event.result.grid)
            self._find()

    # --- Grids --------------------------------------------------------------------------------------------------------
    def _keep(self, grid: PlacedGrid) -> None:
        """Keep ``grid``, in memory at least."""
        self._kept = [*(one for one in self._kept if one.fingerprint != grid.fingerprint), grid]
        path = self._folder / f"{grid.steps}-{grid.fingerprint}.json"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            write_atomically(path, json.dumps(grid.to_json()).encode())
        except OSError as error:
            self.problems.append(
                f"The placed grid could not be written to {path} ({reason(error)}). It can be used until the window "
                "closes."
            )

    def _use(self, grid: PlacedGrid | None) -> None:
        self.grid = grid
        if grid is not None:
            self._selection.put_knobs(NAME, evaluations=grid.steps)
        self.changed.emit()

    @Slot()
    def _find(self) -> None:
        """Take up the newest grid for what is selected, one for the selected solver if there is."""
        wanted, count = self.compatibility(), self.evaluations
        fitting = [one for one in reversed(self._kept) if one.steps == count and self._fits(one, wanted)]
        if fitting:
            solver = solver_of(self._selection.setting)
            fitting.sort(key=lambda one: one.solver != solver)
        found = fitting[0] if fitting else None
        if found != self.grid:
            self.grid = found
            self.changed.emit()

    @staticmethod
    def _fits(grid: PlacedGrid, wanted: Compatibility | None) -> bool:
        return wanted is not None and grid.compatibility == placed_for(wanted, grid.steps)


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
