"""Nothing jumps: controls stay where they are before, during and after every kind of job."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QLineEdit,
    QPlainTextEdit,
    QScrollBar,
    QWidget,
)
from pytestqt.qtbot import QtBot

from paretone.export.targets import targets
from paretone_app.features.attention.presenter import AttentionPresenter
from paretone_app.features.export import ProfileExport
from paretone_app.features.layers.presenter import LayersPresenter
from paretone_app.features.presenter import built
from paretone_app.features.roofline.presenter import RooflinePresenter
from paretone_app.features.setup.presenter import SetupPresenter
from paretone_app.features.transfer.presenter import TransferPresenter
from paretone_app.features.views.presenter import ViewsPresenter
from paretone_app.shell.window import MainWindow
from tests.app.conftest import MakeWindow, loading, ready
from tests.app.features.studies.studying import opened, write
from tests.app.features.training.test_presenter import filled_in
from tests.engine.speaking import write_all
from tests.packages import needs

CONTROLS = (QAbstractButton, QComboBox, QAbstractSpinBox, QLineEdit, QPlainTextEdit)


def _places(window: MainWindow) -> dict[QWidget, tuple[str, QPoint]]:
    """Where each control is that is seen, with a name for people."""
    QApplication.processEvents()
    return {
        one: (f"{type(one).__name__} “{one.accessibleName() or one.toolTip() or one.objectName()}”", at)
        for one in window.findChildren(QWidget)
        if isinstance(one, CONTROLS) and not one.visibleRegion().isEmpty()
        # Parts of other controls, and messages, which lie over everything, may move.
        if not isinstance(one.parentWidget(), (*CONTROLS, QScrollBar)) and not window.notices.banner.isAncestorOf(one)
        for at in [one.mapTo(window, QPoint())]
    }


def _settled(window: MainWindow, qtbot: QtBot) -> dict[QWidget, tuple[str, QPoint]]:
    """The places once they are the same at each of several looks: Qt lays out a shown workspace over several turns."""
    found: list[dict[QWidget, tuple[str, QPoint]]] = []

    def same() -> bool:
        found.append(_places(window))
        return len(found) > 5 and len(found[-1]) > 20 and all(one == found[-1] for one in found[-6:])

    qtbot.waitUntil(same)
    return found[-1]


@pytest.mark.parametrize("size", [(1440, 900), (1024, 700)])
def test_nothing_moves_while_jobs_run(make_window: MakeWindow, qtbot: QtBot, size: tuple[int, int]) -> None:
    window = make_window()
    window.resize(*size)
    find, action = ready(window, qtbot).features.find, window.action
    jobs: dict[str, tuple[str, Callable[[], object]]] = {
        "baseline": ("listen", action.baseline.trigger),
        "calibrate": ("strategy", action["calibrate"].trigger),
        "calibrate in Listen": ("listen", action["calibrate"].trigger),
        "accelerated": ("listen", action.accelerated.trigger),
        "another baseline": ("listen", action.baseline.trigger),
        "accelerated in Inspect": ("threshold", action.accelerated.trigger),
        "repeat": ("meters", action["repeat"].trigger),
        "view": ("views", lambda: built(find(ViewsPresenter).views).compute_button.click()),
        "attention": ("attention", lambda: find(AttentionPresenter).capture(0, 1)),
        "roofline": ("roofline", lambda: find(RooflinePresenter).measure("A")),
        "accelerated in Explore": ("tradeoff", action.accelerated.trigger),
        "cancelled": ("listen", action.baseline.trigger),
    }
    moved = _moves(window, qtbot, jobs)
    assert not moved, "\n".join(moved)


@needs("accelerate")
@pytest.mark.timeout(300)
def test_nothing_moves_while_long_jobs_run(make_window: MakeWindow, qtbot: QtBot, tmp_path: Path) -> None:
    window = make_window(loading("lm-mini"))
    window.resize(1440, 900)
    ready(window, qtbot)
    find = window.features.find
    assert not _moves(window, qtbot, {"calibrate": ("strategy", window.action["calibrate"].trigger)})
    opened(window, write(tmp_path), qtbot)
    training = filled_in(window, tmp_path)
    export = ProfileExport(window.state)
    target = next(one for one in targets() if not export.account(one).why_not)
    jobs: dict[str, tuple[str, Callable[[], object]]] = {
        "transfer": ("transfer", built(find(TransferPresenter).transfer).measure_button.click),
        "study": ("studies", window.panels["studies"].run_button.click),
        "training": ("training", training.start_button.click),
        "export": ("listen", lambda: export.export(target, tmp_path / "exported")),
    }
    moved = _moves(window, qtbot, jobs)
    window.state.selection.model_folder = ""  # Not that of the training.
    moved += _moves(window, qtbot, {"load": ("setup", window.action.reload.trigger)})
    find(SetupPresenter).load("lm-mini", str(write_all(tmp_path / "language")))
    qtbot.waitUntil(lambda: not window.jobs.busy)
    layers = built(find(LayersPresenter).layers)
    layers.sentences.setValue(1)
    moved += _moves(window, qtbot, {"layers": ("layers", layers.measure_button.click)})
    assert not moved, "\n".join(moved)


def _moves(window: MainWindow, qtbot: QtBot, jobs: Mapping[str, tuple[str, Callable[[], object]]]) -> list[str]:
    """Controls that move while one of ``jobs`` runs, or after it; of each, its panel and what begins it."""
    moved: list[str] = []
    for name, (panel, begin) in jobs.items():
        window.workspaces.go_to(panel)
        before = _settled(window, qtbot)

        def look(when: str, name: str = name, before: dict = before) -> None:
            now = _places(window)
            moved.extend(
                f"{name}, {when}: {what} from {at.x(), at.y()} to {now[one][1].x(), now[one][1].y()}"
                for one, (what, at) in before.items()
                if one in now and now[one][1] != at
            )

        connection = window.bridge.progress.connect(lambda _, look=look: look("under way"))
        with qtbot.waitSignal(window.jobs.ended):
            begin()
            look("begun")
            if name == "cancelled":
                window.action.cancel.trigger()
        qtbot.waitUntil(lambda: not window.jobs.busy)
        qtbot.wait(100)
        look("ended")
        window.bridge.progress.disconnect(connection)
    return list(dict.fromkeys(moved))
