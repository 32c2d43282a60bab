"""A study in the window: its file, opening it, and the end of its job."""

from collections.abc import Callable
from pathlib import Path

from pytestqt.qtbot import QtBot

from paretone.studies.store import Store
from paretone_app.features.studies.panel import StudiesPanel
from paretone_app.shell.window import MainWindow
from paretone_app.state.jobs import Kind, Outcome
from tests.app.conftest import PATIENCE_MILLISECONDS
from tests.engine.studies import small
from tests.workload import workload

MANY = workload(40, 4)
"""Sentences of a study that is still running when somebody says stop."""


def write(folder: Path, name: str = "small", sentences: int = 2, more: str = "", grid: str = "") -> Path:
    """A study's file: three settings on so many sentences."""
    texts = ", ".join(f'"This is sentence {number}."' for number in range(sentences))
    path = folder / f"{name}.toml"
    path.write_text(
        f'title = "Small"\nsentences = [{texts}]\n{more}\n[options]\nsteps = 4\ncross_fade = 0.0\n'
        f"[grid]\n{grid or 'steps.steps = [2, 3]'}\n",
        encoding="utf-8",
    )
    return path


def opened(window: MainWindow, place: Path, qtbot: QtBot) -> StudiesPanel:
    folder = place if place.is_dir() else place.with_suffix(".study")
    window.features["studies"].open(place)
    studies = window.features["studies"].opened
    qtbot.waitUntil(lambda: studies.summary is not None and studies.chosen == folder)
    return window.panels["studies"]


def ended(
    window: MainWindow, begin: Callable[[], object], qtbot: QtBot, wait: int = PATIENCE_MILLISECONDS
) -> tuple[Outcome, str]:
    """Outcome and message of the study that ``begin`` starts, once its results are shown."""
    with qtbot.waitSignal(window.jobs.ended, timeout=wait) as blocker:
        begin()
    assert blocker.args[0].kind is Kind.STUDY
    shown(window, qtbot)
    return blocker.args[1], blocker.args[2]


def finish(window: MainWindow, begin: Callable[[], object], qtbot: QtBot, wait: int = PATIENCE_MILLISECONDS) -> None:
    """Start a study by ``begin``; it ends without a problem."""
    outcome, sentence = ended(window, begin, qtbot, wait)
    assert outcome is Outcome.FINISHED, sentence


def shown(window: MainWindow, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: not window.results.busy)


def texts(panel: StudiesPanel) -> list[list[str]]:
    model = panel.table.model()
    columns = range(model.columnCount())
    return [[str(model.index(line, column).data()) for column in columns] for line in range(model.rowCount())]


def created(folder: Path) -> dict[object, str]:
    with Store(folder, read_only=True) as store:
        return {one.cell: one.created for one in store.takes()}


def run_once(folder: Path) -> Path:
    file = write(folder)
    small.finished(file.with_suffix(".study"), small.study(sentences=["This is sentence 0."]))
    return file
