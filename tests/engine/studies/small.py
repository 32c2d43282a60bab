"""Studies of the small speech model, which speaks in milliseconds under the name of a real one."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from paretone.errors import Cancelled
from paretone.models.f5.adapter import F5Speech
from paretone.studies.definition import parse
from paretone.studies.running import LocalExecutor, StudyFollower, run
from paretone.studies.store import DATABASE, Store, StoredTake
from paretone.studies.study import Study
from tests.engine import small_speech

GRID = {"steps": {"steps": ["off", 2, 3]}}
SENTENCES = ["One sentence.", "Another one.", "And a third."]


def study(**changes: object) -> Study:
    """Three settings on three sentences, unless ``changes`` say otherwise; ``None`` takes a field out."""
    options = {"steps": 4, "spacing": "uniform", "cross_fade": 0.0}
    given = {"title": "Small", "sentences": SENTENCES, "options": options, "grid": GRID, **changes}
    return parse({name: value for name, value in given.items() if value is not None})


def load(model: str, folder: str = "", variant: str = "", device: str = "cpu", **observer: Callable) -> F5Speech:
    return small_speech.load(model, folder, variant, device, observer["status"], observer["check"])


class Follower(StudyFollower):
    """Takes note of what a study says; cancels or pauses after so many takes."""

    def __init__(self, cancel_after: int | None = None, pause_after: int | None = None) -> None:
        self.takes: list[StoredTake] = []
        self.begins: list[str] = []
        self.shares: list[float] = []
        """Progress of calibrations."""
        self.advances: list[tuple[int, int, float | None]] = []
        self.cancel_after, self._pause_after = cancel_after, pause_after

    def check(self) -> None:
        if self.cancel_after is not None and len(self.takes) >= self.cancel_after:
            raise Cancelled

    def status(self, text: str) -> None:
        self.check()

    def step(self, report: object) -> None:
        self.check()

    def progress(self, done: int, total: int) -> None:
        self.check()
        self.shares.append(done / total)

    def begun(self, title: str, done: int, total: int) -> None:
        self.begins.append(title)

    def advanced(self, done: int, total: int, seconds_left: float | None) -> None:
        self.advances.append((done, total, seconds_left))

    def take(self, take: StoredTake) -> None:
        self.takes.append(take)

    def pausing(self) -> bool:
        return self._pause_after is not None and len(self.takes) >= self._pause_after


def finished(folder: Path, chosen: Study | None = None, follower: Follower | None = None, load: Callable = load) -> str:
    """Run a study in ``folder`` with the small model; how it ended."""
    chosen = chosen or study()
    with Store(folder) as store:
        store.begin(chosen)
        return run(chosen, store, LocalExecutor(load), follower or Follower())


def takes_in(folder: Path) -> tuple[StoredTake, ...]:
    with Store(folder) as store:
        return store.takes()


def sql(folder: Path, command: str, *values: object) -> list[tuple]:
    """Rows of ``command`` on the study's file in ``folder``, behind the study's back; what it changes is kept."""
    with closing(sqlite3.connect(folder / DATABASE)) as direct, direct:
        return direct.execute(command, values).fetchall()
