"""Prints, one line each, what of the window does not fit a small screen: for a process with a scale of its own."""

from __future__ import annotations

import sys
from pathlib import Path

from PySide6.QtCore import QSettings, QSize
from PySide6.QtWidgets import QApplication

from app.shell.theme import Theme
from app.shell.window import MainWindow
from app.widgets.shrinkable import Shrinkable
from engine.session.commands import Command

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
    settings = QSettings(str(folder / "window.ini"), QSettings.Format.IniFormat)
    window = MainWindow(Theme(application), settings, folder / "data", lambda post: NoEngine())
    window.resize(SCREEN)
    window.workspaces.default_layout()
    window.show()
    while not window.is_built:
        application.processEvents()
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
    window.close()
    while not window.is_closed:
        application.processEvents()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
