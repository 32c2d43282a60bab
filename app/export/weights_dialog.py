"""The dialog that exports a student or a draft: which one, and where it goes."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QDir, Qt, Signal, Slot
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.export.folders import folder_problem
from app.theme import set_look
from engine.models import catalogue
from engine.models.base import DraftWeights, ModelInfo, StudentWeights

STUDENT, DRAFT = "student", "draft"
_OFFICIAL = (
    "llm.pt and its configuration, which take the places of the release's: the official class loads them with so many "
    "layers."
)
_HUGGING_FACE = "a Hugging Face checkpoint: AutoModelForCausalLM.from_pretrained loads it."


class WeightsDialog(QDialog):
    """Asks for one of the loaded model's students and drafts, and a folder. Opened with ``open()``."""

    wanted = Signal(str, str, str)
    """The user wants weights of this kind in this file, written to this folder."""

    def __init__(self, info: ModelInfo, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._info = info
        self._typed = False
        self.setWindowTitle("Export student or draft")
        self._found: tuple[StudentWeights | DraftWeights, ...] = (*info.students, *info.drafts)
        self.weights = QComboBox()
        self.weights.setAccessibleName("Which weights")
        for one in self._found:
            self.weights.addItem(_title(one), one.path)
            self.weights.setItemData(self.weights.count() - 1, one.path, Qt.ItemDataRole.ToolTipRole)
        self._summary = QLabel(wordWrap=True)
        set_look(self._summary, "muted")
        self.path = QLineEdit()
        self.path.setAccessibleName("Folder to write to")
        browse = QPushButton("&Browse…")
        browse.setAutoDefault(False)
        browse.clicked.connect(self._browse)
        row = QHBoxLayout()
        row.addWidget(self.path, 1)
        row.addWidget(browse)
        form = QFormLayout()
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        form.addRow("Model", QLabel(f"{info.title}, {info.layers} layers"))
        form.addRow("&Weights", self.weights)
        form.addRow("", self._summary)
        form.addRow("&Folder", row)
        form.labelForField(row).setBuddy(self.path)
        self.note = QLabel(wordWrap=True)
        set_look(self.note, "warning")
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        self.export_button = buttons.addButton("&Export", QDialogButtonBox.ButtonRole.AcceptRole)
        self.export_button.setProperty("look", "primary")
        buttons.accepted.connect(self._export)
        buttons.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        layout.addLayout(form)
        layout.addWidget(self.note)
        layout.addWidget(buttons)
        self.setMinimumWidth(self.fontMetrics().height() * 34)
        self.export_button.setDefault(True)
        self.weights.currentIndexChanged.connect(self._show)
        self.path.textEdited.connect(self._type)
        self._show()
        self.path.setFocus()

    @property
    def _chosen(self) -> StudentWeights | DraftWeights:
        return self._found[self.weights.currentIndex()]

    @Slot()
    def _show(self) -> None:
        """Describe what is chosen, and propose a folder for it unless the user has typed one."""
        chosen = self._chosen
        layers = ", ".join(map(str, chosen.retained))
        settings = " SSD's present settings go with it." if _kind(chosen) == DRAFT else ""
        holds = _OFFICIAL if catalogue.entry(self._info.id).loader == "cosyvoice2" else _HUGGING_FACE
        self._summary.setText(f"Layers {layers}. The folder will hold {holds}{settings}")
        if not self._typed:
            name = f"{self._info.id}-{_kind(chosen)}-{len(chosen.retained)}"
            self.path.setText(str(Path(QDir.homePath()) / name))
            self.path.selectAll()
        self._check()

    @Slot()
    def _type(self) -> None:
        self._typed = True
        self._check()

    @Slot()
    def _check(self) -> None:
        problem, remark = folder_problem(self.path.text())
        self.export_button.setEnabled(not problem)
        self.note.setText(problem or remark)

    @Slot()
    def _browse(self) -> None:
        dialog = QFileDialog(self, "Export student or draft", self.path.text())
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(self._take)
        dialog.open()

    @Slot(str)
    def _take(self, path: str) -> None:
        self.path.setText(path)
        self._type()

    @Slot()
    def _export(self) -> None:
        chosen = self._chosen
        self.accept()
        self.wanted.emit(_kind(chosen), chosen.path, self.path.text().strip())


def _kind(weights: StudentWeights | DraftWeights) -> str:
    return STUDENT if isinstance(weights, StudentWeights) else DRAFT


def _title(weights: StudentWeights | DraftWeights) -> str:
    if isinstance(weights, DraftWeights):
        return f"Draft with {len(weights.retained)} layers"
    learnt = f"{weights.minutes:.0f} min of learning" if weights.minutes else "not recovered"
    return f"Student with {weights.depth} layers, {learnt}"
