"""The menu bar, and the pages of the Help menu. Features declare the menu entries of their actions."""

from collections.abc import Iterable, Sequence

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QAccessible, QAction, QActionGroup, QKeyEvent, QKeySequence
from PySide6.QtWidgets import (
    QAbstractButton,
    QDialog,
    QDockWidget,
    QLabel,
    QMainWindow,
    QMenu,
    QTextBrowser,
    QToolBar,
    QWidget,
)
from shiboken6 import isValid

from paretone import __version__
from paretone.models import catalogue
from paretone_app.features.feature import Feature, main_job
from paretone_app.shell.actions import Actions
from paretone_app.shell.entries import MenuPart, Region
from paretone_app.shell.theme import Scheme, Theme
from paretone_app.shell.workspaces import Workspaces
from paretone_app.widgets import build

_SCHEMES = (
    (Scheme.SYSTEM, "As the &system", "Ctrl+Shift+T"),
    (Scheme.LIGHT, "&Light", "Ctrl+Shift+L"),
    (Scheme.DARK, "&Dark", "Ctrl+Shift+K"),
)


class Menus:
    def __init__(
        self, window: QMainWindow, actions: Actions, workspaces: Workspaces, theme: Theme, parts: Iterable[MenuPart]
    ) -> None:
        self._theme = theme
        self._actions = actions
        self._devices: dict[str, QAction] = {}
        bar = window.menuBar()
        _fill(bar.addMenu("&File"), (actions.export_profile, actions.export_weights, None, actions.quit))
        _fill(bar.addMenu("&Edit"), (actions.undo, actions.redo))
        self._fill_model(bar.addMenu("&Model"), actions)
        _fill(bar.addMenu("&Run"), (actions.baseline, actions.accelerated, None, actions.queue, actions.cancel))
        _fill(bar.addMenu("&Compare"), (actions.compare, actions.play))
        view = bar.addMenu("&View")
        self._fill_view(view, actions, workspaces)
        _fill(bar.addMenu("&Help"), (actions.first_steps, actions.keys, None, actions.about))
        for part in parts:
            menu = next((one for one in bar.findChildren(QMenu) if one.title() == part.menu), None)
            if menu is None:
                menu = QMenu(part.menu, bar)
                around = next((one for one in bar.findChildren(QMenu) if one.title() == part.inside), None)
                bar.insertMenu(view.menuAction(), menu) if around is None else around.addMenu(menu)
            there = menu.actions()
            place = there.index(actions[part.after]) + 1 if part.after else len(there)
            if part.before:
                place = there.index(actions[part.before])
            following = there[place] if place < len(there) else None
            for name in part.actions:
                if following is None:
                    menu.addAction(actions[name]) if name else menu.addSeparator()
                else:
                    menu.insertAction(following, actions[name]) if name else menu.insertSeparator(following)

    def _fill_model(self, menu: QMenu, actions: Actions) -> None:
        self._models = QActionGroup(menu)
        for entry in catalogue.models():
            action = QAction(entry.title, menu, checkable=True)
            menu.addAction(action)
            action.setData(entry.id)
            action.setToolTip(entry.summary)
            action.triggered.connect(lambda _=False, one=entry.id: actions.model_wanted.emit(one))
            self._models.addAction(action)
        menu.addSeparator()
        self._device_menu = menu.addMenu("&Device")
        self._device_group = QActionGroup(self._device_menu)
        menu.addAction(actions.reload)

    def _fill_view(self, menu: QMenu, actions: Actions, workspaces: Workspaces) -> None:
        for workspace in workspaces.there:
            actions.workspace[workspace].triggered.connect(lambda _=False, one=workspace: workspaces.switch(one))
            menu.addAction(actions.workspace[workspace])
        panels = QMenu("&Go to", menu)
        menu.addMenu(panels)
        feet = (place for place in workspaces.bars if place.region is Region.FOOT)
        for index, place in enumerate((*(place for place, _ in workspaces), *feet), start=1):
            shortcut = f"Alt+{index}" if index <= 9 else f"Ctrl+Alt+{index - 9}" if index <= 18 else ""
            go = actions.make(f"Go to {place.title}", f"Show the panel {place.title}", shortcut)
            go.triggered.connect(lambda _=False, one=place.name: workspaces.go_to(one))
            panels.addAction(go)
        _fill(panels, (None, actions.next_region, actions.previous_region, actions.message))
        # Created in Python: wrappers of menus created by Qt do not last (see :mod:`paretone_app.shell.actions`).
        self._shown = QMenu("Shown &panels", menu)
        menu.addMenu(self._shown)
        self._workspaces = workspaces
        workspaces.changed.connect(self._offer_panels)
        self._offer_panels()
        menu.addAction(actions.maximise)
        themes = menu.addMenu("&Theme")
        self._schemes = QActionGroup(menu)
        for scheme, title, shortcut in _SCHEMES:
            action = QAction(title, themes, checkable=True, shortcut=QKeySequence(shortcut))
            themes.addAction(action)
            action.setData(scheme.value)
            action.triggered.connect(lambda _=False, one=scheme: self._theme.apply(one))
            self._schemes.addAction(action)
        menu.addAction(actions.unlock)
        menu.addAction(actions.default_layout)

    def _offer_panels(self) -> None:
        self._shown.clear()
        for _, dock in self._workspaces.shown:
            self._shown.addAction(dock.toggleViewAction())

    def refresh(self, model: str) -> None:
        """Tick the chosen model and theme."""
        for action in self._models.actions():
            action.setChecked(action.data() == model)
        for action in self._schemes.actions():
            action.setChecked(action.data() == self._theme.scheme.value)

    def show_devices(self, devices: Sequence[str], wanted: str) -> None:
        """Offer ``devices`` and tick ``wanted``. Earlier entries are hidden: deleting actions ends others' wrappers."""
        offered = ("auto", *devices)
        for name in offered:
            if name not in self._devices:
                made = QAction(name if name == "auto" else name.upper(), self._device_menu, checkable=True)
                made.triggered.connect(lambda _=False, one=name: self._actions.device_wanted.emit(one))
                self._device_menu.addAction(made)
                self._device_group.addAction(made)
                self._devices[name] = made
        for name, action in self._devices.items():
            action.setVisible(name in offered)
            action.setChecked(name == wanted)


def _fill(menu: QMenu, actions: Iterable[QAction | None]) -> None:
    for action in actions:
        menu.addSeparator() if action is None else menu.addAction(action)


_ENDS = (QEvent.Type.WindowDeactivate, QEvent.Type.Close)


class VisibleMnemonics(QObject):
    """Keeps Alt keys unique among visible panels, with priority for the focused one. Qt counts panels under other tabs
    as visible, so that a press of their Alt key only moves the focus between the two. While Alt is held, covered panels
    have no keys, and a key of several visible panels belongs to the focused one, else to the first; fixed bars get the
    rest. No panel uses a letter of the menu bar."""

    def __init__(self, window: QMainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._buttons: list[QAbstractButton] = []
        self._labels: list[tuple[QLabel, QWidget]] = []
        window.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        kind = event.type()
        if kind in _ENDS:
            self._give_back()
        elif isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Alt:
            if kind is QEvent.Type.KeyRelease:
                self._give_back()
            elif kind is QEvent.Type.ShortcutOverride and not event.isAutoRepeat():
                # For screen readers Qt sends keys once more, without their time, after what they did. Of Alt that would
                # open the menu bar.
                if QAccessible.isActive() and not event.timestamp():
                    return True
                self._take()
        return False

    def _take(self) -> None:
        self._give_back()
        focus = self._window.focusWidget()
        found: list[QWidget] = [*self._window.findChildren(QDockWidget), *self._window.findChildren(QToolBar)]
        docks = [one for one in found if one.isVisible()]
        seen = [one for one in docks if not one.visibleRegion().isEmpty()]
        seen.sort(key=lambda one: focus is None or not one.isAncestorOf(focus))
        reserved: set[QKeySequence] = set()
        for dock in (*seen, *(one for one in docks if one not in seen)):
            labels = [one for one in dock.findChildren(QLabel) if one.buddy() is not None]
            both: list[QAbstractButton | QLabel] = [*dock.findChildren(QAbstractButton), *labels]
            labelled = [one for one in both if not _key(one).isEmpty()]
            for one in labelled:
                if dock in seen and _key(one) not in reserved:
                    continue
                if isinstance(one, QLabel):
                    self._labels.append((one, one.buddy()))
                    one.setBuddy(None)  # type: ignore[arg-type]  # As Qt documents it; PySide's declaration omits it.
                elif one.shortcut() == _key(one):
                    self._buttons.append(one)
                    one.setShortcut(QKeySequence())
            reserved.update(_key(one) for one in labelled if one.isVisible())

    def _give_back(self) -> None:
        for button in filter(isValid, self._buttons):
            button.setShortcut(_key(button))
        for label, buddy in self._labels:
            if isValid(label) and isValid(buddy):
                label.setBuddy(buddy)
        self._buttons, self._labels = [], []


def _key(one: QAbstractButton | QLabel) -> QKeySequence:
    return QKeySequence.mnemonic(one.text())


_FIRST_STEPS = """
<h3>What Paretone does</h3>
<p>Much of the computation in diffusion text-to-speech hardly changes from step to step. Techniques find what can be
skipped, and Paretone lets you hear what that costs.</p>
"""


def show_first_steps(window: QWidget, features: Iterable[Feature]) -> None:
    features = tuple(features)
    steps = "".join(f"<li>{step.meaning}</li>" for step in main_job(features))
    about = "".join(f"<p>{one.about}</p>" for one in features if one.about)
    _show_page(window, "First steps", f"{_FIRST_STEPS}<ol>{steps}</ol>{about}")


def show_about(window: QWidget, machine: str) -> None:
    _show_page(
        window,
        "About Paretone",
        f"<h3>Paretone {__version__}</h3><p>{machine or 'The engine is still starting.'}</p>"
        "<p>Licence: Apache-2.0. The weights of each model have their own licence, shown in Setup.</p>",
    )


def _show_page(window: QWidget, title: str, html: str) -> None:
    dialog = QDialog(window)
    dialog.setWindowTitle(title)
    page = build.named(QTextBrowser(), title)
    page.setHtml(html)
    build.above_close(dialog, page)
    unit = window.fontMetrics().height()
    page.document().setTextWidth(30 * unit)
    # Short pages fit their text; long ones scroll.
    dialog.resize(34 * unit, min(round(page.document().size().height()) + 6 * unit, 36 * unit))
    build.show(dialog)
