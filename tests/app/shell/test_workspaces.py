"""Five activities share the window: each has its panels, its layout and its keys."""

import itertools
from functools import partial
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QSettings, QSize, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QMainWindow, QVBoxLayout
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from paretone.models import catalogue
from paretone_app.features.registry import FEATURES
from paretone_app.shell.entries import EXPLORE, INSPECT, LISTEN, TEST, TRAIN, WORKSPACES, Place, Region
from paretone_app.shell.regions import Regions
from paretone_app.shell.window import MainWindow
from paretone_app.shell.workspaces import Workspaces
from paretone_app.widgets.panel_parts import ShownPanel
from tests.app.conftest import activated, in_front
from tests.app.sharing import borrowed  # noqa: F401
from tests.workload import workload

FAMILIES = sorted({one.family for one in catalogue.models()})
PLACES = (
    Place("words", "Words", Region.LEFT, workspaces=(LISTEN, INSPECT)),
    Place("sound", "Sound", Region.CENTRE, workspaces=(LISTEN,)),
    Place("list", "List", Region.BELOW, workspaces=(LISTEN,)),
    Place("table", "Table", Region.CENTRE),
    Place("curve", "Curve", Region.CENTRE, ("flow",)),
    Place("way", "Way", Region.HEAD, workspaces=(LISTEN,)),
    Place("player", "Player", Region.FOOT),
)


class Shell:
    """A window with workspaces whose panels are a field each."""

    def __init__(self, places: tuple[Place, ...] = PLACES) -> None:
        self.window = QMainWindow()
        self.window.resize(1300, 800)
        self.workspaces = Workspaces(self.window, places)
        self.fields: dict[str, QLineEdit] = {}
        for place in places:
            self.fields[place.name] = QLineEdit()
            panel = ShownPanel()
            QVBoxLayout(panel).addWidget(self.fields[place.name])
            self.workspaces.put(place.name, panel)

    def show(self, qtbot: QtBot, settings: QSettings) -> None:
        self.workspaces.restore(settings, QSize(1300, 800))
        in_front(self.window, qtbot)

    def seen(self) -> set[str]:
        return {name for name, field in self.fields.items() if not field.visibleRegion().isEmpty()}


@pytest.fixture
def settings(tmp_path: Path) -> QSettings:
    return QSettings(str(tmp_path / "window.ini"), QSettings.Format.IniFormat)


@pytest.fixture
def shell(qtbot: QtBot, settings: QSettings) -> Shell:
    made = Shell()
    made.show(qtbot, settings)
    return made


def test_each_shows_its_own_panels_above_the_foot_or_one_of_them_alone(shell: Shell, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: shell.seen() == {"words", "sound", "list", "way", "player"})
    shell.workspaces.switch(INSPECT)
    qtbot.waitUntil(lambda: shell.seen() == {"table", "player"})
    panel = shell.workspaces.panels["player"]
    assert panel.width() > 0.95 * shell.window.width()
    host = shell.workspaces.shown.host
    assert panel.mapTo(shell.window, QPoint()).y() > host.mapTo(shell.window, QPoint(0, host.height())).y() - 2
    assert shell.workspaces.there == (LISTEN, INSPECT), "the others would be empty"
    shell.workspaces.go_to("sound")
    shell.workspaces.maximise()
    qtbot.waitUntil(lambda: shell.seen() == {"sound", "player"})
    shell.workspaces.switch(INSPECT)
    cards = shell.workspaces.galleries[INSPECT].cards["table"]
    qtbot.waitUntil(cards.isVisible)
    shell.workspaces.maximise()
    qtbot.waitUntil(lambda: shell.seen() == {"table", "player"} and not cards.isVisible())
    shell.workspaces.maximise()
    qtbot.waitUntil(cards.isVisible)
    shell.workspaces.switch(LISTEN)
    shell.workspaces.maximise()
    qtbot.waitUntil(lambda: shell.seen() == {"words", "sound", "list", "way", "player"})


def test_work_waits_until_its_workspace_or_tab_is_seen(shell: Shell, qtbot: QtBot) -> None:
    done: list[str] = []
    for name, panel in shell.workspaces.panels.items():
        panel.when_seen(partial(done.append, name))
    qtbot.waitUntil(lambda: set(done) == {"words", "sound", "list", "way", "player"})
    shell.workspaces.switch(INSPECT)
    assert done[5:] == ["table"], "at once; the curve is behind it"
    shell.workspaces.bring_forward("curve")
    qtbot.waitUntil(lambda: done[5:] == ["table", "curve"])
    shell.workspaces.switch(LISTEN)
    qtbot.waitUntil(lambda: "words" in shell.seen())
    assert len(done) == 7, "once each"
    table = shell.workspaces.panels["table"]
    table.when_seen(partial(int, "no number"))
    table.when_seen(partial(done.append, "later"))
    with qtbot.captureExceptions() as failed:
        shell.workspaces.go_to("table")
        table.look()
    assert [one[0] for one in failed] == [ValueError] and done[7:] == ["later"], "what fails drops nothing else"


def test_going_to_a_panel_shows_its_workspace_and_the_focus_comes_back_where_it_was(shell: Shell, qtbot: QtBot) -> None:
    shell.workspaces.go_to("list")
    qtbot.waitUntil(shell.fields["list"].hasFocus)
    shell.workspaces.go_to("curve")
    assert shell.workspaces.current is INSPECT
    qtbot.waitUntil(shell.fields["curve"].hasFocus)
    shell.workspaces.switch(LISTEN)
    qtbot.waitUntil(shell.fields["list"].hasFocus)
    shell.workspaces.go_to("player")
    assert shell.workspaces.current is LISTEN and shell.fields["player"].hasFocus()
    with qtbot.assertNotEmitted(shell.workspaces.changed):
        shell.workspaces.bring_forward("table")
        shell.workspaces.switch(LISTEN)


def test_a_panel_of_several_is_at_home_until_it_is_wanted_elsewhere(shell: Shell, qtbot: QtBot) -> None:
    shell.workspaces.switch(INSPECT)
    assert "words" not in shell.seen()
    shown = shell.workspaces.of(INSPECT)["words"].toggleViewAction()
    shown.trigger()
    qtbot.waitUntil(lambda: "words" in shell.seen())
    shell.workspaces.go_to("words")
    assert shell.workspaces.current is INSPECT, "it is here"
    shell.workspaces.switch(LISTEN)
    qtbot.waitUntil(lambda: "words" in shell.seen())
    shell.workspaces.switch(INSPECT)
    qtbot.waitUntil(lambda: "words" in shell.seen())
    shown.trigger()
    shell.workspaces.go_to("words")
    assert shell.workspaces.current is LISTEN
    qtbot.waitUntil(shell.fields["words"].hasFocus)


def test_layouts_and_the_workspace_come_back(shell: Shell, qtbot: QtBot, settings: QSettings) -> None:
    settings.setValue("layout", "of the time when there were no workspaces")
    shell.workspaces.of(LISTEN)["list"].hide()
    shell.workspaces.switch(INSPECT)
    shell.workspaces.suit("language")
    shell.workspaces.save(settings)
    assert not settings.contains("layout")
    again = Shell()
    again.show(qtbot, settings)
    assert again.workspaces.current is INSPECT
    assert again.workspaces["list"].isHidden() and again.workspaces["curve"].isHidden()
    again.workspaces.suit("language")
    assert again.workspaces["curve"].isHidden()
    again.workspaces.default_layout()
    assert not again.workspaces["list"].isHidden()


def test_cards_show_one_view_at_a_time_with_pictures_of_the_others(shell: Shell, qtbot: QtBot) -> None:
    shell.workspaces.suit("flow")
    shell.workspaces.switch(INSPECT)
    gallery = shell.workspaces.galleries[INSPECT]
    assert list(gallery.cards) == ["table", "curve"]
    table, curve = gallery.cards.values()
    qtbot.waitUntil(lambda: table.isChecked() and not curve.isChecked())
    before = curve.icon().cacheKey()
    qtbot.waitUntil(lambda: curve.icon().cacheKey() != before)
    before = curve.icon().cacheKey()
    qtbot.mouseClick(curve, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: shell.seen() == {"curve", "player"} and curve.isChecked())
    qtbot.waitUntil(lambda: curve.icon().cacheKey() != before)
    shell.workspaces.suit("language")
    qtbot.waitUntil(lambda: not curve.isVisible() and table.isChecked())
    assert {one.accessibleName() for one in gallery.cards.values()} == {"Show Table", "Show Curve"}


def test_the_focus_goes_from_region_to_region_and_remembers_where_it_was(shell: Shell, qtbot: QtBot) -> None:
    regions, names = Regions(), ("way", "words", "sound", "list", "player")
    parts = [*shell.workspaces.parts, shell.workspaces.panels["player"]]
    second = QLineEdit()
    shell.workspaces.panels["sound"].layout().addWidget(second)
    qtbot.waitUntil(second.isVisible)
    second.setFocus()
    for name in (*names[3:], *names[:2]):
        regions.go_on(parts)
        assert shell.fields[name].hasFocus(), name
    regions.go_on(parts)
    assert second.hasFocus(), "where it was"
    regions.go_on(parts, backwards=True)
    assert shell.fields["words"].hasFocus()
    message = QLineEdit(shell.window)
    message.setGeometry(200, 10, 100, 20)
    message.show()
    message.raise_()
    regions.go_on([message, *parts], first=message)
    assert message.hasFocus()
    regions.go_on([message, *parts], first=message)
    assert shell.fields["way"].hasFocus(), "the message was read"
    second.setFocus()
    regions.go_on(parts)
    second.deleteLater()
    qtbot.waitUntil(lambda: not isValid(second))
    regions.go_on(parts, backwards=True)
    assert shell.fields["sound"].hasFocus(), "the other one is gone"


def test_every_panel_lives_where_its_activity_is() -> None:
    homes: dict[str, set[str]] = {one.name: set() for one in WORKSPACES}
    for place in (place for feature in FEATURES for place in feature.places if place.region is not Region.FOOT):
        homes[place.home.name].add(place.name)
    assert homes[LISTEN.name] == {"setup", "listen", "takes", "log", "meters", "queue", "steps"}
    assert homes[EXPLORE.name] == {"tradeoff", "parallel", "studies", "take_grid", "servers"}
    assert homes[TEST.name] == {"lab"} and homes[TRAIN.name] == {"training"}
    inside = {"strategy", "threshold", "attention", "transfer", "decoding", "layers", "demasking", "roofline", "views"}
    inside |= {"grids", "groups"}
    assert homes[INSPECT.name] == inside


def go_on(turns: int) -> None:
    for _ in range(turns):
        QApplication.processEvents()


PERMUTATIONS = list(itertools.permutations(FAMILIES, 2))


@pytest.mark.parametrize(
    ("before", "after", "turns"),
    workload([(*both, turns) for both in PERMUTATIONS for turns in (0, 20)], [(*PERMUTATIONS[0], 0)]),
)
def test_whatever_is_gone_to_is_shown_after_models_of_another_family(
    qtbot: QtBot, settings: QSettings, before: str, after: str, turns: int
) -> None:
    # Those that the menu offers to go to.
    places = tuple(one for feature in FEATURES for one in feature.places if one.region is not Region.HEAD)
    shell = Shell(places)
    shell.show(qtbot, settings)
    missed = []
    for away in (LISTEN, INSPECT):
        for place in places:
            shell.workspaces.suit(before)
            shell.workspaces.switch(INSPECT)
            go_on(20)
            # From Listen: the panels of another family come while their workspace is not shown.
            shell.workspaces.switch(away)
            shell.workspaces.suit(after)
            go_on(turns)
            shell.workspaces.go_to(place.name)
            go_on(20)
            if place.name not in shell.seen() or not shell.fields[place.name].hasFocus():
                missed.append(f"{place.title} from {away.title}: {shell.seen()}")
    assert not missed


def test_each_go_to_of_the_menu_shows_the_panel_that_it_names(window: MainWindow, qtbot: QtBot) -> None:
    titles = {place.title: place.name for place, _ in window.workspaces}
    actions = {one.text().removeprefix("Go to "): one for one in window.actions() if one.text().startswith("Go to ")}
    assert set(titles) <= set(actions)
    for family in ("language", "flow", "masked", "flow"):
        window.workspaces.switch(LISTEN)
        window.workspaces.suit(family)
        QApplication.processEvents()
        for title, name in titles.items():
            actions[title].trigger()
            shown = window.workspaces.panels[name]
            qtbot.waitUntil(lambda panel=shown: not panel.visibleRegion().isEmpty(), timeout=5000)


def test_the_real_window_goes_by_its_keys_and_its_rail(window: MainWindow, qtbot: QtBot) -> None:
    activated(window, qtbot)
    for index, workspace in reversed(list(enumerate(window.workspaces.there, start=1))):
        qtbot.keyClick(window, getattr(Qt.Key, f"Key_{index}"), Qt.KeyboardModifier.ControlModifier)
        assert window.workspaces.current is workspace and window.windowTitle() == f"{workspace.title} · Paretone"
        assert window.rail.buttons[workspace].isChecked()
        assert window.workspaces.shown.host.isAncestorOf(QApplication.focusWidget()), "the focus is in it"
        assert window.header.isVisible() and window.header.factor.isVisible() == workspace.figures
    window.workspaces.go_to("studies")
    window.workspaces.switch(LISTEN)
    qtbot.mouseClick(window.rail.buttons[EXPLORE], Qt.MouseButton.LeftButton)
    assert window.workspaces.current is EXPLORE
    assert window.workspaces["studies"].isAncestorOf(QApplication.focusWidget()), "where it was"
    for button in window.rail.buttons.values():
        assert button.accessibleName().startswith("Workspace ") and "Ctrl+" in button.toolTip()


def test_the_trade_off_has_most_of_the_room(window: MainWindow, qtbot: QtBot) -> None:
    before = window.size()
    plot, host = window.workspaces["tradeoff"], window.workspaces.of(EXPLORE).host
    for size in ((1440, 900), (1024, 700)):
        window.resize(*size)
        window.workspaces.default_layout()
        window.workspaces.switch(EXPLORE)
        qtbot.waitUntil(lambda: plot.width() * plot.height() >= 0.7 * host.width() * host.height(), timeout=3000)
        window.workspaces.switch(LISTEN)
    window.resize(before)


def test_extra_room_goes_to_the_centre_and_the_sides_stay(window: MainWindow, qtbot: QtBot) -> None:
    docks = window.workspaces

    def widths() -> tuple[int, int]:
        return docks["setup"].width(), docks["meters"].width()

    def resize(width: int, height: int) -> None:
        window.resize(width, height)
        qtbot.waitUntil(lambda: window.width() == width)
        go_on(20)  # Laid out in turns of their own.

    before = window.size()
    window.workspaces.switch(LISTEN)
    resize(1440, 900)
    docks.shown.keep_sides()
    at_first = widths()
    assert at_first[0] <= 360
    for size in ((1920, 1050), (1024, 700), (960, 520), (1920, 1050)):
        resize(*size)
        assert (window.width(), window.height()) == size, "the window fits a small screen"
        if size[0] > 1024:
            assert widths() == at_first
            assert docks["meters"].geometry().right() < window.width(), "nothing is off the screen"
        else:
            assert docks["meters"] in docks.shown.host.tabifiedDockWidgets(docks["takes"])
            assert docks["setup"].width() <= at_first[0]
    host = docks.shown.host
    start = QPoint(docks["setup"].geometry().right() + 2, host.height() // 2)
    left, none = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    QTest.mousePress(host, left, none, start)
    for along in (50, 100):
        QTest.mouseMove(host, start + QPoint(along, 0))
        QApplication.processEvents()
    QTest.mouseRelease(host, left, none, start + QPoint(100, 0))
    qtbot.waitUntil(lambda: docks.shown.kept[docks["setup"]] == docks["setup"].width() == at_first[0] + 100)
    resize(1440, 900)
    assert widths() == (at_first[0] + 100, at_first[1]), "what the user drags stays"
    docks.default_layout()
    window.resize(before)
    docks.default_layout()


def test_what_applies_to_the_model_alone_is_offered(window: MainWindow, qtbot: QtBot) -> None:
    window.workspaces.switch(INSPECT)
    cards = window.workspaces.galleries[INSPECT].cards

    def shown() -> set[str]:
        return {name for name, card in cards.items() if not card.isHidden()}

    qtbot.waitUntil(lambda: shown() == {"strategy", "threshold", "attention", "views", "transfer", "roofline", "grids"})


def test_the_header_says_what_speaks(window: MainWindow, qtbot: QtBot) -> None:
    header, chosen = window.header, window.state.selection
    assert header.model.text() == chosen.entry.title == "F5 mini"
    assert header.voice.text() == chosen.speaker.title
    assert "DiTReducio" in header.setting.text()
    assert not header.cancel.isEnabled(), "nothing runs"
    names = [one.accessibleName().partition(":")[0] for one in header.findChildren(QLabel)]
    assert names[:3] == ["Model", "Voice", "Setting"]
    chosen.consider_model("lm-mini")
    assert header.model.text().endswith("(not loaded)"), "what is shown is not what would run"
    chosen.consider_model(chosen.model_id)
    assert header.model.text() == "F5 mini"
