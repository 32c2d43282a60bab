"""The list of optional packages: what each is for, and a button that installs it."""

from __future__ import annotations

from PySide6.QtWidgets import QDialog, QDialogButtonBox, QLabel, QWidget

from paretone.extras import EXTRAS
from paretone_app.state.machine import Installing
from paretone_app.widgets import build
from paretone_app.widgets.layouts import GridLayout, VBoxLayout
from paretone_app.widgets.panel_parts import InstallOffer


class ExtrasDialog(QDialog):
    """Opened with ``open()``; closing it does not stop what is being installed."""

    def __init__(self, installing: Installing, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Optional packages")
        self.offers: dict[str, InstallOffer] = {}
        self._states: dict[str, QLabel] = {}
        grid = GridLayout()
        grid.setColumnStretch(1, 1)
        for row, one in enumerate(EXTRAS):
            offer = self.offers[one.name] = InstallOffer()
            offer.follow(installing)
            state = self._states[one.name] = build.label("Installed", "muted")
            grid.addWidget(QLabel(one.title), row, 0)
            grid.addWidget(state, row, 1)
            grid.addWidget(offer, row, 1)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.reject)
        layout = VBoxLayout(self)
        layout.addWidget(
            build.label("They are installed into Paretone's own environment; what is there already stays.", "muted")
        )
        layout.addLayout(grid)
        layout.addWidget(buttons)
        self.setMinimumWidth(42 * self.fontMetrics().height())
        installing.changed.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Show what is there now."""
        for one in EXTRAS:
            self.offers[one.name].offer_extra(one)
            self._states[one.name].setVisible(self.offers[one.name].isHidden())
