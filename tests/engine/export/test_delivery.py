"""All files arrive or none, and nothing that is there is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from paretone.errors import Cancelled, PlainError
from paretone.export.delivery import PIECE_BYTES, Content, Copied, Made, deliver
from tests.disk import tiny_disk  # noqa: F401

CONTENTS = {"a.json": b"{}", "b.bin": bytes(2 * PIECE_BYTES + 1)}


def ignore(done: int, total: int) -> None:
    """Progress that nobody follows."""


def listing(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_folder_is_made_and_holds_everything(tmp_path: Path) -> None:
    folder, told = tmp_path / "new" / "out", []
    written = deliver(folder, CONTENTS, lambda done, total: told.append((done, total)))
    assert [path.name for path in written] == list(CONTENTS)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == CONTENTS
    total = sum(map(len, CONTENTS.values()))
    assert told == [(2, total), (2 + PIECE_BYTES, total), (2 + 2 * PIECE_BYTES, total), (total, total)]


def test_what_is_there_already_stays_and_is_enough(tmp_path: Path) -> None:
    deliver(tmp_path, CONTENTS, ignore)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    deliver(tmp_path, CONTENTS, ignore)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("kind", ["file", "folder", "dangling link"])
def test_nothing_is_replaced(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "b.bin"
    if kind == "file":
        path.write_bytes(b"precious")
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PlainError, match=r"b\.bin exists with other content and is kept"):
        deliver(tmp_path, CONTENTS, ignore)
    assert listing(tmp_path) == ["b.bin"]
    assert path.is_symlink() or path.is_dir() or path.read_bytes() == b"precious"


def test_what_appears_meanwhile_is_not_replaced_either(tmp_path: Path) -> None:
    def somebody_else(done: int, total: int) -> None:
        (tmp_path / "b.bin").write_bytes(b"precious")

    with pytest.raises(PlainError, match=r"b\.bin exists"):
        deliver(tmp_path, CONTENTS, somebody_else)
    assert listing(tmp_path) == ["b.bin"]
    assert (tmp_path / "b.bin").read_bytes() == b"precious"


def test_cancelling_leaves_nothing_behind(tmp_path: Path) -> None:
    def cancel(done: int, total: int) -> None:
        if done > PIECE_BYTES:
            raise Cancelled

    with pytest.raises(Cancelled):
        deliver(tmp_path / "new" / "out", CONTENTS, cancel)
    assert listing(tmp_path) == []


def test_a_full_disk_is_reported_and_leaves_nothing_behind(tiny_disk: Path) -> None:  # noqa: F811
    with pytest.raises(PlainError, match=r"b\.bin could not be written: the disk is full"):
        deliver(tiny_disk / "out", CONTENTS, ignore)
    assert listing(tiny_disk) == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(PlainError, match="could not be made: its folder is a file"):
        deliver(tmp_path / "file" / "out", CONTENTS, ignore)


def large(folder: Path) -> dict[str, Content]:
    """A file to copy, and one to make."""
    source = folder / "source.bin"
    source.write_bytes(bytes(PIECE_BYTES + 3))

    def write(path: Path, wrote: Callable[[int], None]) -> None:
        with path.open("wb") as file:
            for piece in (b"one", b"two"):
                wrote(file.write(piece))

    return {"deep/copied.bin": Copied(source), "made.bin": Made(write, 5)}


def test_large_files_are_copied_and_made_piece_by_piece(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    written = deliver(tmp_path / "out", large(tmp_path), lambda done, total: told.append((done, total)))
    assert written[0].read_bytes() == bytes(PIECE_BYTES + 3)
    assert written[1].read_bytes() == b"onetwo"
    total = PIECE_BYTES + 3 + 5
    # What is made may turn out larger than expected: the progress ends where it should.
    assert [done for done, _ in told] == [PIECE_BYTES, PIECE_BYTES + 3, PIECE_BYTES + 6, total, total]
    before = [path.stat().st_mtime_ns for path in written]
    assert deliver(tmp_path / "out", large(tmp_path), ignore) == written
    assert [path.stat().st_mtime_ns for path in written] == before


@pytest.mark.parametrize("name", ["deep/copied.bin", "made.bin"])
@pytest.mark.parametrize("other", [b"other", bytes(PIECE_BYTES + 2) + b"x"])
def test_no_large_file_is_replaced(tmp_path: Path, name: str, other: bytes) -> None:
    path = tmp_path / "out" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(other)
    with pytest.raises(PlainError, match="exists with other content and is kept"):
        deliver(tmp_path / "out", large(tmp_path), ignore)
    assert path.read_bytes() == other
    assert [one for one in (tmp_path / "out").rglob("*") if one.is_file()] == [path]


def test_a_source_that_is_gone_is_named(tmp_path: Path) -> None:
    contents = large(tmp_path)
    (tmp_path / "source.bin").unlink()
    with pytest.raises(PlainError, match=r"source\.bin cannot be read"):
        deliver(tmp_path / "out", contents, ignore)
    assert listing(tmp_path) == []
