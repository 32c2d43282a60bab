"""The panel of token groups without an engine."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pytestqt.qtbot import QtBot

from paretone.techniques.token_groups.groups import Groups
from paretone_app.features.groups import panel as module
from paretone_app.features.groups.panel import GroupsActions, GroupsPanel
from tests.app.acting import acts_of

GROUPS = Groups("lm-mini", "0" * 64, 9, "scores", 0.5, 2, 8, ((0, 1), (2, 3, 4), (1, 5)))


@pytest.fixture
def panel(qtbot: QtBot) -> GroupsPanel:
    made = GroupsPanel(acts_of(GroupsActions))
    qtbot.addWidget(made)
    return made


def test_the_largest_group_is_first_and_chosen(panel: GroupsPanel, qtbot: QtBot) -> None:
    panel.set_groups(GROUPS)
    assert panel.headline.text() == "3 groups of several tokens; 3 of 9 tokens by themselves"
    assert [panel.table.item(row, 1).text() for row in range(3)] == ["2, 3, 4", "0, 1", "1, 5"]
    assert panel.members == (2, 3, 4)
    panel.table.selectRow(2)
    assert panel.members == (1, 5)
    with qtbot.waitSignal(panel.can.play.triggered):
        panel.table.itemActivated.emit(panel.table.item(2, 0))


def test_large_numbers_are_grouped(panel: GroupsPanel) -> None:
    panel.set_groups(replace(GROUPS, codes=4096))
    assert panel.headline.text() == "3 groups of several tokens; 4,090 of 4,096 tokens by themselves"


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


def test_of_many_the_largest_are_listed(panel: GroupsPanel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LISTED", 2)
    panel.set_groups(GROUPS)
    assert panel.table.rowCount() == 2 and panel.headline.text().endswith("; the 2 largest are listed")
