"""Prints, one line each, what of the window does not fit a small screen: for a process with a scale of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QSettings, QSize
from PySide6.QtWidgets import QApplication

from paretone.session.commands import Command
from paretone.session.engine_thread import EngineThread
from paretone_app.shell.theme import Theme
from paretone_app.shell.window import MainWindow
from paretone_app.widgets.layouts import Shrinkable
from tests.app.shell.fitting import faults, fill
from tests.engine import small_speech

SCREEN = QSize(1024, 700)


class NoEngine:
    """An engine that never answers: panels need none to be laid out."""

    def start(self) -> None:
        pass

    def submit(self, command: Command) -> None:
        pass

    def join(self, timeout: float | None = None) -> bool:
        return True


def main(folder: Path) -> None:
    application = QApplication(["paretone"])
    window = _window(folder, lambda post: NoEngine(), application)
    window.resize(SCREEN)
    window.workspaces.default_layout()
    for workspace in window.workspaces.there:
        window.workspaces.switch(workspace)
        for _ in range(20):
            application.processEvents()
        least = window.minimumSizeHint()
        if window.size() != SCREEN or least.width() > SCREEN.width() or least.height() > SCREEN.height():
            print(f"{workspace.title} needs {least.width()} × {least.height()}")
        for place, dock in window.workspaces.shown:
            inside = dock.widget()
            if isinstance(inside, Shrinkable) and not dock.visibleRegion().isEmpty():
                beyond = inside.horizontalScrollBar().maximum()
                if beyond:
                    print(f"{place.title} scrolls sideways by {beyond}")
                below = inside.verticalScrollBar().maximum()
                if below:
                    print(f"{place.title} scrolls down by {below}")
    _close(window, application)


def in_use(folder: Path, size: QSize, letters: float) -> None:
    """Of a window with takes and a study, ``size`` in pixels of the screen; ``letters`` is how large they are, in
    shares of the usual size."""
    application = QApplication(["paretone"])
    font = application.font()
    font.setPointSizeF(letters * font.pointSizeF())
    application.setFont(font)
    window = _window(folder, lambda post: EngineThread(post, small_speech.load), application)
    window.resize(size / application.primaryScreen().devicePixelRatio())
    window.workspaces.default_layout()
    fill(window, lambda: application.processEvents())
    print(*faults(window), sep="\n", end="")
    _close(window, application)


def _window(folder: Path, engine: Callable, application: QApplication) -> MainWindow:
    settings = QSettings(str(folder / "window.ini"), QSettings.Format.IniFormat)
    window = MainWindow(Theme(application), settings, folder / "data", engine)
    window.show()
    while not window.is_built:
        application.processEvents()
    return window


def _close(window: MainWindow, application: QApplication) -> None:
    window.close()
    while not window.is_closed:
        application.processEvents()


if __name__ == "__main__":
    if len(sys.argv) == 2:
        main(Path(sys.argv[1]))
    else:
        in_use(Path(sys.argv[1]), QSize(int(sys.argv[2]), int(sys.argv[3])), float(sys.argv[4]))
