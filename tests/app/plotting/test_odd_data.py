"""Painters stand whatever they are given: an exception while a widget is painted may end the application.

What is raised in a paint event fails a test: pytest-qt catches it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from paretone.figures.scatter import Dimension, Scale
from paretone.measure.decoding import PositionAcceptance, SpokenToken
from paretone.models.files.layer_importance import DIVERGENCE, LayerImportance
from paretone.sampling.actions import SkipAction
from paretone.setting.take import Measurements
from paretone_app.features.attention.panel import AttentionPlot, ColourBar, SimilarityGrid
from paretone_app.features.decoding.panel import AcceptancePlot, RunningPlot
from paretone_app.features.decoding.token_strip import TokenStrip
from paretone_app.features.demasking.grid import DemaskingGrid
from paretone_app.features.demasking.panel import StepBars
from paretone_app.features.layers.layer_bars import LayerBars
from paretone_app.features.meters.panel import PartsBar
from paretone_app.features.strategy.grid import StrategyGrid
from paretone_app.features.threshold.panel import Histogram, SharePlot
from paretone_app.plotting.curves import CurveChart, Series
from paretone_app.shell.colours import LIGHT
from tests.app.features.demasking.test_panel import passage
from tests.app.features.layers.test_panel import RECORD

NOWHERE = (np.nan, np.inf, -np.inf)


def token_strip() -> TokenStrip:
    made = TokenStrip(LIGHT)
    made.show_tokens([SpokenToken(0.0, 7, "accepted", 0, ())], 25.0)
    for position in NOWHERE:
        made.set_position(position)
        made.grab()
    return made


def demasking_grid() -> DemaskingGrid:
    made = DemaskingGrid(LIGHT)
    made.show_passage(passage(), 5.0, LIGHT.accent)  # No time fits between two of its frames.
    made.grab()
    odd = passage()
    made.show_passage(replace(odd, probability=np.full_like(odd.probability, np.nan)), 0.04, LIGHT.accent)
    made.grab()
    empty = {"codes": odd.codes[:, :0], "order": odd.order[:, :0], "probability": odd.probability[:, :0]}
    made.show_passage(replace(odd, **empty), 0.04, LIGHT.accent)
    for position in NOWHERE:
        made.set_position(position)
    return made


def step_bars() -> StepBars:
    made = StepBars(LIGHT)
    made.show_counts((0, 0, 0), LIGHT.accent)
    return made


def parts_bar() -> PartsBar:
    made = PartsBar("Seconds", LIGHT)
    made.show_measurements(Measurements(np.nan, 0.0, np.nan, 0.0, np.inf, 0.0, 0.0), np.nan)
    return made


def colour_bar() -> ColourBar:
    made = ColourBar("Colours", LIGHT)
    for ends in ((0.0, 0.0), (np.nan, np.nan), (-1.0, np.inf)):
        made.set_ends(ends, logarithmic=True)
        made.grab()
    return made


def similarity_grid() -> SimilarityGrid:
    made = SimilarityGrid(LIGHT)
    made.show_captured((1, 7))
    made.set_layout(3, 0)
    made.grab()
    made.show_similarities(np.array([[np.nan, np.inf, 0.5]] * 3), np.nan)
    return made


def strategy_grid() -> StrategyGrid:
    made = StrategyGrid(LIGHT)
    made.show_actions(np.zeros((4, 0), np.int8))
    made.grab()
    made.show_actions(np.zeros((2, 3), np.int8))
    made.light((1, 9))
    return made


def layer_bars() -> LayerBars:
    made = LayerBars(LIGHT)
    made.show_layers(0, None, ())
    made.grab()
    odd = LayerImportance(DIVERGENCE, (np.nan, np.inf, 0.0, -1.0), (np.nan,) * 4, (np.inf,) * 4)
    made.show_layers(4, RECORD.with_measure(odd), (0,))
    made.grab()
    made.set_logarithmic(True)
    return made


def acceptance() -> AcceptancePlot:
    made = AcceptancePlot(LIGHT)
    made.show_positions([PositionAcceptance(0, 3, 0, 0)])
    return made


def running() -> RunningPlot:
    made = RunningPlot(LIGHT)
    made.show_points((0.0, np.nan), (np.inf, np.nan), np.nan)
    return made


def curves() -> CurveChart:
    made = CurveChart("Odd", Dimension("x"), Dimension("y"), LIGHT)
    series = [Series("odd", np.array([0.0, 1.0, np.nan]), np.array([np.inf, np.nan, 1.0]), LIGHT.accent, mark="circle")]
    for ends in ((0.0, 0.0), (np.nan, 1.0), (0.0, np.inf), (1.0, 1.0 + 1e-16)):
        for logarithmic in (False, True):
            made.show_series(series, Scale(*ends, logarithmic), Scale(*ends, logarithmic))
            made.grab()
    return made


def histogram() -> Histogram:
    made = Histogram(LIGHT)
    counts = dict.fromkeys((SkipAction.TS, SkipAction.BS), np.zeros(1, int))
    made.show_counts(Scale(0.0, np.inf), np.array([0.0, 1.0]), counts)
    made.show_threshold(np.nan, (np.nan, np.inf))
    return made


def share() -> SharePlot:
    made = SharePlot(LIGHT)
    made.share = np.nan
    made.show_curve(Scale(0.0, 0.0), np.array([np.nan]), np.array([np.inf]))
    made.show_threshold(np.inf, None)
    return made


def attention() -> AttentionPlot:
    made = AttentionPlot(LIGHT)
    made.show_map(np.zeros((2, 2)), (0.0, 0.0), logarithmic=False)
    made.show_axes(0.0, 0.0, "frame", titled=True)
    return made


MADE = (
    *(token_strip, demasking_grid, step_bars, parts_bar, colour_bar, similarity_grid, strategy_grid, layer_bars),
    *(acceptance, running, curves, histogram, share, attention),
)


@pytest.mark.parametrize("make", MADE)
def test_odd_data_and_tiny_sizes_are_painted(qtbot: QtBot, make) -> None:
    made: QWidget = make()
    qtbot.addWidget(made)
    made.show()
    for width, height in ((0, 0), (1, 1), (3, 200), (200, 3), (300, 200)):
        made.resize(width, height)
        made.grab()
