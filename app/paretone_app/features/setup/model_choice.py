"""The choice of a model: what it is, what it lacks, and loading it once that is confirmed."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QComboBox, QWidget

from paretone.models import catalogue
from paretone_app.numbers import fixed
from paretone_app.shell import file_dialogs
from paretone_app.shell.theme import NEAR
from paretone_app.state.selection import Selection
from paretone_app.widgets import build
from paretone_app.widgets.boxes import ComboBox
from paretone_app.widgets.layouts import VBoxLayout

CHECKPOINT_FOLDER = "Folder with the checkpoint"
VOCODER_FOLDER = "Folder with the vocoder"


class NarrowBox(ComboBox):
    """A choice that is cut off rather than widens the panel."""

    def __init__(self) -> None:
        super().__init__()
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(10)


class _ModelBox(NarrowBox):
    """The choice of a model, which Enter confirms."""

    confirmed = Signal()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.confirmed.emit()
        else:
            super().keyPressEvent(event)


class ModelChoice(QWidget):
    """Choosing a model only shows it. The one in use stays until the other is loaded."""

    load_wanted = Signal(str, str)
    """The user wants the model with this id loaded, from this folder if that is not empty."""
    vocoder_wanted = Signal(str, str)
    """The user wants the model with this id loaded with the vocoder in this folder."""
    download_wanted = Signal(str)
    """The user wants to fetch the model with this id."""

    def __init__(self, selection: Selection, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._selection = selection
        self.box = build.named(_ModelBox(), "Model")
        for entry in catalogue.MODELS:
            self.box.addItem(entry.title, entry.id)
            self.box.setItemData(self.box.count() - 1, entry.summary, Qt.ItemDataRole.ToolTipRole)
        self.box.activated.connect(lambda: selection.consider_model(self.box.currentData()))
        self.box.confirmed.connect(self._load)
        self.note = build.words("muted")
        self.folder = build.button(
            "F&older…", self._ask_for_folder, "Load this model's official checkpoint from a folder"
        )
        self.download = build.button(
            "Dow&nload…",
            lambda: self.download_wanted.emit(self.box.currentData()),
            "Show the licence, then download the official checkpoint",
        )
        self.vocoder = build.button("Vocoder…", self._ask_for_vocoder)
        self.load = build.button("Lo&ad", self._load)
        self.keep = build.button("&Keep", self._keep)
        self._official = build.row(self.folder, self.download)
        self._confirm = build.row(self.load, self.keep)
        build.fill(VBoxLayout(self), [self.box, self.note, self._official, self.vocoder, self._confirm]).setSpacing(
            NEAR
        )

    def show_models(self) -> None:
        """Say of each model whether its weights are there."""
        chosen = self._selection
        for index, one in enumerate(catalogue.MODELS):
            there = chosen.is_installed(one.id) or one.id == chosen.model_id
            self.box.setItemText(index, one.title if there else f"{one.title} (weights not installed)")

    def show_choice(self) -> None:
        """Show the chosen model, what it lacks, and how to load it."""
        chosen = self._selection
        entry, info, other = catalogue.entry(chosen.candidate or chosen.model_id), chosen.info, bool(chosen.candidate)
        missing = other and not chosen.is_installed(entry.id)
        self.box.setCurrentIndex(self.box.findData(entry.id))
        self._official.setVisible(not entry.bundled)
        self.vocoder.setVisible(entry.has_separate_vocoder and not missing)
        now = chosen.vocoder(entry.id) or f"{entry.vocoder}, its usual folder"
        self.vocoder.setToolTip(f"Load the model with the vocoder in another folder (now {now})")
        self._confirm.setVisible(other)
        self.load.setVisible(not missing)
        self.load.setToolTip(f"Load {entry.title} (Enter)")
        self.keep.setText(f"&Keep {chosen.entry.title}")
        self.keep.setToolTip(f"Choose {chosen.entry.title} again, which stays in use")
        details = ""
        if missing:
            note = (
                f"{entry.title} does not come with Paretone (licence of the weights: {entry.licence}). "
                "Choose the folder of its checkpoint, or download it."
            )
        elif info is None and chosen.loading and not other:
            note = f"Loading {entry.title}…"
        elif other or info is None:
            note = entry.summary
        else:
            note = (
                f"{fixed(info.parameters / 1e6, 1)} M parameters · {info.layers} layers · {info.precision} · "
                f"licence {info.licence}"
            )
            details = f"{info.checkpoint}\nSHA-256 {info.fingerprint}"
        self.note.setText(note)
        self.note.setToolTip(details)

    @Slot()
    def _load(self) -> None:
        chosen = self._selection
        model = chosen.candidate or chosen.model_id
        if chosen.is_installed(model) and (chosen.candidate or not chosen.ready):
            self.load_wanted.emit(model, "")

    @Slot()
    def _keep(self) -> None:
        self._selection.consider_model(self._selection.model_id)
        self.box.setFocus()

    @Slot()
    def _ask_for_folder(self) -> None:
        model = self.box.currentData()
        file_dialogs.ask_for_folder(self, CHECKPOINT_FOLDER, lambda folder: self.load_wanted.emit(model, str(folder)))

    @Slot()
    def _ask_for_vocoder(self) -> None:
        model = self.box.currentData()
        file_dialogs.ask_for_folder(self, VOCODER_FOLDER, lambda folder: self.vocoder_wanted.emit(model, str(folder)))
