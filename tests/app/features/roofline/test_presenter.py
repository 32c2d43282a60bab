"""The roofline in the real window, measured by the real engine on a small model."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from pytestqt.qtbot import QtBot

from paretone.measure.roofline import benchmarks
from paretone.measure.roofline import ceilings as store
from paretone.session.events import EngineStatus
from paretone_app.shell.window import MainWindow
from paretone_app.state.jobs import Kind, Outcome
from tests.app.conftest import PATIENCE_MILLISECONDS
from tests.app.holding import Posts


@pytest.fixture(autouse=True)
def known_ceilings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Ceilings that are kept for this machine, so that no test has to measure them."""
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path / "own"))
    for threads in (1, torch.get_num_threads()):
        blank = replace(benchmarks._blank(torch.device("cpu")), threads=threads)
        store.keep(replace(blank, operations={"float32": 1e11}, bytes={"float32": 1e10}, launch_seconds=1e-6))


def test_a_and_b_are_measured_and_written(window: MainWindow, qtbot: QtBot, tmp_path: Path) -> None:
    presenter, panel = window.features["roofline"], window.panels["roofline"]
    assert panel.measure_buttons["A"].isEnabled()
    assert not panel.measure_buttons["B"].isEnabled(), "DiTReducio is used and has no table yet"
    window.state.selection.set_text("One. Two.")
    with qtbot.waitSignal(window.jobs.ended, timeout=PATIENCE_MILLISECONDS) as ended:
        panel.measure_buttons["A"].click()
        assert not panel.measure_buttons["A"].isEnabled() and panel.cancel_button.isVisibleTo(panel)
    assert (ended.args[0].kind, ended.args[1]) == (Kind.ROOFLINE, Outcome.FINISHED)
    report = panel.reports["A"]
    assert [phase.name for phase in report.phases] == ["conditioning", "evaluation", "decoder"]
    assert report.notes[-1] == "Measured on the first of 2 passages."
    assert not report.setting.techniques

    window.state.selection.switch("ditreducio", False)
    window.state.selection.switch("steps", True)
    window.state.selection.set_knob("steps", "steps", 3)
    trace = tmp_path / "trace.json"
    with qtbot.waitSignal(window.jobs.ended, timeout=PATIENCE_MILLISECONDS):
        presenter.measure("B", trace=trace)
    assert panel.side == "B" and panel.reports["B"].phases[1].forwards == 3
    assert panel.state == f"Wrote {trace}."
    assert json.loads(trace.read_bytes())["traceEvents"]
    presenter.write(tmp_path / "roofline.csv")
    assert "# side: B" in (tmp_path / "roofline.csv").read_text()


def test_measuring_can_be_cancelled(window: MainWindow, posts: Posts, qtbot: QtBot) -> None:
    panel = window.panels["roofline"]
    posts.hold_at(EngineStatus)
    with qtbot.waitSignal(window.jobs.ended, timeout=PATIENCE_MILLISECONDS) as ended:
        panel.measure_buttons["A"].click()
        panel.cancel_button.click()
        posts.go_on()
    assert ended.args[1] is Outcome.CANCELLED
    assert panel.reports["A"] is None and panel.state.startswith("Cancelled")
