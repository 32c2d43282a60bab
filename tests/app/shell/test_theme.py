"""Colours can be read by everyone (WCAG 2.2 AA); one type scale, one spacing grid: nothing has a size of its own."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from PySide6.QtCore import QAbstractAnimation, Qt
from PySide6.QtGui import QColor, QIcon, QImage, QPalette
from PySide6.QtWidgets import (
    QApplication,
    QBoxLayout,
    QDialogButtonBox,
    QFormLayout,
    QGridLayout,
    QLabel,
    QLayout,
    QLineEdit,
    QProgressBar,
    QProxyStyle,
    QStyle,
    QWidget,
)
from pytestqt.qtbot import QtBot

import paretone_app
from paretone.paths import resource
from paretone_app.shell.colours import DARK, LIGHT, ON_GROUND, Colours
from paretone_app.shell.theme import (
    EMBLEM,
    GRID,
    TYPE_SCALE,
    WEIGHTS,
    Scheme,
    Theme,
    icon,
    palette,
    pixmap,
    set_look,
    style_sheet,
)
from paretone_app.shell.window import MainWindow
from paretone_app.widgets import layouts
from tests.app.conftest import on_screen
from tests.app.contrast import contrast
from tests.app.shell.fitting import faults, fill, unreadable
from tests.workload import only_in_full, workload

BOTH = pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])


@BOTH
def test_text_and_meaning_have_contrast(colours: Colours, qtbot: QtBot) -> None:
    meanings = product(("accent", "good", "warning", "danger", "baseline", "accelerated"), ("window", "base"))
    for ink, ground in (*product(("text", "muted"), ("window", "base", "raised")), *meanings):
        assert contrast(getattr(colours, ink), getattr(colours, ground)) >= 4.5, (ink, ground)
    assert contrast(colours.on_accent, colours.accent) >= 4.5
    assert contrast(colours.disabled, colours.window) >= 3
    disabled = palette(colours).color(QPalette.ColorGroup.Disabled, QPalette.ColorRole.Text)
    assert contrast(disabled.name(), colours.base) >= 3
    bar = QProgressBar(value=100, format="")
    bar.setStyleSheet(style_sheet(colours))
    qtbot.addWidget(bar)
    bar.resize(200, 24)
    done = bar.grab().toImage().pixelColor(100, 12).name()
    assert contrast(colours.text, done) >= 4.5
    assert contrast(done, colours.base) >= 2, "what is done stands out from what is not"


def test_the_scheme_changes_palette_and_plots(theme: Theme, qapp: QApplication) -> None:
    changes = []
    theme.changed.connect(lambda: changes.append(theme.colours))
    for scheme, colours in ((Scheme.DARK, DARK), (Scheme.LIGHT, LIGHT)):
        theme.apply(scheme)
        assert theme.dark is (scheme is Scheme.DARK)
        assert qapp.palette().color(QPalette.ColorRole.Window) == QColor(colours.window)
    assert changes == [DARK, LIGHT]


def test_a_look_can_change_after_it_was_shown(theme: Theme, qtbot) -> None:
    theme.apply(Scheme.LIGHT)
    label = on_screen(QLabel("a sentence"), qtbot)
    for look in ("warning", "good"):
        set_look(label, look)
        assert label.palette().color(QPalette.ColorRole.WindowText) == QColor(getattr(LIGHT, look))


class Drawn(QProxyStyle):
    def styleHint(self, hint, *rest) -> int:
        return 1 if hint is QStyle.StyleHint.SH_DialogButtonBox_ButtonsHaveIcons else super().styleHint(hint, *rest)


def test_buttons_of_dialogs_have_no_drawings_of_the_desktop(theme: Theme, qtbot: QtBot) -> None:
    style, box = Drawn("Fusion"), QDialogButtonBox()
    qtbot.addWidget(box)
    box.setStyle(style)
    theme.apply(Scheme.DARK)
    box.setStandardButtons(QDialogButtonBox.StandardButton.Yes | QDialogButtonBox.StandardButton.Close)
    assert box.buttons() and all(one.icon().isNull() for one in box.buttons())
    theme.apply(Scheme.LIGHT)


def covered(image: QImage) -> set[tuple[int, int, int]]:
    pixels = (image.pixelColor(x, y) for x in range(image.width()) for y in range(image.height()))
    return {(one.red(), one.green(), one.blue()) for one in pixels if one.alpha() == 255}


@pytest.mark.parametrize("name", sorted({one.stem for one in resource("icons").glob("*.svg")} - {EMBLEM}))
def test_every_icon_draws_something_in_the_colour_asked_for(qapp, name: str) -> None:
    svg = resource("icons", f"{name}.svg").read_text(encoding="utf-8")
    assert set(re.findall(r'(?:fill|stroke)="([^"]+)"', svg)) <= {"none", "currentColor"}
    image = pixmap(name, "#12c830", 48).toImage()
    assert covered(image) == {(0x12, 0xC8, 0x30)}
    inside = [(x, y) for x in range(48) for y in range(48) if image.pixelColor(x, y).alpha()]
    assert min(map(min, inside)) >= 2 and max(map(max, inside)) <= 45


@BOTH
def test_icons_take_the_colours_of_the_palette(qapp, colours) -> None:
    made, role, group = palette(colours), QPalette.ColorRole, QPalette.ColorGroup
    for mode, state, expected in (
        (QIcon.Mode.Normal, QIcon.State.Off, made.color(group.Active, role.ButtonText)),
        (QIcon.Mode.Normal, QIcon.State.On, QColor(ON_GROUND)),
        (QIcon.Mode.Disabled, QIcon.State.Off, made.color(group.Disabled, role.ButtonText)),
    ):
        assert covered(icon("stop", made).pixmap(32, mode, state).toImage()) == {expected.getRgb()[:3]}


_OURS = (layouts.VBoxLayout, layouts.HBoxLayout, layouts.GridLayout, layouts.FormLayout)


def _gaps(layout: QLayout) -> Iterator[int]:
    margins = layout.contentsMargins()
    yield from (margins.left(), margins.top(), margins.right(), margins.bottom())
    if isinstance(layout, (QGridLayout, QFormLayout)):
        yield from (layout.horizontalSpacing(), layout.verticalSpacing())
    else:
        yield layout.spacing()
    for index in range(layout.count()):
        item = layout.itemAt(index)
        if isinstance(layout, QBoxLayout) and (spacer := item.spacerItem()) is not None:
            along = layout.direction() in (QBoxLayout.Direction.LeftToRight, QBoxLayout.Direction.RightToLeft)
            yield spacer.sizeHint().width() if along else spacer.sizeHint().height()
        if (inner := item.layout()) is not None:
            yield from _gaps(inner)


def _off_scale(window: MainWindow) -> Iterator[str]:
    """What of the window has a font or a gap that is not of the scale or on the grid."""
    usual = QApplication.font().pointSizeF()
    for one in (window, *window.findChildren(QWidget)):
        name = f"{type(one).__name__} {one.accessibleName() or one.objectName()}"
        font, layout = one.font(), one.layout()
        if not any(font.pointSizeF() == pytest.approx(share * usual, abs=0.06) for share in TYPE_SCALE):
            yield f"{name}: {font.pointSizeF():g} pt"
        if font.weight() not in WEIGHTS:
            yield f"{name}: weight {font.weight()}"
        if isinstance(layout, _OURS):
            yield from (f"{name}: {gap} px" for gap in _gaps(layout) if gap not in GRID)


def test_no_code_sets_a_size_or_a_gap_by_a_figure() -> None:
    gaps = {"setContentsMargins", "setSpacing", "setHorizontalSpacing", "setVerticalSpacing", "addSpacing"}
    fonts = {"setBold", "setPointSize", "setPointSizeF"}
    found = []
    for path in Path(paretone_app.__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            figures = any(isinstance(one, ast.Constant) and one.value for one in node.args)
            own_size = called in fonts and path.name not in ("theme.py", "words.py")
            own_layout = called in ("QVBoxLayout", "QHBoxLayout", "QGridLayout", "QFormLayout")
            if (called in gaps and figures) or own_size or own_layout:
                found.append(f"{path.name}:{node.lineno} {called}")
    assert not found


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_the_style_sheet_is_on_the_scale_and_the_grid(colours: Colours, qapp: QApplication) -> None:
    sheet, usual = style_sheet(colours), QApplication.font().pointSizeF()
    sizes = {float(size) / usual for size in re.findall(r"font-size: ([\d.]+)pt", sheet)}
    assert sizes and all(any(size == pytest.approx(share, abs=0.01) for share in TYPE_SCALE) for size in sizes)
    assert set(map(int, re.findall(r"font-weight: (\d+)", sheet))) == set(WEIGHTS)
    still = re.sub(r"[^{}]*:focus[^{}]*{[^}]*}", "", sheet)  # A wider border takes its pixel from the padding.
    paddings = {
        int(px) for one in re.findall(r"padding(?:-\w+)?: ([^;]+);", still) for px in re.findall(r"(\d+)px", one)
    }
    assert paddings <= set(GRID)


def test_text_and_gaps_of_every_workspace_are_on_the_scale_and_the_grid(shared_window: MainWindow) -> None:
    window = shared_window
    for workspace in window.workspaces.there:
        window.workspaces.switch(workspace)
        for place, _ in window.workspaces.shown:
            window.workspaces.go_to(place.name)
        assert not sorted(set(_off_scale(window)))
    assert sum(isinstance(one.layout(), _OURS) for one in window.findChildren(QWidget)) > 40
    effects = Qt.UIEffect.UI_AnimateMenu, Qt.UIEffect.UI_AnimateCombo, Qt.UIEffect.UI_AnimateTooltip
    for field in [one for one in window.findChildren(QLineEdit) if one.isClearButtonEnabled() and not one.text()]:
        field.setText("x")  # Qt would fade its button in.
        assert not {
            one.duration() for one in field.findChildren(QAbstractAnimation) if one.state() is one.State.Running
        }
        field.clear()
    moving = {one.duration() for one in window.findChildren(QAbstractAnimation) if one.state() is not one.State.Stopped}
    assert not any(map(QApplication.isEffectEnabled, effects)) and moving <= {0}, "nothing moves by itself"


def test_every_panel_fits_small_and_usual_screens(shared_window: MainWindow, qtbot: QtBot) -> None:
    window = shared_window
    fill(window, lambda: qtbot.wait(1))
    # The layout of the first start at both sizes, then a window that gets smaller and larger while it is used.
    whole = [(1024, 768, True), (1440, 900, True), (1024, 768, False), (1440, 900, False), (1024, 768, False)]
    for width, height, as_new in workload(whole, [(1024, 768, True), (1440, 900, False)]):
        window.resize(width, height)
        if as_new:
            window.workspaces.default_layout()
        for _ in range(10):
            QApplication.processEvents()
        assert faults(window) == [], (width, height, as_new)
        assert unreadable(window) == [], (width, height, as_new)
        least = window.minimumSizeHint()
        assert least.width() <= 1024 and least.height() <= 700


@only_in_full("repetitions")
@pytest.mark.parametrize(
    ("scale", "size", "letters"),
    [("1.5", (1920, 1080), "1.15"), ("1.5", (1920, 1080), "1"), ("1.25", (1280, 960), "1"), ("2", (2048, 1536), "1")],
)
def test_every_panel_fits_a_scaled_screen(tmp_path: Path, scale: str, size: tuple[int, int], letters: str) -> None:
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "QT_SCALE_FACTOR": scale}
    command = [sys.executable, "-m", "tests.app.shell.fitting", str(tmp_path), *map(str, size), letters]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == ""
