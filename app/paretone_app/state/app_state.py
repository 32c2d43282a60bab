"""The application's state, with signals and without widgets: what is selected, compared, available and running. The
engine's events reach the parts through :meth:`AppState.follow`."""

from PySide6.QtCore import QObject
from PySide6.QtGui import QUndoStack

from paretone.session.events import Event
from paretone_app.state.artefacts import Artefacts
from paretone_app.state.availability import Availability
from paretone_app.state.comparison import Comparison
from paretone_app.state.cost import Cost, Gains
from paretone_app.state.editing import Editing, OwnVoices
from paretone_app.state.jobs import Jobs
from paretone_app.state.loading import Loading
from paretone_app.state.machine import Installing, Machine
from paretone_app.state.playing import Playing
from paretone_app.state.selection import Selection
from paretone_app.state.synthesis import Coming, Making, Synthesis

UNDO_LIMIT = 200
"""Entries of the undo stack; the oldest are dropped. They stay in memory, except the audio of deleted takes."""


class AppState(QObject):
    def __init__(self, jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.jobs = jobs
        self.undo_stack = QUndoStack(self, undoLimit=UNDO_LIMIT)
        self.machine = Machine(self)
        self.artefacts = Artefacts(self)
        self.selection = Selection(self.artefacts, self)
        self.editing = Editing(self.selection, self.artefacts, self.undo_stack, self)
        self.own_voices = OwnVoices(self.selection, self.undo_stack, self)
        self.comparison = Comparison(self)
        self.cost = Cost(self.selection, self.artefacts, self)
        self.gains = Gains(self.selection, self.machine, self)
        self.availability = Availability(self.selection, self.artefacts, jobs)
        self.loading = Loading(self.selection, self.cost, self.machine, jobs, self)
        self.coming = Coming(jobs, self)
        self.synthesis = Synthesis(self.selection, self.artefacts, self.availability, self.comparison, jobs, self)
        self.making = Making(jobs, self)
        self.selection.model_changed.connect(self.making.try_again)
        self.playing = Playing(self)
        self.installing = Installing(jobs, self)

    def follow(self, event: Event) -> None:
        """Pass an event of the engine to the parts. Events that end jobs go to :attr:`jobs`."""
        for part in (self.machine, self.cost, self.loading, self.coming, self.synthesis, self.making):
            part.follow(event)
