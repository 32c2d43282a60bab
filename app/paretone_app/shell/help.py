"""The pages of the Help menu: first steps, every shortcut, and what this is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QMainWindow, QMenu, QTextBrowser, QWidget

from paretone import __version__
from paretone_app.features.feature import Feature, main_job
from paretone_app.widgets import build
from paretone_app.widgets.action import Action
from paretone_app.widgets.layouts import VBoxLayout

_PAGE_WIDTH, _PAGE_HEIGHT = 34, 36
"""Of a page, at most, in heights of the font."""
_EVERYWHERE = (
    ("Plots: copy as table; show as table", "Ctrl+C; T"),
    ("Everywhere: next and previous control", "Tab, Shift+Tab"),
)

_FIRST_STEPS = """
<h3>What Paretone does</h3>
<p>Much of the computation in diffusion text-to-speech hardly changes from step to step. Techniques find what can be
skipped, and Paretone lets you hear what that costs.</p>
"""


def show_first_steps(window: QWidget, features: Iterable[Feature]) -> None:
    """Show what Paretone does, and what its panels are for."""
    features = tuple(features)
    steps = "".join(f"<li>{step.meaning}</li>" for step in main_job(features))
    about = "".join(f"<p>{one.about}</p>" for one in features if one.about)
    _show_page(window, "First steps", f"{_FIRST_STEPS}<ol>{steps}</ol>{about}")


def show_keys(window: QMainWindow, features: Iterable[Feature]) -> None:
    """Every action of ``window`` that has a shortcut everywhere in it, in the order of the menus, and the keys of the
    panels."""
    everywhere = []
    # Not by QAction.menu(): such a wrapper of a menu is valid only as long as that of the action.
    menus = {one.menuAction(): one for one in window.menuBar().findChildren(QMenu)}
    for action in dict.fromkeys((*_entries(window.menuBar(), menus), *window.findChildren(QAction))):
        keys = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
        if keys and action.shortcutContext() is Qt.ShortcutContext.WindowShortcut:
            everywhere.append((action.title if isinstance(action, Action) else action.text().replace("&", ""), keys))
    panels = [
        (f"{feature.places[0].title}: {what}", keys)
        for feature in features
        if feature.places
        for what, keys in feature.keys
    ]
    _show_page(
        window,
        "Keyboard",
        f"<h3>Keyboard</h3>{_table(everywhere)}<h3>In the panels</h3>{_table([*panels, *_EVERYWHERE])}",
    )


def _entries(menu: QWidget, menus: Mapping[QAction, QMenu]) -> Iterator[QAction]:
    """The actions in a menu and in the menus that it opens, of which ``menus`` are all, by what opens them."""
    for action in menu.actions():
        if action in menus:
            yield from _entries(menus[action], menus)
        else:
            yield action


def _table(rows: Sequence[tuple[str, str]]) -> str:
    body = "".join(f"<tr><td style='padding-right:2em'>{name}</td><td><b>{keys}</b></td></tr>" for name, keys in rows)
    return f"<table>{body}</table>"


def show_about(window: QWidget, machine: str) -> None:
    """Version, ``machine`` and licences."""
    _show_page(
        window,
        "About Paretone",
        f"<h3>Paretone {__version__}</h3><p>{machine or 'The engine is still starting.'}</p>"
        "<p>Licence: Apache-2.0. The weights of each model have their own licence, shown in Setup.</p>",
    )


def _show_page(window: QWidget, title: str, html: str) -> None:
    dialog = QDialog(window)
    dialog.setWindowTitle(title)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    page = build.named(QTextBrowser(), title)
    page.setHtml(html)
    buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
    buttons.rejected.connect(dialog.close)
    layout = VBoxLayout(dialog)
    layout.addWidget(page)
    layout.addWidget(buttons)
    unit = window.fontMetrics().height()
    width, most = unit * _PAGE_WIDTH, unit * _PAGE_HEIGHT
    page.document().setTextWidth(width - 4 * unit)
    # As high as the text, if that is short; long pages scroll.
    dialog.resize(width, min(round(page.document().size().height()) + 6 * unit, most))
    dialog.open()
