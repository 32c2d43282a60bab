"""Controls for declared knobs: an editor, a reset button and a mark for knobs with a delayed effect."""

from collections.abc import Mapping, Sequence
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QComboBox, QDoubleSpinBox, QLineEdit, QSpinBox, QToolButton, QWidget

from paretone.setting.knobs import Choice, Effect, Knob, Number, Switch
from paretone_app.numbers import localised
from paretone_app.shell.entries import TERM
from paretone_app.shell.theme import NEAR
from paretone_app.widgets import build
from paretone_app.widgets.boxes import ComboBox, DoubleSpinBox, SpinBox
from paretone_app.widgets.layouts import GridLayout, VBoxLayout

_FAR = 2**31 - 1
_MARKS = {Effect.AFTER_CALIBRATION: "↻"}
"""Signs of knobs that need more than the panel's own button to take effect."""


def decimals(step: float) -> int:
    places = 0
    while places < 6 and abs(step * 10**places - round(step * 10**places)) > 1e-9:
        places += 1
    return places + 1


_LONG = 26
"""Longer labels wrap, so that they do not widen the panel."""
_ROOM = 36
"""Letters of the longest label plus the longest choice that fit on one line; longer choices go below their labels."""


class _Rows(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self.editors: dict[str, QWidget] = {}
        self.resets: dict[str, QToolButton] = {}
        self.labels: dict[str, QWidget] = {}
        self.grid = GridLayout(self)
        self.grid.setContentsMargins(0, 0, 0, 0)
        self.grid.setHorizontalSpacing(NEAR)
        self.grid.setColumnStretch(2, 1)


class KnobControls(QWidget):
    """One row per knob, built from the declarations. ``changed`` carries a knob's name and new value. Rows are built
    once per set of knobs and kept: widgets that are never deleted leave no dangling references."""

    changed = Signal(str, object)
    rebuilt = Signal()
    """The controls were replaced; the containing widget sets their Tab order."""

    def __init__(self, owner: str, foremost: int | None = None) -> None:
        """``foremost``: number of rows that are always there; the others are folded as long as they have their
        defaults, below a button that shows them. By default all are there."""
        super().__init__()
        self._owner = owner
        self._foremost = foremost
        self._unfolded: set[str] = set()
        """Knobs that had other values since the button was pressed: no row goes while it is used."""
        self.knobs: tuple[Knob, ...] = ()
        self._defaults: dict[str, object] = {}
        self._rows = _Rows()
        self._kept: dict[object, _Rows] = {((), ()): self._rows}
        self._column = VBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.addWidget(self._rows)
        self.fold = build.button("")
        self.fold.setCheckable(True)
        self.fold.setToolTip("Show what has its default, or fold it")
        self.fold.setProperty("look", "fold")
        self.fold.toggled.connect(self.fold_defaults)
        self._column.addWidget(self.fold)
        self._show_folded()

    @property
    def reachable(self) -> tuple[QWidget, ...]:
        rows = (one for name, editor in self._rows.editors.items() for one in (self._rows.resets[name], editor))
        return *rows, self.fold

    def editor(self, name: str) -> QWidget:
        return self._rows.editors[name]

    def align(self, width: int) -> int:
        """Give the labels ``width`` or more; returns the width left of the editors."""
        width = max([width, *(one.sizeHint().width() for one in self._rows.labels.values())])
        self._rows.grid.setColumnMinimumWidth(0, width)
        reset = next(iter(self._rows.resets.values()), None)
        return width if reset is None else width + NEAR + reset.sizeHint().width() + NEAR

    def set_knobs(
        self, knobs: Sequence[Knob], values: Mapping[str, Any], defaults: Mapping[str, Any] | None = None
    ) -> None:
        """Show ``knobs`` with ``values``; reset buttons restore ``defaults``, by default the knobs' own."""
        owners = {knob.name: knob.default for knob in knobs} | dict(defaults or {})
        if tuple(knobs) != self.knobs or owners != self._defaults:
            self.knobs, self._defaults = tuple(knobs), owners
            self._unfolded.clear()
            key = self.knobs, tuple(owners.items())
            self._rows.hide()
            new = key not in self._kept
            if new:
                self._kept[key] = self._build()
                self._column.insertWidget(self._column.indexOf(self.fold), self._kept[key])
            self._rows = self._kept[key]
            self._rows.show()
            if new:
                self.rebuilt.emit()
        for knob in self.knobs:
            self._show(knob, values.get(knob.name, knob.default))
        self._show_folded()

    def reveal(self, name: str) -> QWidget:
        """The control of the knob ``name``, unfolded if need be."""
        self._unfolded.add(name)
        self._show_folded()
        return self.editor(name)

    def fold_defaults(self) -> None:
        """Fold every row with its default again."""
        self._unfolded.clear()
        self._show_folded()

    def _show_folded(self) -> None:
        """Fold the rows with defaults, and say on the button how many."""
        folded = [] if self._foremost is None else [one.name for one in self.knobs[self._foremost :]]
        self._unfolded |= {one for one in folded if self._rows.resets[one].isEnabled()}
        folded = [one for one in folded if one not in self._unfolded]
        for name, editor in self._rows.editors.items():
            for part in (editor, self._rows.resets[name], self._rows.labels[name]):
                part.setVisible(self.fold.isChecked() or name not in folded)
        self.fold.setVisible(bool(folded))
        what = "1 at its default" if len(folded) == 1 else f"{len(folded)} at their defaults"
        self.fold.setText(f"▾ {what}" if self.fold.isChecked() else f"▸ {what}")
        self.fold.setAccessibleName(f"{self._owner}: {what}, {'shown' if self.fold.isChecked() else 'folded'}")

    def set_reason(self, name: str, reason: str) -> None:
        """Disable the control of the knob ``name`` for ``reason``, a sentence; ``""`` enables it."""
        editor = self._rows.editors[name]
        knob = next(one for one in self.knobs if one.name == name)
        editor.setEnabled(not reason)
        editor.setToolTip(localised(reason) or _description(knob))
        editor.setAccessibleDescription(reason or _spoken(knob))

    def _build(self) -> _Rows:
        rows, defaults = _Rows(), self._defaults
        row, widest = 0, max((len(one.title) for one in self.knobs), default=0)
        for knob in self.knobs:
            editor = self._editor(knob)
            title = " ".join(filter(None, (knob.title, knob.symbol, _MARKS.get(knob.effect))))
            label = build.label(title, tip=_description(knob))
            label.setWordWrap(len(title) > _LONG)
            label.setBuddy(editor)
            editor.setToolTip(_description(knob))
            editor.setProperty(TERM, f"{self._owner}: {knob.title}")
            editor.setAccessibleName(f"{self._owner}: {knob.label}")
            editor.setAccessibleDescription(_spoken(knob))
            usual = self._default_text(knob)
            reset = build.named(QToolButton(), f"Reset {knob.title} to {usual}", f"Reset to {usual}")
            reset.setText("↺")
            reset.setProperty("look", "quiet")
            reset.clicked.connect(lambda _=False, one=knob: self.changed.emit(one.name, defaults[one.name]))
            rows.grid.addWidget(label, row, 0)
            rows.grid.addWidget(reset, row, 1)
            if isinstance(knob, Choice) and widest + max(map(len, knob.titles or knob.values)) > _ROOM:
                row += 1
                rows.grid.addWidget(editor, row, 0, 1, 3)
            else:
                rows.grid.addWidget(editor, row, 2)
            row += 1
            rows.editors[knob.name], rows.labels[knob.name] = editor, label
            rows.resets[knob.name] = reset
        return rows

    def _editor(self, knob: Knob) -> QWidget:
        if isinstance(knob, Switch):
            box = QCheckBox()
            box.toggled.connect(lambda on, name=knob.name: self.changed.emit(name, on))
            return box
        if isinstance(knob, Choice):
            combo = build.narrow(ComboBox(), 6)
            build.offer(combo, zip(knob.titles or knob.values, knob.values, strict=True), None)
            combo.activated.connect(lambda _, one=combo, name=knob.name: self.changed.emit(name, one.currentData()))
            return combo
        if not isinstance(knob, Number):
            line = QLineEdit()
            line.editingFinished.connect(lambda one=line, name=knob.name: self.changed.emit(name, one.text().strip()))
            return line
        spin = SpinBox() if knob.whole else DoubleSpinBox()
        if isinstance(spin, QDoubleSpinBox):
            spin.setDecimals(decimals(knob.step))
            spin.setSingleStep(knob.step)
            spin.setRange(max(knob.minimum, -_FAR), min(knob.maximum, _FAR))
        else:
            spin.setSingleStep(int(knob.step))
            spin.setRange(int(max(knob.minimum, -_FAR)), int(min(knob.maximum, _FAR)))
        spin.setSuffix(f" {knob.unit}" if knob.unit else "")
        spin.setSpecialValueText(knob.lowest)
        spin.setAlignment(Qt.AlignmentFlag.AlignRight)
        spin.valueChanged.connect(lambda value, name=knob.name: self.changed.emit(name, value))
        return spin

    def _show(self, knob: Knob, value: bool | int | float | str) -> None:
        editor = self._rows.editors[knob.name]
        editor.blockSignals(True)
        if isinstance(editor, QCheckBox):
            editor.setChecked(bool(value))
        elif isinstance(editor, QComboBox):
            editor.setCurrentIndex(editor.findData(value))
        elif isinstance(editor, QLineEdit) and not (editor.hasFocus() and editor.isModified()):
            # Do not overwrite text being typed.
            editor.setText(str(value))
        elif isinstance(editor, QSpinBox):
            editor.setValue(int(value))
        elif isinstance(editor, QDoubleSpinBox):
            editor.setValue(float(value))
        editor.blockSignals(False)
        self._rows.resets[knob.name].setEnabled(value != self._defaults[knob.name])

    def _default_text(self, knob: Knob) -> str:
        default = self._defaults[knob.name]
        if isinstance(knob, Choice) and knob.titles:
            return knob.titles[knob.values.index(str(default))]
        if isinstance(knob, Switch):
            return "on" if default else "off"
        if isinstance(default, str):
            return default or "nothing"
        if isinstance(knob, Number) and (words := knob.in_words(default)):
            return words
        return f"{localised(f'{default:g}')}{' ' + knob.unit if knob.unit else ''}"


def _description(knob: Knob) -> str:
    return f"<b>{knob.label}</b><br>{localised(knob.meaning)}<br><i>Takes effect {knob.effect.value}.</i>"


def _spoken(knob: Knob) -> str:
    return f"{localised(knob.meaning)} Takes effect {knob.effect.value}."
