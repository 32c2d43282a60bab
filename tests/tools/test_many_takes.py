"""The script that times the list of takes makes different takes and measures what it says; times are not tested."""

from pathlib import Path

from pytestqt.qtbot import QtBot

from paretone.setting.library import Library
from tests.tools import many_takes


def test_the_list_is_opened_and_filtered(qtbot: QtBot, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(many_takes, "REPEATS", 1)
    many_takes.fill(tmp_path, 20)
    with Library(tmp_path) as library:
        found = library.summaries()
        assert len({one.text for one in found}) == 20
        assert {bool(one.setting.techniques) for one in found} == {True, False}
        rows = many_takes.measured(library)
    assert [row[3] for row in rows] == [1.0, 0.05, 0.05, 0.05, 0.05]
    assert all(cpu > 0 and wall > 0 for _, cpu, wall, _ in rows)
