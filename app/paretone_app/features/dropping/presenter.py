"""The presenter of drops, and of what the command line names: finds out what it is, shows where it will go, and takes
it there."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QEvent, QMimeData, QObject, QPoint, QRect, Qt
from PySide6.QtGui import QColor, QDragEnterEvent, QDropEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QLineEdit, QPlainTextEdit, QWidget

from paretone.errors import PlainError
from paretone.reading import printable
from paretone_app.features.dropping.model import Dropped, Target, dropped, text_of
from paretone_app.features.presenter import Presenter, Services
from paretone_app.features.profiles.presenter import ProfilesPresenter
from paretone_app.features.setup.presenter import SetupPresenter
from paretone_app.features.studies.presenter import StudiesPresenter
from paretone_app.shell.colours import Colours
from paretone_app.shell.theme import GAP, HEADING, text_font

_VEIL = 150
"""Opacity of what is laid over the rest of the window, of 255."""
_LINE, _ROUND = 3, 8
_CHARACTERS = 44
"""Of a line of the sentence."""


class DropOverlay(QWidget):
    """Covers the window, lets every event through, and takes part in nothing else."""

    def __init__(self, window: QWidget, colours: Colours) -> None:
        super().__init__(window, visible=False)
        self._window = window
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.colours = colours
        self.sentence = ""
        self.part = QRect()
        """The part of the window that is framed."""

    def tell(self, sentence: str, part: QRect) -> None:
        """Frame ``part`` of the window, and say what will happen."""
        self.sentence, self.part = sentence, part
        self.setAccessibleName(sentence)
        self.setGeometry(self._window.rect())
        self.raise_()
        self.show()
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        veil = QColor(self.colours.base)
        veil.setAlpha(_VEIL)
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.fillRect(self.rect(), veil)
            painter.setPen(QPen(QColor(self.colours.accent), _LINE, Qt.PenStyle.DashLine))
            painter.drawRoundedRect(self.part.adjusted(_LINE, _LINE, -_LINE, -_LINE), _ROUND, _ROUND)
            painter.setFont(text_font(self.font(), HEADING))
            wrapped = Qt.AlignmentFlag.AlignCenter.value | Qt.TextFlag.TextWordWrap.value
            widest = min(self.width() - 4 * GAP, _CHARACTERS * painter.fontMetrics().averageCharWidth())
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
    """Owns the frame over the window."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._features = services.features
        self.overlay = DropOverlay(services.window, services.theme.colours)
        services.window.setAcceptDrops(True)
        services.window.installEventFilter(self)

    def panels_built(self) -> None:
        """Watch lines and texts too, which take what is dropped on them themselves: of files, the address."""
        lines = self._window.findChildren(QLineEdit)
        for one in (*lines, *(text.viewport() for text in self._window.findChildren(QPlainTextEdit))):
            one.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow what is held over the window."""
        if event.type() == QEvent.Type.DragLeave:
            self.overlay.hide()
        elif isinstance(event, QDropEvent) and (watched is self._window or event.mimeData().hasUrls()):
            if isinstance(event, QDragEnterEvent):
                self._show(_dropped(event.mimeData()))
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

    def _show(self, found: Dropped) -> None:
        self.overlay.colours = self._theme.colours
        self.overlay.tell(found.sentence, self._part(found.target))

    def _part(self, target: Target) -> QRect:
        """The part of the window where it will go, if that is to be seen; else the whole window."""
        setup = self._features.find(SetupPresenter).setup
        parts: dict[Target, QWidget | None] = {
            Target.VOICE: setup.voice_choice,
            Target.TEXT: setup.text,
            Target.MODEL: setup.model_choice,
            Target.STUDY: self._workspaces.panels.get("studies"),
        }
        part = parts.get(target)
        if part is None or part.visibleRegion().isEmpty():
            return self._window.rect()
        shown = part.visibleRegion().boundingRect().translated(part.mapTo(self._window, QPoint()))
        return shown.adjusted(-GAP, -GAP, GAP, GAP).intersected(self._window.rect())


def _dropped(data: QMimeData) -> Dropped:
    urls = data.urls()
    local = [Path(one.toLocalFile()) for one in urls if one.isLocalFile()]
    return dropped(local, "" if urls else data.text(), remote=len(local) < len(urls))
