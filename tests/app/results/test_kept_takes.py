"""The application always has a take library, and can replace one that is damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from paretone.setting.library import DATABASE
from paretone_app.results.takes import OpenedLibrary, open_library, replace_damaged
from tests.app.damage import spoil
from tests.app.features.takes.test_panel import take


def test_a_sound_library_needs_nothing(tmp_path: Path) -> None:
    opened = open_library(tmp_path)
    with opened.library as library:
        assert opened == OpenedLibrary(library)


def test_a_folder_that_cannot_be_used_is_told_and_not_offered_to_be_set_aside(tmp_path: Path) -> None:
    blocked = tmp_path / "takes"
    blocked.write_text("not a folder")
    opened = open_library(blocked)
    with opened.library as library:
        assert "takes" in opened.problem
        assert library.folder != blocked
        assert opened.damaged is None


def test_an_unreadable_library_is_replaced_and_the_takes_made_meanwhile_move_in(tmp_path: Path) -> None:
    spoil(tmp_path, readable=False)
    opened = open_library(tmp_path)
    assert opened.damaged == tmp_path
    temporary = opened.library.folder
    made = [opened.library.add(take(number)) for number in range(2)]
    replaced = replace_damaged(opened)
    with replaced.library as library:
        assert library.folder == tmp_path
        assert library.summaries() == tuple(reversed(made))
        assert replaced.damaged is None
    (backup,) = tmp_path.glob("damaged-*")
    assert str(backup) in replaced.problem
    assert not temporary.exists()


def test_a_library_that_can_be_read_in_part_is_replaced(tmp_path: Path) -> None:
    spoil(tmp_path, readable=True)
    opened = open_library(tmp_path)
    assert opened.library.damage
    assert opened.library.folder == opened.damaged == tmp_path
    replaced = replace_damaged(opened)
    with replaced.library as library:
        assert (library.folder, library.damage, len(library)) == (tmp_path, "", 0)
    (backup,) = tmp_path.glob("damaged-*")
    assert (backup / DATABASE).exists()


@pytest.mark.parametrize("readable", [False, True])
def test_what_cannot_be_set_aside_stays_in_use(tmp_path: Path, readable: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    spoil(tmp_path, readable)
    opened = open_library(tmp_path)

    def refuse(path: Path, target: Path) -> None:
        raise PermissionError(13, "Permission denied", str(target))

    monkeypatch.setattr(Path, "rename", refuse)
    replaced = replace_damaged(opened)
    with replaced.library as library:
        assert "could not be moved" in replaced.problem
        assert replaced.damaged == tmp_path
        assert (library.folder == tmp_path) is readable
        assert bool(library.damage) is readable
