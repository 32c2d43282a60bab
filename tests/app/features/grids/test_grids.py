"""Grid in the real window on the real engine: times searched, shown next to known grids, used, kept, opened."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from paretone.errors import ProfileError
from paretone.sampling.grid_search import Trial
from paretone.setting.compatibility import Compatibility
from paretone.setting.knobs import Values
from paretone.techniques.searched_grid import NAME, PlacedGrid, Searched, Start
from paretone_app.features.grids.panel import GridPanel, known_rows
from paretone_app.features.grids.presenter import GridState
from paretone_app.shell.colours import LIGHT
from paretone_app.shell.window import MainWindow
from paretone_app.state.jobs import Kind, Outcome
from tests.app.acting import acts
from tests.app.conftest import PATIENCE_MILLISECONDS
from tests.app.features.other_families import ended


def test_times_are_searched_shown_used_kept_and_opened(
    window: MainWindow, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path / "journals"))
    state, presenter, panel = window.state, window.features["grids"], window.panels["grids"]
    assert panel.pages.is_empty and not panel.search_button.isEnabled()
    assert "Switch Searched grid on first" in panel.search_button.toolTip()
    state.selection.switch("ditreducio", False)
    state.selection.switch(NAME, True)
    assert "no placed times for 5 evaluations yet: search them in Grid" in state.availability.why_not_accelerate()
    state.selection.set_knob(NAME, "evaluations", 2)
    state.selection.set_knob(NAME, "passes", 1)
    assert panel.search_button.isEnabled()
    assert ended(window, qtbot, presenter.state.search)[:2] == (Kind.GRID, Outcome.FINISHED)
    grid = presenter.state.artefact
    assert grid is not None and grid.steps == 2
    assert [one.title for one in panel.ruler.rows] == ["Searched", "sway −1", "even"]
    assert panel.ruler.rows[0].times == grid.times and all(one.figure for one in panel.ruler.rows)
    assert "Found by O3S on 1 sentence" in panel.details.text() and "Placed for Euler" in panel.details.text()
    assert "Figures: mean absolute difference of the last state to that of 64 steps; lower is better" in (
        panel.details.text()
    )
    assert "Searched: 0.000" in panel.ruler.accessibleDescription()

    assert state.availability.why_not_accelerate() == ""
    assert state.selection.step_times == grid.times[:-1]
    assert ended(window, qtbot, state.synthesis.synthesise_accelerated)[:2] == (Kind.ACCELERATED, Outcome.FINISHED)
    qtbot.waitUntil(lambda: state.comparison.take_b is not None, timeout=PATIENCE_MILLISECONDS)
    take = state.comparison.take_b
    assert take.setting.technique(NAME).artefact == grid.fingerprint and take.measurements.evaluations == 2

    # Other numbers need other grids; those found before are taken up again, also by the next window.
    state.selection.set_knob(NAME, "evaluations", 3)
    assert presenter.state.artefact is None and panel.pages.is_empty
    path = tmp_path / "grid.json"
    presenter.write(path)
    assert not path.exists()
    state.selection.set_knob(NAME, "evaluations", 2)
    assert presenter.state.artefact == grid
    presenter.write(path)
    assert PlacedGrid.from_json(json.loads(path.read_text())) == grid
    again = GridState(state, presenter.state._folder)
    assert again.find(take.setting.technique(NAME)) == grid and not again.problems
    state.artefacts.add(NAME, presenter.state)

    # From a file, with undo; one for something else is refused.
    other = PlacedGrid(grid.compatibility, (0.0, 0.123, 1.0), origin="by hand")
    path.write_text(json.dumps(other.to_json()))
    presenter.state.open(path)
    assert presenter.state.artefact == other and [one.figure for one in panel.ruler.rows] == ["", "", ""]
    state.undo_stack.undo()
    assert presenter.state.artefact == grid
    state.selection.set_option("guidance", 0.5)
    assert presenter.state.artefact is None
    with pytest.raises(ProfileError, match="guidance strength"):
        presenter.state.open(path)


def test_the_panel_follows_a_search(qtbot: QtBot) -> None:
    panel = GridPanel(LIGHT, *acts(3))
    qtbot.addWidget(panel)
    panel.resize(700, 300)
    panel.show()
    panel.begin("naturalness")
    first, second = Trial(0, 0, (0.0, 0.4, 1.0), (-3.5, 0.1), True), Trial(1, 1, (0.0, 0.3, 1.0), (-3.2, 0.1), False)
    panel.add_trials([first, second])
    assert panel.headline.text() == "Searching 2 evaluations: 2 grids tried"
    assert panel.ruler.rows[0].times == (0.0, 0.4, 1.0) and panel.ruler.rows[0].figure == "3.5"
    pixels = panel.ruler.grab().toImage()
    colours = {pixels.pixelColor(x, 8).name() for x in range(pixels.width())}
    assert LIGHT.accent in {one.lower() for one in colours} or LIGHT.accent.lower() in colours
    panel.end()
    assert panel.pages.is_empty
    grid = PlacedGrid(Compatibility("f5-mini", "0" * 64, "v1", Values(steps=2)), (0.0, 0.4, 1.0))
    start = Start("even", Trial(0, 0, (0.0, 0.5, 1.0), (-3.1, 0.2), False))
    panel.set_grid(grid, Searched(grid, (start,), first, 2, "Naturalness", 1.0), "naturalness")
    assert panel.details.text().endswith("Figures: Naturalness; higher is better, on what was searched on.")
    assert [one.figure for one in panel.ruler.rows] == ["3.5", "3.1"]
    unheard = Trial(0, 0, (0.0, 0.5, 1.0), (float("inf"), 0.2), False)
    panel.set_grid(grid, Searched(grid, (Start("even", unheard),), unheard, 2, "F0 error", 1.0), "pitch_error")
    assert [one.figure for one in panel.ruler.rows] == ["–", "–"], "no pitch, no error"
    panel.set_grid(grid, None, "naturalness")
    assert "Figures" not in panel.details.text() and {one.figure for one in panel.ruler.rows} == {""}


def test_epss_is_shown_where_it_has_a_table() -> None:
    assert [one.title for one in known_rows(7)] == ["EPSS 7", "sway −1", "even"]
    assert [one.title for one in known_rows(4)] == ["sway −1", "even"]
