"""What of a window has no room: ``python -m tests.app.shell.fitting FOLDER WIDTH HEIGHT LETTERS``, a line each."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from PySide6.QtCore import QPointF, QRectF, QSettings, QSize, Qt
from PySide6.QtWidgets import QAbstractButton, QAbstractScrollArea, QApplication, QCheckBox, QPushButton, QToolButton

from paretone.session.engine_thread import EngineThread
from paretone_app.features.listen.canvas import READABLE, Canvas
from paretone_app.shell.theme import Theme
from paretone_app.shell.window import MainWindow
from paretone_app.widgets.layouts import Scrolled, Shrinkable
from tests.engine import small_speech


def fill(window: MainWindow, wait: Callable[[], None]) -> None:
    """Bring sound, a table, a few takes and a study into ``window``, as a user does; ``wait`` is called meanwhile."""

    def idle() -> None:
        while window.jobs.busy or not window.state.selection.ready:
            wait()

    idle()
    for action in (window.action.baseline, window.action["calibrate"], window.action.accelerated):
        action.trigger()
        idle()
    for seed in range(1, 5):
        window.state.selection.set_seed(seed)
        window.action.accelerated.trigger()
        idle()
    studies = window.workspaces.panels["studies"]
    window.action["open_example"].trigger()
    while studies.table.model() is None or not studies.table.model().rowCount():
        wait()


def faults(window: MainWindow) -> list[str]:
    """What has no room in any panel of any workspace, one line each."""
    found = []
    for workspace in window.workspaces.there:
        window.workspaces.switch(workspace)
        for place, _ in window.workspaces.shown:
            window.workspaces.go_to(place.name)
            for _ in range(10):
                QApplication.processEvents()
            found += [f"{workspace.title}: {one}" for one in cut_off(window)]
    return list(dict.fromkeys(found))


def unreadable(window: MainWindow) -> list[str]:
    """What is too low to be used: tables of few rows, spectrograms that say nothing, names that an interval strikes."""
    for name in ("takes", "listen"):
        window.workspaces.go_to(name)
    for _ in range(10):
        QApplication.processEvents()
    found, table = [], window.workspaces.panels["takes"].table
    rows = table.viewport().height() / table.rowHeight(0)
    if rows < 4:
        found.append(f"{rows:.1f} rows of takes")
    canvas = window.workspaces.panels["listen"].findChild(Canvas)
    found += [
        f"the spectrogram of lane {lane.letter} has {heights.spectrogram} pixels"
        for lane, _, _, heights in canvas.shown()
        if lane.minus is None and heights.spectrogram < READABLE
    ]
    for name in ("studies", "tradeoff"):
        window.workspaces.go_to(name)
        for _ in range(10):
            QApplication.processEvents()
    table, drawn = window.workspaces.panels["studies"].table, window.workspaces.panels["tradeoff"].plot.drawn
    if window.height() >= 900 and table.viewport().height() < 10 * table.rowHeight(0):
        found.append(f"{table.viewport().height() / table.rowHeight(0):.1f} rows of a study")
    lines = [QRectF(QPointF(*one[:2]), QPointF(*one[2:])).adjusted(0, -0.6, 0, 0.6) for one in drawn.whiskers.lines[1]]
    placed = drawn.names.placed
    if not placed or not lines:
        found.append("no names of points, or no intervals")
    return found + [f"“{one.text}” is struck through" for one, spot in placed if any(map(spot.intersects, lines))]


def cut_off(window: MainWindow) -> Iterator[str]:
    for button in window.findChildren(QAbstractButton):
        if button.isVisible() and _shows_text(button):
            yield from _of_button(button)
    areas = [one for one in window.findChildren(QAbstractScrollArea) if one.isVisible()]
    sideways = [one for one in areas if one.horizontalScrollBar().isVisible()]
    for one in sideways:
        around = any(other is not one and other.isAncestorOf(one) for other in sideways)
        if (around or isinstance(one, (Shrinkable, Scrolled))) and not one.visibleRegion().isEmpty():
            yield f"{type(one).__name__} “{one.accessibleName()}” scrolls sideways, and so may what is in it"


def _of_button(button: QAbstractButton) -> Iterator[str]:
    text = button.text().replace("&", "")
    line = max(map(button.fontMetrics().horizontalAdvance, text.splitlines()))
    needed = button.sizeHint().width() - 2 if isinstance(button, QCheckBox) else line + 4
    if button.width() < needed:
        yield f"“{text}” needs {needed} of {button.width()} pixels"
    around = button.parentWidget()
    if around is not None and not around.rect().contains(button.geometry()):
        yield f"“{text}” is cut off by what it is in"
    seen = button.visibleRegion().boundingRect()
    if not seen.isEmpty() and seen.width() < button.width():
        yield f"“{text}” is cut off at a side"


def _shows_text(button: QAbstractButton) -> bool:
    if isinstance(button, QToolButton) and not button.icon().isNull():
        return button.toolButtonStyle() is not Qt.ToolButtonStyle.ToolButtonIconOnly and bool(button.text())
    return isinstance(button, (QPushButton, QCheckBox, QToolButton)) and bool(button.text())


def main(folder: Path, size: QSize, letters: float) -> None:
    """Of a window with takes and a study, of ``size`` pixels; ``letters``: their size over the usual one."""
    application = QApplication(["paretone"])
    font = application.font()
    font.setPointSizeF(letters * font.pointSizeF())
    application.setFont(font)
    settings = QSettings(str(folder / "window.ini"), QSettings.Format.IniFormat)
    theme = Theme(application)
    window = MainWindow(theme, settings, folder / "data", lambda post: EngineThread(post, small_speech.load))
    window.show()
    while not window.is_built:
        application.processEvents()
    window.resize(size / application.primaryScreen().devicePixelRatio())
    window.workspaces.default_layout()
    fill(window, lambda: application.processEvents())
    print(*faults(window), sep="\n", end="")
    window.close()
    while not window.is_closed:
        application.processEvents()


if __name__ == "__main__":
    main(Path(sys.argv[1]), QSize(int(sys.argv[2]), int(sys.argv[3])), float(sys.argv[4]))
