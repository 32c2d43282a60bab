"""The rail: the workspaces as a column of icons with names."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QSizePolicy, QToolButton, QWidget

from paretone_app.shell.colours import Colours
from paretone_app.shell.icons import icon
from paretone_app.shell.metrics import TIGHT
from paretone_app.shell.places import Workspace
from paretone_app.shell.theme import palette
from paretone_app.widgets.layouts import VBoxLayout
from paretone_app.widgets.screen_readers import GROUP


class Rail(QWidget):
    """A button for each workspace, which does its action; that of the workspace that is shown is checked."""

    screen_role = GROUP

    def __init__(self, actions: Mapping[Workspace, QAction], colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Workspaces")
        self.buttons: dict[Workspace, QToolButton] = {}
        layout = VBoxLayout(self)
        layout.setContentsMargins(0, TIGHT, 0, TIGHT)
        layout.setSpacing(TIGHT)
        em = self.fontMetrics().height()
        for workspace, action in actions.items():
            # Not its default action, whose tip and icon are the menu's.
            button = QToolButton()
            button.setText(workspace.title)
            button.setCheckable(True)
            button.clicked.connect(action.trigger)
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextUnderIcon)
            button.setIconSize(QSize(round(1.4 * em), round(1.4 * em)))
            button.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            button.setProperty("look", "workspace")
            keys = action.shortcut().toString()
            button.setAccessibleName(f"Workspace {workspace.title}")
            button.setAccessibleDescription(f"{workspace.tip} ({keys})")
            button.setToolTip(f"{workspace.title}: {workspace.tip} ({keys})")
            self.buttons[workspace] = button
            layout.addWidget(button)
        layout.addStretch(1)
        self.set_colours(colours)

    def show_current(self, current: Workspace) -> None:
        """Check the button of ``current``."""
        for workspace, button in self.buttons.items():
            button.setChecked(workspace is current)

    def set_colours(self, colours: Colours) -> None:
        """Follow the theme."""
        for workspace, button in self.buttons.items():
            button.setIcon(icon(workspace.icon, palette(colours)))
