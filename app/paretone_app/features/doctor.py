"""Doctor: a dialog that checks the installation, and the status bar's button that names the device."""

from dataclasses import replace
from html import escape
from pathlib import Path

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QGuiApplication, QResizeEvent
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QSizePolicy, QTextBrowser, QToolButton, QWidget

from paretone.computing import Computing
from paretone.doctor import GOOD, NOTE, PROBLEM, Check, as_text, examine, shareable
from paretone.session.events import EngineReady, Event
from paretone_app.features.presenter import Presenter, Services
from paretone_app.shell.bridge import Background
from paretone_app.shell.colours import Colours
from paretone_app.shell.theme import set_look
from paretone_app.widgets import build


class ComputingButton(QToolButton):
    """As wide as its text; elided if there is no room."""

    def __init__(self) -> None:
        super().__init__()
        self.line = ""
        """Everything; the button shows the device alone."""
        self._brief = ""
        self.setAutoRaise(True)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.hide()

    def show_computing(self, found: Computing | None) -> None:
        """Show the device; hide until it is known."""
        self.line = found.line if found is not None else ""
        self.setVisible(bool(self.line))
        if found is None:
            return
        self._brief = f"{found.device} · no GPU" if found.lacking else found.device
        advice = f"{found.advice[0].upper()}{found.advice[1:]}\n" if found.advice else ""
        self.setToolTip(f"{found.line}\n{advice}Press for everything about this installation.")
        self.setAccessibleName(f"Computing with {found.line}")
        self.setAccessibleDescription(found.advice)
        set_look(self, "alarm" if found.idle else "quiet")
        self.updateGeometry()
        self._fit()

    def sizeHint(self) -> QSize:
        room = super().sizeHint().width() - self.fontMetrics().horizontalAdvance(self.text())
        return QSize(self.fontMetrics().horizontalAdvance(self._brief) + room, super().sizeHint().height())

    def minimumSizeHint(self) -> QSize:
        return QSize(8 * self.fontMetrics().height(), super().sizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        room = super().sizeHint().width() - self.fontMetrics().horizontalAdvance(self.text())
        wide = self.width() >= self.sizeHint().width()
        cut = self.fontMetrics().elidedText(self._brief, Qt.TextElideMode.ElideRight, self.width() - room)
        self.setText(self._brief if wide else cut)


_MARKS = {GOOD: "✓", NOTE: "–", PROBLEM: "✗"}


class DoctorDialog(QDialog):
    def __init__(self, colours: Colours, folder: Path, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._colours, self._folder = colours, folder
        self._checks: tuple[Check, ...] = ()
        self.setWindowTitle("Check installation")
        self.page = build.named(QTextBrowser(), "Findings")
        self.page.setHtml("<p>Looking…</p>")
        buttons = build.above_close(self, (self.page, 1))
        self.copy_button = buttons.addButton("&Copy for a bug report", QDialogButtonBox.ButtonRole.ActionRole)
        self.copy_button.setToolTip("Copy these lines without any folder of yours")
        self.copy_button.setEnabled(False)
        self.copy_button.clicked.connect(self._copy)
        em = self.fontMetrics().height()
        self.resize(44 * em, 34 * em)

    def show_findings(self, checks: tuple[Check, ...]) -> None:
        self._checks = checks
        inks = {GOOD: self._colours.good, NOTE: self._colours.muted, PROBLEM: self._colours.danger}
        rows = []
        for one in self._checks:
            mark = f'<span style="color:{inks[one.state]}">{_MARKS[one.state]}</span>'
            advice = f"<br><i>{escape(one.advice)}</i>" if one.advice else ""
            said = f"<b>{escape(one.name)}</b>: {escape(one.found)}{advice}"
            rows.append(f"<tr><td>{mark}&nbsp;</td><td>{said}</td></tr>")
        self.page.setHtml(f"<table cellspacing='0' cellpadding='3'>{''.join(rows)}</table>")
        self.copy_button.setEnabled(True)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(as_text(shareable(self._checks, self._folder)))
        self.copy_button.setText("Copied")


class DoctorPresenter(Presenter):
    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._background: Background | None = None
        self._actions.bind(self._actions["doctor"], self.look)
        self._shown: Computing | None = None
        self.button = ComputingButton()
        self.button.clicked.connect(self._actions["doctor"].trigger)
        services.status.add(self.button)

    @property
    def dialog(self) -> DoctorDialog | None:
        return self._opened(DoctorDialog)

    def follow(self, event: Event) -> None:
        """Ask what to do if a graphics card is present but unused."""
        if isinstance(event, EngineReady) and (found := event.computing) is not None and found.idle:
            question = f"Models run on the processor, not on {found.idle}: {found.lacking}."
            self._notices.ask(question, ("What to do…",), lambda _: self.look())

    def refresh(self) -> None:
        """Show the device, and whether the user chose the processor over a graphics card."""
        found, info = self._state.machine.computing, self._state.selection.info
        if found is not None and not found.lacking and info is not None and info.device_type == "cpu":
            found = replace(found, device=info.device, lacking=f"the processor is chosen, not {found.device}")
        if found != self._shown:
            self._shown = found
            self.button.show_computing(found)

    def look(self) -> None:
        folder = self._results.library.folder.parent
        dialog = DoctorDialog(self._theme.colours, folder, self._window)
        build.show(dialog)
        self.shut_down()
        devices, self._background = self._state.machine.devices, Background("doctor", self)
        self._background.run(lambda: examine(devices, folder), lambda found: self._show(dialog, found))

    def _show(self, dialog: DoctorDialog, found: tuple[Check, ...] | BaseException) -> None:
        self.shut_down()  # One thread per check.
        if isinstance(found, BaseException):
            raise found
        if self.dialog is dialog:
            dialog.show_findings(found)

    def shut_down(self) -> None:
        if self._background is not None:
            self._background.shut_down(wait=False)
            self._background.deleteLater()
        self._background = None
