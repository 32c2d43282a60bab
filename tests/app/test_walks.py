"""The walks of ``resources/docs/architecture.md`` go through few files."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from paretone.session.engine_thread import EngineThread
from paretone.studies.store import Store
from paretone_app.plotting.scatter import ScatterLayers
from paretone_app.results import study
from paretone_app.results.reader import Results
from paretone_app.shell.window import MainWindow
from paretone_app.state.jobs import Outcome
from tests.app.conftest import PATIENCE_MILLISECONDS
from tests.app.features.studies.studying import ended, opened, write
from tests.walking import Walk

MOST = 18
"""Files from *Run study* to a point on the plot."""


def test_from_run_study_to_a_point(
    window: MainWindow, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    window.workspaces.go_to("tradeoff")
    opened(window, write(tmp_path), qtbot)
    window.workspaces.bring_forward("tradeoff")
    walk = Walk(monkeypatch)
    walk.checkpoint("submit", EngineThread, "submit")
    walk.checkpoint("store", Store, "add_take")
    walk.checkpoint("signal", Results, "read_study")
    walk.checkpoint("read", study, "study_points")
    outcome, sentence = ended(window, window.action["run_study"].trigger, qtbot)
    assert outcome is Outcome.FINISHED, sentence
    walk.checkpoint("plot", ScatterLayers, "show")
    window.results.read_study(tmp_path / "small.study")
    qtbot.waitUntil(lambda: "plot" in walk.files, timeout=PATIENCE_MILLISECONDS)
    assert window.panels["tradeoff"].scene.own == 3, "a point for each setting"
    assert set(walk.files) == {"submit", "store", "signal", "read", "plot"}
    for place in (
        "studies/store.py",
        "results/reader.py",
        "results/study.py",
        "tradeoff/plot.py",
        "plotting/scatter.py",
    ):
        assert any(one.endswith(place) for one in walk.union), place
    assert len(walk.union) <= MOST, walk.union
