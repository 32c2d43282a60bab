"""The judges to tick in the dialog that makes a study, and a button that installs what they lack."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QWidget

from paretone.measure.evaluation.judges import JUDGES
from paretone_app.state.machine import Installing
from paretone_app.widgets import build
from paretone_app.widgets.layouts import VBoxLayout
from paretone_app.widgets.panel_parts import InstallOffer

USUAL_JUDGES = ("words", "naturalness", "voice", "melody")
"""Ticked at first, where installed."""


class JudgeBoxes(QWidget):
    """One box for each judge; those that cannot be used say why."""

    changed = Signal()
    """Another choice of judges."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.boxes: dict[str, QCheckBox] = {}
        for one in JUDGES:
            box = self.boxes[one.name] = QCheckBox(one.title)
            box.toggled.connect(self.changed)
        self.install = InstallOffer()
        build.fill(VBoxLayout(self), [*self.boxes.values(), self.install])
        self.show_missing()

    def follow(self, installing: Installing) -> None:
        """Offer to install what the usual judges lack."""
        self.install.follow(installing)
        self.show_missing()

    def show_missing(self) -> None:
        """Enable those that are there now."""
        lacking = ""
        for one in JUDGES:
            reason = one.problem()
            build.allow(self.boxes[one.name], reason, f"Adds {', '.join(one.metrics)}")
            lacking = lacking or (reason if one.name in USUAL_JUDGES else "")
        self.install.offer(lacking)
