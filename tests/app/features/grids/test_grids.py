"""Grids and token groups: found, shown, kept and written."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
from pytestqt.qtbot import QtBot

from paretone.errors import ProfileError
from paretone.sampling.grid_search import Trial
from paretone.setting.compatibility import Compatibility
from paretone.setting.knobs import Values
from paretone.setting.profile import artefact_in
from paretone.techniques import speculative, token_groups
from paretone.techniques.searched_grid import NAME, PlacedGrid, Searched, Start
from paretone.techniques.token_groups.groups import Groups
from paretone_app.features.grids.panel import GridPanel, known_rows
from paretone_app.features.grids.presenter import GridState
from paretone_app.features.groups import panel as module
from paretone_app.features.groups.panel import GroupsPanel
from paretone_app.shell.colours import LIGHT
from paretone_app.shell.window import MainWindow
from paretone_app.state.jobs import Kind, Outcome
from tests.app.acting import acts
from tests.app.conftest import on_screen
from tests.app.features.other_families import PATIENCE, choose, ended
from tests.engine.speaking import TEXT, write_all


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
    figures = "Figures: mean absolute difference of the last state to that of 64 steps; lower is better"
    assert all(one in panel.details.text() for one in ("Found by O3S on 1 sentence", "Placed for Euler", figures))
    assert "Searched: 0.000" in panel.ruler.accessibleDescription()

    assert state.availability.why_not_accelerate() == "" and state.selection.step_times == grid.times[:-1]
    assert ended(window, qtbot, state.synthesis.synthesise_accelerated)[:2] == (Kind.ACCELERATED, Outcome.FINISHED)
    qtbot.waitUntil(lambda: state.comparison.take_b is not None)
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
    again = GridState(state, presenter.state.folder)
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
    panel = on_screen(GridPanel(LIGHT, *acts(3)), qtbot, 700, 300)
    panel.begin("naturalness")
    first, second = Trial(0, 0, (0.0, 0.4, 1.0), (-3.5, 0.1), True), Trial(1, 1, (0.0, 0.3, 1.0), (-3.2, 0.1), False)
    panel.add_trials([first, second])
    assert panel.headline.text() == "Searching 2 evaluations: 2 grids tried"
    assert panel.ruler.rows[0].times == (0.0, 0.4, 1.0) and panel.ruler.rows[0].figure == "3.50"
    pixels = panel.ruler.grab().toImage()
    colours = {pixels.pixelColor(x, 8).name() for x in range(pixels.width())}
    assert LIGHT.accent in {one.lower() for one in colours} or LIGHT.accent.lower() in colours
    panel.end()
    assert panel.pages.is_empty
    grid = PlacedGrid(Compatibility("f5-mini", "0" * 64, "v1", Values(steps=2)), (0.0, 0.4, 1.0))
    start = Start("even", Trial(0, 0, (0.0, 0.5, 1.0), (-3.1, 0.2), False))
    panel.set_grid(grid, Searched(grid, (start,), first, 2, "Naturalness", 1.0), "naturalness")
    assert panel.details.text().endswith("Figures: Naturalness; higher is better, on what was searched on.")
    assert [one.figure for one in panel.ruler.rows] == ["3.50", "3.10"]
    unheard = Trial(0, 0, (0.0, 0.5, 1.0), (float("inf"), 0.2), False)
    panel.set_grid(grid, Searched(grid, (Start("even", unheard),), unheard, 2, "F0 error", 1.0), "pitch_error")
    assert [one.figure for one in panel.ruler.rows] == ["–", "–"], "no pitch, no error"
    panel.set_grid(grid, None, "naturalness")
    assert "Figures" not in panel.details.text() and {one.figure for one in panel.ruler.rows} == {""}
    assert [one.title for one in known_rows(7)] == ["EPSS 7", "sway −1", "even"]
    assert [one.title for one in known_rows(4)] == ["sway −1", "even"]


GROUPS = Groups("lm-mini", "0" * 64, 9, "scores", 0.5, 2, 8, ((0, 1), (2, 3, 4), (1, 5)))


@pytest.fixture
def panel(qtbot: QtBot) -> GroupsPanel:
    made = GroupsPanel(*acts(4))
    qtbot.addWidget(made)
    return made


def test_the_largest_group_is_chosen_first(panel: GroupsPanel, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    panel.set_groups(replace(GROUPS, codes=4096))
    assert "4,090 of 4,096" in panel.headline.text() and panel.headline.text().startswith("3 groups")
    assert [panel.table.item(row, 1).text() for row in range(3)] == ["2, 3, 4", "0, 1", "1, 5"]
    assert panel.members == (2, 3, 4)
    panel.table.selectRow(2)
    assert panel.members == (1, 5)
    with qtbot.waitSignal(panel.play.triggered):
        panel.table.itemActivated.emit(panel.table.item(2, 0))
    monkeypatch.setattr(module, "LISTED", 2)
    panel.set_groups(GROUPS)
    assert panel.table.rowCount() == 2 and panel.headline.text().endswith("; the 2 largest are listed")


def test_reasons_are_said(panel: GroupsPanel) -> None:
    assert not panel.play.isEnabled() and panel.play.reason == "Choose a group in the table first."
    panel.search.set_reason("The model is being loaded.")
    assert panel.pages.is_empty and panel.pages.invitation.text() == "The model is being loaded."
    panel.set_groups(GROUPS)
    assert panel.play.isEnabled() and panel.save_sound.isEnabled()
    panel.search.set_reason("")
    panel.set_groups(None)
    assert panel.pages.is_empty and panel.members == ()
    assert "Press Find groups" in panel.pages.invitation.text()


TECHNIQUE = token_groups.NAME
LOADS = "lm-mini"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_groups_are_found_heard_saved_and_used(
    shared_window: MainWindow, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last to see that window."""
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path / "own"))
    window, state = shared_window, shared_window.state
    choose(window, "lm-mini", write_all(tmp_path / "model"), TEXT, {"speed": 2.0}, qtbot)
    presenter, panel = window.features["groups"], window.panels["groups"]
    assert panel.pages.is_empty and panel.save.reason == "There are no groups yet."
    own, state.selection.info = state.selection.info, replace(state.selection.info, codes_per_token=16)
    assert "completes each token to a frame of 16 codes" in presenter.state.why_not_find()
    state.selection.info = own
    state.selection.switch(speculative.NAME, True)
    state.selection.switch(TECHNIQUE, True)
    assert "find them first, in Groups" in state.availability.why_not_accelerate()
    state.selection.set_knob(TECHNIQUE, "cosine", 0.1)
    assert ended(window, qtbot, presenter.state.search)[:2] == (Kind.GROUPS, Outcome.FINISHED)
    groups = presenter.state.artefact
    assert groups is not None and groups.cosine == 0.1
    assert not panel.pages.is_empty and panel.table.rowCount() == len(groups.members)
    assert panel.members == groups.by_size[0]
    assert panel.headline.text().startswith(f"{len(groups.members)} groups of several tokens; ")

    heard = []
    monkeypatch.setattr(window.features["player"], "hear_sound", heard.append)
    panel.table.selectRow(1)
    assert ended(window, qtbot, lambda: presenter.state.hear(panel.members))[:2] == (Kind.TOKENS, Outcome.FINISHED)
    (sound,) = heard
    assert sound.title == f"Tokens {', '.join(map(str, groups.by_size[1]))}" and np.abs(sound.samples).max() > 0
    path = tmp_path / "group.wav"
    ended(window, qtbot, lambda: presenter.save(panel.members, path))
    qtbot.waitUntil(path.is_file, timeout=PATIENCE)
    assert len(heard) == 1 and soundfile.info(path).frames == len(sound.samples)
    presenter.write(tmp_path / "groups.json")
    assert Groups.from_json(json.loads((tmp_path / "groups.json").read_text())) == groups

    assert state.availability.why_not_accelerate() == ""
    assert ended(window, qtbot, state.synthesis.synthesise_accelerated)[:2] == (Kind.ACCELERATED, Outcome.FINISHED)
    qtbot.waitUntil(lambda: state.comparison.take_b is not None, timeout=PATIENCE)
    take = state.comparison.take_b
    assert take.setting.technique(TECHNIQUE).artefact == groups.fingerprint
    assert any("accepted in groups" in note for note in take.notes)
    # Other knobs need other groups; those found before are taken up again.
    state.selection.set_knob(TECHNIQUE, "cosine", 0.3)
    assert presenter.state.artefact is None and panel.pages.is_empty
    state.selection.set_knob(TECHNIQUE, "cosine", 0.1)
    assert presenter.state.artefact == groups
    (path,) = presenter.state.folder.glob("*.json")
    assert artefact_in(path, token_groups.TECHNIQUE) == groups
