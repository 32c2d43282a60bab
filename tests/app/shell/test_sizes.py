"""One type scale and one spacing grid: nothing in the window has a size, a weight or a gap of its own."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QBoxLayout, QFormLayout, QGridLayout, QLayout, QWidget
from pytestqt.qtbot import QtBot

import paretone_app
from paretone_app.shell.colours import DARK, LIGHT, Colours
from paretone_app.shell.theme import GRID, TYPE_SCALE, WEIGHTS, style_sheet
from paretone_app.shell.window import MainWindow
from paretone_app.widgets import layouts
from tests.app.shell.fitting import faults, fill, unreadable
from tests.workload import only_in_full, workload

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
