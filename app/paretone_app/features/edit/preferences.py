"""Preferences: the choices that hold for the whole window and are kept between sessions."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QFormLayout, QLabel, QWidget

from paretone_app.shell.theme import Scheme
from paretone_app.widgets import build
from paretone_app.widgets.layouts import FormLayout, VBoxLayout

_SCHEMES = (("As the system", Scheme.SYSTEM), ("Light", Scheme.LIGHT), ("Dark", Scheme.DARK))
BEST = "auto"


class PreferencesDialog(QDialog):
    """Opened with ``open()``; every choice holds at once."""

    scheme_chosen = Signal(object)
    """A :class:`Scheme`."""
    device_chosen = Signal(str)

    def __init__(self, actions: Sequence[tuple[str, QAction]], parent: QWidget | None = None) -> None:
        """``actions``: what else can be chosen, each with the line that its button is in."""
        super().__init__(parent)
        self.setWindowTitle("Preferences")
        self.scheme = build.combo("Theme", _SCHEMES)
        self.device = build.combo("Device", tip="Where models run. Another device loads the model again")
        self.folder = build.label(name="Data folder", selectable=True, wrapped=True)
        self.scheme.activated.connect(lambda _: self.scheme_chosen.emit(self.scheme.currentData()))
        self.device.activated.connect(lambda _: self.device_chosen.emit(self.device.currentData()))
        form = FormLayout()
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        for title, field in (("&Theme", self.scheme), ("&Device", self.device), ("Data folder", self.folder)):
            label = QLabel(title)
            label.setBuddy(field)
            form.addRow(label, field)
        rows: dict[str, list[QWidget]] = {}
        for line, action in actions:
            rows.setdefault(line, []).append(_button(action))
        for line, found in rows.items():
            form.addRow(QLabel(line), build.row(*found))
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.reject)
        layout = VBoxLayout(self)
        layout.addLayout(form)
        layout.addWidget(buttons)
        self.setMinimumWidth(38 * self.fontMetrics().height())

    def show_choices(
        self, scheme: Scheme, devices: Sequence[str], device: str, why_no_device: str, folder: str
    ) -> None:
        """Show what is chosen; ``why_no_device`` says why no other device can be chosen now."""
        self.scheme.setCurrentIndex(self.scheme.findData(scheme))
        offered = (BEST, *devices)
        if [self.device.itemData(one) for one in range(self.device.count())] != list(offered):
            self.device.clear()
            for one in offered:
                self.device.addItem("Best available" if one == BEST else one.upper(), one)
        self.device.setCurrentIndex(self.device.findData(device))
        build.allow(self.device, why_no_device, "Where models run. Another device loads the model again")
        self.folder.setText(folder)


def _button(action: QAction) -> QWidget:
    made = build.button(action.text(), action.trigger, action.toolTip())
    if action.isCheckable():
        made.setCheckable(True)
        made.setChecked(action.isChecked())
        action.toggled.connect(made.setChecked)
    return made
