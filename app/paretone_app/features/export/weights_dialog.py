"""The dialog that exports a student or a draft: which one, and where it goes."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QLabel, QWidget

from paretone.models import catalogue
from paretone.models.base import DraftWeights, ModelInfo, StudentWeights
from paretone_app.features.export.destination import DestinationDialog
from paretone_app.features.export.folders import folder_problem
from paretone_app.features.export.model import technique_of
from paretone_app.state.differences import weights_title
from paretone_app.widgets import build
from paretone_app.widgets.boxes import ComboBox

STUDENT, DRAFT = "student", "draft"
_OFFICIAL = (
    "llm.pt and its configuration, which replace the release's: the official class loads them with this number of "
    "layers."
)
_HUGGING_FACE = "a Hugging Face checkpoint: AutoModelForCausalLM.from_pretrained loads it."


class WeightsDialog(DestinationDialog):
    """Asks for one of the loaded model's students and drafts, and a folder."""

    wanted = Signal(str, str, str)
    """The user wants weights of this kind in this file, written to this folder."""

    def __init__(self, info: ModelInfo, parent: QWidget | None = None) -> None:
        super().__init__("Export student or draft", parent)
        self._info = info
        self._by_hand = False
        self._found: tuple[StudentWeights | DraftWeights, ...] = (*info.students, *info.drafts)
        self.weights = build.named(ComboBox(), "Weights")
        for one in self._found:
            self.weights.addItem(weights_title(one), one.path)
            self.weights.setItemData(self.weights.count() - 1, one.path, Qt.ItemDataRole.ToolTipRole)
        self.path.setAccessibleName("Folder to write to")
        self.form.addRow("Model", QLabel(f"{info.title}, {info.layers} layers"))
        self.form.addRow("&Weights", self.weights)
        self.form.addRow("", self.summary)
        self.finish("&Folder")
        self.weights.currentIndexChanged.connect(self._show)
        self.path.textEdited.connect(self._type)
        self._show()

    @property
    def _chosen(self) -> StudentWeights | DraftWeights:
        return self._found[self.weights.currentIndex()]

    @Slot()
    def _show(self) -> None:
        """Describe what is chosen, and propose a folder for it unless the user has typed one."""
        chosen = self._chosen
        layers = ", ".join(map(str, chosen.retained))
        runs = technique_of(chosen, self._info) if _kind(chosen) == DRAFT else None
        settings = f" {runs.title.partition(' (')[0]}'s current settings are included." if runs is not None else ""
        holds = _OFFICIAL if catalogue.entry(self._info.id).official_exports else _HUGGING_FACE
        self.summary.setText(f"Layers {layers}. The folder will hold {holds}{settings}")
        if not self._by_hand:
            self.path.setText(self.proposed(f"{self._info.id}-{_kind(chosen)}-{len(chosen.retained)}"))
            self.path.selectAll()
        self.check()

    @Slot()
    def _type(self) -> None:
        self._by_hand = True

    def problem(self) -> tuple[str, str]:
        return folder_problem(self.path.text())

    def take(self, path: Path) -> None:
        self._by_hand = True
        super().take(path)

    @Slot()
    def export(self) -> None:
        chosen = self._chosen
        self.accept()
        self.wanted.emit(_kind(chosen), chosen.path, self.typed)


def _kind(weights: StudentWeights | DraftWeights) -> str:
    return STUDENT if isinstance(weights, StudentWeights) else DRAFT
