"""The menu bar: which action is in which menu, and the choices of model, device and theme."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QMainWindow, QMenu

from app.actions import Actions
from app.layout import Docks
from app.theme import Scheme, Theme
from engine.models import catalogue

_SCHEMES = (
    (Scheme.SYSTEM, "As the &system", "Ctrl+Shift+T"),
    (Scheme.LIGHT, "&Light", "Ctrl+Shift+L"),
    (Scheme.DARK, "&Dark", "Ctrl+Shift+K"),
)


class Menus:
    """Fills the menu bar of ``window``; ``choose_model`` and ``choose_device`` are given the chosen one's id."""

    def __init__(
        self,
        window: QMainWindow,
        actions: Actions,
        docks: Docks,
        theme: Theme,
        choose_model: Callable[[str], object],
        choose_device: Callable[[str], object],
    ) -> None:
        self._theme = theme
        self._choose_device = choose_device
        self._devices: tuple[object, ...] = ()
        bar = window.menuBar()
        _fill(
            bar.addMenu("&File"),
            (actions.export_profile, actions.export_weights, actions.save_wav, actions.data_folder, None, actions.quit),
        )
        self._fill_model(bar.addMenu("&Model"), actions, choose_model)
        _fill(
            bar.addMenu("&Run"),
            (
                actions.baseline,
                actions.calibrate,
                actions.calibrate_on,
                actions.accelerated,
                None,
                actions.cancel,
            ),
        )
        _fill(
            bar.addMenu("&Compare"),
            (
                actions.compare,
                actions.play,
                actions.listening_test,
                None,
                actions.set_a,
                actions.set_b,
                actions.swap,
            ),
        )
        _fill(
            bar.addMenu("&Strategy"),
            (
                actions.undo,
                actions.redo,
                None,
                actions.import_table,
                actions.export_table,
                actions.skip_nothing,
            ),
        )
        self._fill_view(bar.addMenu("&View"), actions, docks)
        _fill(bar.addMenu("&Help"), (actions.first_steps, actions.keys, None, actions.about))

    def _fill_model(self, menu: QMenu, actions: Actions, choose: Callable[[str], object]) -> None:
        self._models = QActionGroup(menu)
        for entry in catalogue.MODELS:
            action = menu.addAction(entry.title)
            action.setCheckable(True)
            action.setData(entry.id)
            action.setToolTip(entry.summary)
            action.triggered.connect(lambda _=False, one=entry.id: choose(one))
            self._models.addAction(action)
        menu.addSeparator()
        self._device_menu = menu.addMenu("&Device")
        menu.addAction(actions.reload)

    def _fill_view(self, menu: QMenu, actions: Actions, docks: Docks) -> None:
        for index, (place, _) in enumerate(docks, start=1):
            shortcut = f"Alt+{index}" if index <= 9 else f"Ctrl+Alt+{index - 9}"
            go = actions.make(f"Go to {place.title}", f"Show the panel {place.title}", shortcut)
            go.triggered.connect(lambda _=False, one=place.name: docks.go_to(one))
            menu.addAction(go)
        menu.addAction(actions.message)
        shown = menu.addMenu("Shown &panels")
        for _, dock in docks:
            shown.addAction(dock.toggleViewAction())
        menu.addSeparator()
        themes = menu.addMenu("&Theme")
        self._schemes = QActionGroup(menu)
        for scheme, title, shortcut in _SCHEMES:
            action = themes.addAction(title)
            action.setShortcut(QKeySequence(shortcut))
            action.setCheckable(True)
            action.setData(scheme.value)
            action.triggered.connect(lambda _=False, one=scheme: self._theme.apply(one))
            self._schemes.addAction(action)
        menu.addAction(actions.unlock)
        menu.addAction(actions.default_layout)

    def refresh(self, model: str, may_choose: bool) -> None:
        """Tick the chosen model and theme; ``may_choose`` says whether another model can be loaded now."""
        for action in self._models.actions():
            action.setChecked(action.data() == model)
            action.setEnabled(may_choose)
        for action in self._schemes.actions():
            action.setChecked(action.data() == self._theme.scheme.value)

    def show_devices(self, devices: Sequence[str], wanted: str) -> None:
        """Offer ``devices``, of which ``wanted`` is chosen."""
        if self._devices == (*devices, wanted):
            return
        self._devices = (*devices, wanted)
        self._device_menu.clear()
        group = QActionGroup(self._device_menu)
        for name in ("auto", *devices):
            action = self._device_menu.addAction(name if name == "auto" else name.upper())
            action.setCheckable(True)
            action.setChecked(name == wanted)
            action.triggered.connect(lambda _=False, one=name: self._choose_device(one))
            group.addAction(action)


def _fill(menu: QMenu, actions: Iterable[QAction | None]) -> None:
    """Put ``actions`` into ``menu``, a separator for each ``None``."""
    for action in actions:
        menu.addSeparator() if action is None else menu.addAction(action)
