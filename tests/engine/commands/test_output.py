"""Commands check where they will write before they work."""

from __future__ import annotations

from pathlib import Path

import pytest

from paretone import files
from paretone.commands import output
from paretone.errors import PlainError
from tests.disk import read_only_disk  # noqa: F401


def test_a_disk_that_can_only_be_read_is_no_place_for_files(read_only_disk: Path) -> None:  # noqa: F811
    with pytest.raises(
        PlainError, match=r"a\.csv cannot be written: that disk can only be read; choose another folder"
    ):
        output.writable(read_only_disk / "a.csv")
    with pytest.raises(PlainError, match=r"Cannot write to the folder .*: that disk can only be read"):
        output.folder(str(read_only_disk))
    with pytest.raises(PlainError, match="could not be created: that disk can only be read"):
        output.folder(str(read_only_disk / "new"))


def test_of_a_link_the_target_is_said_and_the_true_reason(read_only_disk: Path, tmp_path: Path) -> None:  # noqa: F811
    reasons = {
        read_only_disk / "a.wav": "that disk can only be read; choose another folder",
        tmp_path / "none" / "a.wav": "its folder does not exist; create it or choose another",
        Path("/proc/a.wav"): "nothing can be made in the folder /proc; choose another",
    }
    for number, (place, reason) in enumerate(reasons.items()):
        link = tmp_path / f"{number}.wav"
        link.symlink_to(place)
        with pytest.raises(PlainError) as before:
            output.writable(link)
        assert str(before.value) == f"{link} cannot be written: it is a link to {place}: {reason}."
        with pytest.raises(PlainError) as at_last:
            files.write(link, b"")
        assert str(at_last.value) == f"{link} could not be written: it is a link to {place}: {reason}."
    with pytest.raises(PlainError, match=r"^/proc/a.wav cannot be written: nothing can be made in the folder /proc"):
        output.writable("/proc/a.wav")


@pytest.mark.parametrize("inside", ["", "within"])
def test_a_file_is_no_folder(tmp_path: Path, inside: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(PlainError, match=f"^{tmp_path}/file is a file; give the name of a folder.$"):
        output.place_for_folder(tmp_path / "file" / inside)


def test_looking_leaves_nothing_behind(tmp_path: Path) -> None:
    table = tmp_path / "view.csv"
    table.write_text("mine")
    assert output.writable(table) == table
    assert output.folder(str(tmp_path)) == tmp_path
    assert [one.name for one in tmp_path.iterdir()] == ["view.csv"]
    assert table.read_text() == "mine"
