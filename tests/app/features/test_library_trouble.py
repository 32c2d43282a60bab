"""The take library in trouble: the application says so and goes on. A full disk: ``tests/app/shell/test_window.py``."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from paretone import database
from paretone.errors import PlainError
from paretone.setting.library import DATABASE, Library
from paretone_app.results.takes import open_library
from paretone_app.shell.only_window import chosen_folder
from tests.app.conftest import SMALL, MakeWindow, ready
from tests.app.features.takes.test_panel import take


def test_a_library_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    with Library(tmp_path) as library:
        library.add(take(1))
    with closing(sqlite3.connect(tmp_path / DATABASE, isolation_level=None)) as direct:
        direct.execute("PRAGMA user_version = 99")
    before = (tmp_path / DATABASE).read_bytes()
    found = open_library(tmp_path)
    with found.library as library:
        assert "written by a newer Paretone" in found.problem and "Meanwhile, takes are kept in" in found.problem
        assert library.folder != tmp_path and found.damaged is None
    assert (tmp_path / DATABASE).read_bytes() == before


def test_a_library_that_another_program_locks(
    make_window: MakeWindow, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "PATIENCE_SECONDS", 0.05)
    window = ready(make_window(parts=SMALL), qtbot)
    window.state.synthesis.take_added.emit(take(1))
    other = sqlite3.connect(tmp_path / "data" / "takes" / DATABASE, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    window.state.synthesis.take_added.emit(take(2))
    assert "another program is writing to it" in window.notices.banner.text
    assert window.panels["takes"].table.model().rowCount() == 1
    window.panels["takes"].table.selectRow(0)
    window.panels["takes"].star()
    assert "another program is writing to it" in window.notices.banner.text
    other.execute("ROLLBACK")
    other.close()
    window.state.synthesis.take_added.emit(take(3))
    assert [one.id for one in window.results.library.summaries()] == [take(3).id, take(1).id]


def test_another_folder_can_be_chosen_where_the_usual_one_cannot_be_written(
    make_window: MakeWindow, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    blocked = tmp_path / "data" / "takes"
    blocked.parent.mkdir()
    blocked.write_text("This is no folder, so nothing can be kept in it.")
    window = ready(make_window(parts=SMALL), qtbot)
    banner = window.notices.banner
    assert [one.text() for one in banner.answers] == ["Choose another folder…"]
    window.state.synthesis.take_added.emit(take(1))
    meanwhile = window.results.library.folder
    assert banner.text, "the notice stays"
    assert window.action["choose_data_folder"].isEnabled()
    (tmp_path / "mine").mkdir()
    window.features["takes"].move_data(tmp_path / "mine")
    library = window.results.library
    assert library.folder == tmp_path / "mine" / "takes"
    assert [one.id for one in library.summaries()] == [take(1).id], "what was kept meanwhile is there"
    assert not meanwhile.exists() and f"Takes are kept in {tmp_path / 'mine'} from now on." in banner.text
    banner.dismiss()
    assert not banner.isVisible(), "what was said of the other folder is no longer so"
    assert chosen_folder() == tmp_path / "mine"
    with pytest.raises(PlainError, match="choose another"):
        window.features["takes"].move_data(blocked)
    assert window.results.library.folder == library.folder
