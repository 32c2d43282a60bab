"""Features are declared in their folders and made from one list; the window knows none of them by name."""

import subprocess
import sys
from pathlib import Path

from PySide6.QtCore import QSettings, Qt
from PySide6.QtWidgets import QLabel, QMenu, QWidget
from pytestqt.qtbot import QtBot

from paretone.models.base import FLOW
from paretone.session.engine_thread import EngineThread
from paretone.session.events import Event, ModelLoaded
from paretone_app.features.feature import Feature
from paretone_app.features.presenter import Presenter, Services
from paretone_app.features.registry import FEATURES
from paretone_app.features.takes.presenter import TakesPresenter
from paretone_app.shell.colours import Colours
from paretone_app.shell.entries import INSPECT, FeatureAction, MainStep, MenuPart, Place, Region
from paretone_app.shell.theme import Theme
from paretone_app.shell.window import MainWindow
from tests.app.conftest import SMALL, activated, close, of, ready
from tests.engine import small_speech

HELD = Qt.KeyboardModifier


class CounterPanel(QLabel):
    """A panel like any other."""

    def set_colours(self, colours: Colours) -> None:
        """Every panel follows the theme."""


class CounterPresenter(Presenter):
    """Counts loads and keeps what the window asks of it."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self.asked: list[str] = []
        self.takes = services.features.find(TakesPresenter)
        self.state = services.state
        self.loads = 0
        self.panel: CounterPanel | None = None
        self.later = {"counter": self._build}
        services.actions.bind(services.actions["count"], self.changed.emit)

    def _build(self) -> QWidget:
        self.panel = CounterPanel(str(self.loads))
        return self.panel

    def engine_starts(self) -> None:
        self.asked.append("starts")

    def follow(self, event: Event) -> None:
        if isinstance(event, ModelLoaded):
            assert self.state.selection.info == event.info, "the state has it already"
            self.loads += 1
            if self.panel is not None:
                self.panel.setText(str(self.loads))

    def refresh(self) -> None:
        self.asked.append("refresh")

    def step_done(self, action: str) -> bool:
        return self.loads > 1

    def shut_down(self) -> None:
        self.asked.append("ends")


COUNTER = Feature(
    "counter",
    CounterPresenter,
    (Place("counter", "Counter", Region.CENTRE, (FLOW,)),),
    actions=(FeatureAction("count", "C&ount", "Count once more", "Ctrl+Alt+Shift+F9"),),
    menus=(
        MenuPart("&Run", ("count",), after="accelerated"),
        MenuPart("Coun&ting", ("count", None, "undo")),
        MenuPart("Coun&ting", ("redo",)),
    ),
    steps=(MainStep("count", "Count", "press <b>Count</b>.", "<b>Count</b>: the loads.", after="baseline"),),
)


def test_a_feature_is_its_folder_and_one_line(qtbot: QtBot, theme: Theme, tmp_path: Path) -> None:
    settings = QSettings(str(tmp_path / "window.ini"), QSettings.Format.IniFormat)
    parts = (*of(f"{SMALL} strategy threshold views lab studies tradeoff guide"), COUNTER)
    window = MainWindow(theme, settings, tmp_path / "data", lambda post: EngineThread(post, small_speech.load), parts)
    presenter = window.features["counter"]
    ready(window, qtbot)
    assert presenter.loads == 1 and presenter.takes is window.features["takes"]
    assert window.panels["counter"] is presenter.panel and presenter.panel.text() == "1"
    titles = [action.text() for menu in window.menuBar().findChildren(QWidget) for action in menu.actions()]
    inspect = window.workspaces.of(INSPECT)
    assert "Go to Counter" in titles, "in the menu View"
    assert inspect["counter"] in inspect.host.tabifiedDockWidgets(inspect["views"])
    assert window.workspaces.galleries[INSPECT].cards["counter"].text() == "Counter"
    before = presenter.asked.count("refresh")
    presenter.changed.emit()
    assert presenter.asked.count("refresh") == before + 1
    activated(window, qtbot)
    qtbot.keyClick(window, Qt.Key.Key_F9, HELD.ControlModifier | HELD.AltModifier | HELD.ShiftModifier)
    assert presenter.asked.count("refresh") == before + 2, "its shortcut"
    bar = [one.text() for one in window.menuBar().actions()]
    assert bar[5:8] == ["&Strategy", "St&udies", "Coun&ting"]
    found = {one.title(): [entry.text() for entry in one.actions()] for one in window.menuBar().findChildren(QMenu)}
    assert found["Coun&ting"] == ["C&ount", "", "&Undo", "&Redo"]
    assert found["&Run"][found["&Run"].index("Synthesise &accelerated") + 1] == "C&ount"
    guide = window.features["guide"].guide
    assert [guide.buttons[index].text()[3:] for index in range(4)] == ["Baseline", "Count", "Calibrate", "Accelerated"]
    close(window, qtbot)
    assert presenter.asked.count("starts") == 1 and presenter.asked[-1] == "ends"


def test_names_and_places_are_each_there_once() -> None:
    names = [feature.name for feature in FEATURES]
    places = [place.name for feature in FEATURES for place in feature.places]
    assert len(set(names)) == len(names) and len(set(places)) == len(places)
    there = Path("app/paretone_app/features")
    apart = {one.stem for one in there.glob("*.py")} - {"__init__", "feature", "presenter", "registry"}
    folders = {one.parent.name for one in there.parent.glob("*/*/presenter.py")} | {"engines"}
    assert folders | apart == set(names), "all are in the list"
    # The list is read without Qt.
    asked = "[one for one in sys.modules if one.startswith('PySide6')]"
    code = f"import sys, paretone_app.features.registry; assert not {asked}"
    subprocess.run([sys.executable, "-c", code], check=True)
