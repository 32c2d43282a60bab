"""Four points in the trade-off panel, and the panel in the window."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from pytestqt.qtbot import QtBot

from paretone_app.features.tradeoff import FEATURE
from paretone_app.features.tradeoff.panel import TradeoffPanel
from paretone_app.features.tradeoff.scene import PlotOptions
from paretone_app.results.points import Point, Sound
from paretone_app.shell.colours import LIGHT
from paretone_app.shell.window import MainWindow
from paretone_app.widgets.action import Action
from tests.app.features.tradeoff.test_scene import FAST, PLAIN, point

SENTENCES = ["One sentence.", "Another one."]
SHOWN = PlotOptions(x="ops_ratio", y="log_mel_distance")
STAYS = 3_600_000
"""Milliseconds for which the front, whose sounds are a tenth of a second long here, does not go on by itself."""
SOUNDS = (Sound("1" * 32, "One sentence.", "anna", 0), Sound("2" * 32, "Another one.", "bella", 0))
POINTS = (
    point("a", 1.0, 4.0, sounds=SOUNDS, techniques=("ditreducio",), setting=FAST.bare),
    point("b", 2.0, 2.0, sounds=SOUNDS[:1], techniques=("ditreducio", "steps")),
    point("c", 4.0, 1.0, sounds=SOUNDS, setting=PLAIN.bare),
    point("d", 3.0, 4.0, sounds=(), techniques=("steps",)),
)


def panel_of(published: Sequence[Point] = ()) -> TradeoffPanel:
    can = {one.name: Action(one.text, checkable=one.checkable) for one in FEATURE.actions}
    return TradeoffPanel(LIGHT, {**can, "open": Action("Open")}, published)


def choose_look(panel: TradeoffPanel, options: PlotOptions) -> None:
    """Choose ``options`` as the user does, in their line."""
    line = panel.options_line
    line.show_options(options, panel.pool.axes)
    line.own_axes = True
    line.chosen.emit()


def showing(window: MainWindow, results: Path, qtbot: QtBot) -> MainWindow:
    """The window with the view in front, in which are the study and the library."""
    window.activateWindow()
    window.workspaces.go_to("tradeoff")
    window.features["tradeoff"].open_study(results)
    # Four settings and two takes; of takes that are baselines, too, the distance is known.
    qtbot.waitUntil(lambda: window.panels["tradeoff"].pool.own.sum() == 6)
    # Studies opens it as well, whereupon it is read once more: not in the middle of a test.
    studies, results = window.features["studies"], window.results
    qtbot.waitUntil(lambda: studies.summary is not None and not results.busy)
    choose_look(window.panels["tradeoff"], SHOWN)
    return window


def key_of(panel: TradeoffPanel, techniques: tuple[str, ...], of_study: bool = True) -> str:
    there = (one for one in panel.scene.points if (one.folder is not None) == of_study)
    return next(one.key for one in there if one.techniques == techniques)


def go(window: MainWindow, key: str) -> None:
    panel = window.panels["tradeoff"]
    panel.plot.go_to(panel.scene.index[key])


def longest_silence(samples: np.ndarray) -> int:
    """Samples of the longest run below -60 dB of full scale."""
    loud = np.flatnonzero(np.abs(samples) > 1e-3)
    return int(np.diff(loud).max(initial=0))
