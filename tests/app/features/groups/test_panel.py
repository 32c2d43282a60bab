"""The panel of token groups without an engine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
from pytestqt.qtbot import QtBot

from paretone.models.base import SpeechModel
from paretone.techniques import speculative, token_groups
from paretone.techniques.token_groups.command import read
from paretone.techniques.token_groups.groups import Groups
from paretone_app.features.groups import panel as module
from paretone_app.features.groups.panel import GroupsActions, GroupsPanel
from paretone_app.shell.window import MainWindow
from paretone_app.state.jobs import Kind, Outcome
from tests.app.acting import acts_of
from tests.app.features.other_families import PATIENCE, ended, loading, window_with
from tests.engine.speaking import TEXT, write_all

GROUPS = Groups("lm-mini", "0" * 64, 9, "scores", 0.5, 2, 8, ((0, 1), (2, 3, 4), (1, 5)))


@pytest.fixture
def panel(qtbot: QtBot) -> GroupsPanel:
    made = GroupsPanel(acts_of(GroupsActions))
    qtbot.addWidget(made)
    return made


def test_the_largest_group_is_first_and_chosen(
    panel: GroupsPanel, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel.set_groups(replace(GROUPS, codes=4096))
    assert panel.headline.text() == "3 groups of several tokens; 4,090 of 4,096 tokens by themselves"
    assert [panel.table.item(row, 1).text() for row in range(3)] == ["2, 3, 4", "0, 1", "1, 5"]
    assert panel.members == (2, 3, 4)
    panel.table.selectRow(2)
    assert panel.members == (1, 5)
    with qtbot.waitSignal(panel.can.play.triggered):
        panel.table.itemActivated.emit(panel.table.item(2, 0))
    monkeypatch.setattr(module, "LISTED", 2)
    panel.set_groups(GROUPS)
    assert panel.table.rowCount() == 2 and panel.headline.text().endswith("; the 2 largest are listed")


def test_reasons_are_said(panel: GroupsPanel) -> None:
    assert not panel.can.play.isEnabled() and panel.can.play.reason == "Choose a group in the table first."
    panel.can.search.set_reason("The model is being loaded.")
    assert panel.pages.is_empty and panel.pages.invitation.text() == "The model is being loaded."
    panel.set_groups(GROUPS)
    assert panel.can.play.isEnabled() and panel.can.save_sound.isEnabled()
    panel.can.search.set_reason("")
    panel.set_groups(None)
    assert panel.pages.is_empty and panel.members == ()
    assert "Press Find groups" in panel.pages.invitation.text()


NAME = token_groups.NAME


@pytest.fixture(scope="module")
def loader() -> Callable[..., SpeechModel]:
    return loading("lm-mini")


@pytest.fixture
def own_window(
    make_window: Callable[..., MainWindow], qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[MainWindow]:
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path / "own"))
    root = write_all(tmp_path / "model")
    with window_with("lm-mini", root, TEXT, {"speed": 2.0}, make_window, qtbot) as made:
        yield made


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_groups_are_found_heard_saved_and_used(
    own_window: MainWindow, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window, state = own_window, own_window.state
    presenter, panel = window.features["groups"], window.panels["groups"]
    assert panel.pages.is_empty and panel.can.save.reason == "There are no groups yet."
    state.selection.switch(speculative.NAME, True)
    state.selection.switch(NAME, True)
    assert "find them first, in Groups" in state.availability.why_not_accelerate()
    state.selection.set_knob(NAME, "cosine", 0.1)
    assert ended(window, qtbot, presenter.state.search)[:2] == (Kind.GROUPS, Outcome.FINISHED)
    groups = presenter.state.artefact
    assert groups is not None and groups.cosine == 0.1
    assert not panel.pages.is_empty and panel.table.rowCount() == len(groups.members)
    assert panel.members == groups.by_size[0]
    assert panel.headline.text().startswith(f"{len(groups.members)} groups of several tokens; ")

    heard = []
    monkeypatch.setattr(presenter._player, "hear_sound", heard.append)
    panel.table.selectRow(1)
    assert ended(window, qtbot, presenter._hear)[:2] == (Kind.TOKENS, Outcome.FINISHED)
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
    assert take.setting.technique(NAME).artefact == groups.fingerprint
    assert any("accepted in groups" in note for note in take.notes)

    # Other knobs need other groups; those found before are taken up again.
    state.selection.set_knob(NAME, "cosine", 0.3)
    assert presenter.state.artefact is None and panel.pages.is_empty
    state.selection.set_knob(NAME, "cosine", 0.1)
    assert presenter.state.artefact == groups
    (path,) = presenter.state._folder.glob("*.json")
    assert read(path) == groups
