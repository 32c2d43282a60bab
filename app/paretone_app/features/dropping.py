"""Dropped files, and those named on the command line: identify them, show where they will go, and open them there."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from PySide6.QtCore import QEvent, QMimeData, QObject, QPoint, QRect, Qt
from PySide6.QtGui import QColor, QDragEnterEvent, QDropEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QLineEdit, QPlainTextEdit, QWidget

from paretone.audio.recording import SOUND
from paretone.errors import PlainError, TextError
from paretone.models import catalogue
from paretone.models.files import config_file
from paretone.reading import legible, named_first, printable, read_text
from paretone_app.features.presenter import Presenter, Services
from paretone_app.features.profiles import ProfilesPresenter
from paretone_app.features.setup.presenter import SetupPresenter
from paretone_app.features.studies.presenter import StudiesPresenter
from paretone_app.shell.colours import Colours
from paretone_app.shell.theme import GAP, HEADING, text_font

KNOWN = "a recording, a text, a profile, a study, or a folder with a model or a study"


class Target(Enum):
    VOICE = "Use as voice"
    TEXT = "Use as text"
    MODEL = "Load as"
    STUDY = "Open study"
    PROFILE = "Open profile"
    NOTHING = ""


_ENDINGS = dict.fromkeys(SOUND, Target.VOICE) | dict.fromkeys((".txt", ".text", ".md"), Target.TEXT)
_ENDINGS |= {".toml": Target.STUDY, ".json": Target.PROFILE, ".paretone": Target.PROFILE}


@dataclass(frozen=True)
class Dropped:
    target: Target
    sentence: str
    path: Path = Path()
    text: str = ""
    model: str = ""
    """Id of the model whose weights a folder holds."""


def dropped(paths: Sequence[Path], text: str, remote: bool = False) -> Dropped:
    """Classify dropped files, folders or ``text``; ``remote``: some of the addresses are on other computers."""
    if remote:
        return _refused("Only files of this computer can be dropped: save it first.")
    if len(paths) > 1:
        return _refused(f"Drop one thing at a time, not {len(paths)}.")
    if paths:
        from paretone_app.results.study import results_at  # Slow to import.

        if (results := results_at(paths[0])) is not None:
            return Dropped(Target.STUDY, Target.STUDY.value, results)
        return _of_folder(paths[0]) if paths[0].is_dir() else _of_file(paths[0])
    if text.strip():
        return Dropped(Target.TEXT, Target.TEXT.value, text=text)
    return _refused(f"There is nothing to use in this: drop {KNOWN}.")


def text_of(path: Path) -> str:
    """The text in a file. Raises :class:`TextError` if it cannot be read or is empty."""
    from paretone.front_end.speakable import LARGEST_TEXT, require_words  # Slow to import.

    with legible(TextError, "text", path):
        text = read_text(path, "utf-8-sig", LARGEST_TEXT)
    require_words(text)
    return text


def _of_file(path: Path) -> Dropped:
    ending = path.suffix.lower()
    # Setup refuses sound that cannot be read, with a reason.
    if target := _ENDINGS.get(ending):
        return Dropped(target, target.value, path)
    if ending in config_file.WEIGHTS:
        return _model(_folder_of(path))
    return _refused(f"{path.name} cannot be used here: Paretone opens {KNOWN}.")


def _of_folder(path: Path) -> Dropped:
    try:
        looked_at = [one for one, _ in zip(path.rglob("*"), range(2_000), strict=False)]
    except OSError as error:
        return _refused(f"The folder {path.name} cannot be read: {error.strerror or error}.")
    if any(one.suffix.lower() in config_file.WEIGHTS for one in looked_at):
        return _model(path)
    return _refused(f"There are neither weights nor a study in the folder {path.name}: Paretone opens {KNOWN}.")


def _model(folder: Path) -> Dropped:
    """A folder of weights, with the model recognised by its files and its name."""
    found = catalogue.recognised(folder)
    inner = [] if found else catalogue.within(folder)
    if len(inner) == 1:
        return _model(inner[0])
    if found is None:
        if config_file.is_lora(folder):
            return _refused(str(config_file.lora_error(folder)))
        names = named_first([one.name for one in inner], 5)
        other = f"drop one of its folders {names}" if inner else "choose the model in Setup first"
        return _refused(f"No model here recognises the weights in {folder.name}; {other}.")
    return Dropped(Target.MODEL, f"{Target.MODEL.value} {found.title}", folder, model=found.id)


def _folder_of(weights: Path) -> Path:
    """The model folder of a weight file, which may lie in a subfolder."""
    sure = (one for one in weights.parents[:3] if any(model.recognised(one) >= 1 for model in catalogue.models()))
    return next(sure, weights.parent)


def _refused(sentence: str) -> Dropped:
    return Dropped(Target.NOTHING, sentence)


_LINE, _ROUND = 3, 8


class DropOverlay(QWidget):
    def __init__(self, window: QWidget, colours: Colours) -> None:
        super().__init__(window, visible=False)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._window, self.colours, self.sentence, self.part = window, colours, "", QRect()

    def tell(self, sentence: str, part: QRect, colours: Colours) -> None:
        self.colours, self.sentence, self.part = colours, sentence, part
        self.setAccessibleName(sentence)
        self.setGeometry(self._window.rect())
        self.raise_()
        self.show()
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        veil = QColor(self.colours.base)
        veil.setAlpha(150)
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.fillRect(self.rect(), veil)
            painter.setPen(QPen(QColor(self.colours.accent), _LINE, Qt.PenStyle.DashLine))
            painter.drawRoundedRect(self.part.adjusted(_LINE, _LINE, -_LINE, -_LINE), _ROUND, _ROUND)
            painter.setFont(text_font(self.font(), HEADING))
            wrapped = Qt.AlignmentFlag.AlignCenter.value | Qt.TextFlag.TextWordWrap.value
            widest = min(self.width() - 4 * GAP, 44 * painter.fontMetrics().averageCharWidth())
            box = painter.boundingRect(QRect(0, 0, widest, self.height()), wrapped, self.sentence)
            box.adjust(-2 * GAP, -GAP, 2 * GAP, GAP)
            box.moveCenter(self.part.center())
            box.moveLeft(max(GAP, min(box.left(), self.width() - box.width() - GAP)))
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(self.colours.accent))
            painter.drawRoundedRect(box, _ROUND, _ROUND)
            painter.setPen(QColor(self.colours.on_accent))
            painter.drawText(box, wrapped, self.sentence)


class DroppingPresenter(Presenter):
    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._features = services.features
        self.overlay = DropOverlay(services.window, services.theme.colours)
        services.window.setAcceptDrops(True)
        services.window.installEventFilter(self)

    def panels_built(self) -> None:
        """Filter text fields too: they would insert the address of a dropped file as text."""
        lines = self._window.findChildren(QLineEdit)
        for one in (*lines, *(text.viewport() for text in self._window.findChildren(QPlainTextEdit))):
            one.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.DragLeave:
            self.overlay.hide()
        elif isinstance(event, QDropEvent) and (watched is self._window or event.mimeData().hasUrls()):
            if isinstance(event, QDragEnterEvent):
                found = _dropped(event.mimeData())
                self.overlay.tell(found.sentence, self._part(found.target), self._theme.colours)
            event.setDropAction(Qt.DropAction.CopyAction)  # A program that moves would delete the user's file.
            event.accept()
            if event.type() == QEvent.Type.Drop:
                found = _dropped(event.mimeData())
                self.overlay.hide()
                self._actions.attempt(lambda: self.use(found))
            return True
        return super().eventFilter(watched, event)

    def open(self, path: Path) -> None:
        """Use a file or folder as if it were dropped. Raises :class:`PlainError` if it cannot be used."""
        if not path.exists():
            raise PlainError(f"There is no file or folder {printable(str(path))}.")
        self.use(dropped([path], ""))

    def use(self, found: Dropped) -> None:
        """Take ``found`` where it belongs. Raises :class:`PlainError` if it cannot be used there."""
        match found.target:
            case Target.VOICE:
                self._workspaces.go_to("setup")
                self._features.find(SetupPresenter).setup.voice_choice.propose(found.path)
            case Target.TEXT:
                text = found.text or text_of(found.path)
                self._workspaces.go_to("setup")
                self._state.editing.set_text(text.strip())
            case Target.MODEL:
                self._workspaces.go_to("setup")
                self._features.find(SetupPresenter).load(found.model, str(found.path))
            case Target.STUDY:
                self._features.find(StudiesPresenter).open(found.path)
            case Target.PROFILE:
                self._features.find(ProfilesPresenter).open(found.path)
            case Target.NOTHING:
                self._notices.warn(found.sentence)

    def _part(self, target: Target) -> QRect:
        """Rectangle of the target's widget if visible, else of the whole window."""
        setup = self._features.find(SetupPresenter).setup
        parts: dict[Target, QWidget | None] = {
            Target.VOICE: setup.voice_choice,
            Target.TEXT: setup.text,
            Target.MODEL: setup.model_choice,
            Target.STUDY: self._workspaces.panels.get("studies"),
        }
        if (part := parts.get(target)) is None or part.visibleRegion().isEmpty():
            return self._window.rect()
        shown = part.visibleRegion().boundingRect().translated(part.mapTo(self._window, QPoint()))
        return shown.adjusted(-GAP, -GAP, GAP, GAP).intersected(self._window.rect())


def _dropped(data: QMimeData) -> Dropped:
    urls = data.urls()
    local = [Path(one.toLocalFile()) for one in urls if one.isLocalFile()]
    return dropped(local, "" if urls else data.text(), remote=len(local) < len(urls))
