from __future__ import annotations

import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from paretone.errors import LibraryError
from paretone.setting.deleted_takes import DeletedTakes, KeptAudio
from paretone.setting.knobs import Values
from paretone.setting.library import Library
from paretone.setting.setting import Setting
from paretone.setting.take import Measurements, Take
from tests.disk import counts_open_files, unnamed_files

FRAMES = 100_000


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library(tmp_path) as made:
        for number in range(4):
            samples = np.random.default_rng(number).standard_normal(FRAMES + number).astype(np.float32)
            setting = Setting("f5-mini", Values({"steps": 8}), seed=number)
            created = f"2026-01-01T00:00:{number:02d}"
            made.add(Take(f"{number:032x}", created, "A text.", "anna", setting, 24_000, samples, Measurements(1.0)))
        yield made


def test_what_was_deleted_comes_back_whole_and_its_audio_is_not_in_memory(library: Library) -> None:
    names = [one.id for one in library.summaries()]
    before, summaries = {one: library.load(one) for one in names}, library.summaries()
    tracemalloc.start()
    try:
        deleted = DeletedTakes(KeptAudio(library.folder))
        for one in names:
            deleted.delete(library.load(one), library)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < FRAMES * 4, "less than the audio of one take"
    assert not len(library) and list(deleted) == names
    assert os.listdir(library.folder / "audio") == []
    for _ in range(2):
        deleted.restore(library)
        deleted.restore(library)  # What is there already stays.
        assert library.summaries() == summaries
        for one in names:
            after = library.load(one)
            assert np.array_equal(after.samples, before[one].samples)
            assert after.trace == before[one].trace
        deleted.delete_again(library)
        assert not len(library)


def test_no_file_is_left(library: Library) -> None:
    there = set(os.listdir(library.folder))
    kept = KeptAudio(library.folder)
    deleted = DeletedTakes(kept)
    for one in library.summaries():
        deleted.delete(library.load(one.id), library)
    # One that is killed here leaves nothing either: the file has no name.
    assert set(os.listdir(library.folder)) == there or os.name == "nt"
    del deleted
    assert set(os.listdir(library.folder)) == there


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
def test_a_take_whose_audio_cannot_be_kept_stays(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    deleted = DeletedTakes(KeptAudio(library.folder))
    with open("/dev/full", "w+b", buffering=0) as full:
        monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: full)
        with pytest.raises(LibraryError, match="was not deleted, since its audio could not be kept for Undo: the disk"):
            deleted.delete(library.load(f"{3:032x}"), library)
    assert len(library) == 4 and not len(deleted)
    monkeypatch.undo()
    assert len(library.load(f"{3:032x}").samples) == FRAMES + 3


@counts_open_files
def test_all_deletions_share_one_file(library: Library) -> None:
    kept, names = KeptAudio(library.folder), [one.id for one in library.summaries()]
    deletions = [DeletedTakes(kept) for _ in names]
    before = [library.load(one).samples for one in names]
    for one, name in zip(deletions, names, strict=True):
        one.delete(library.load(name), library)
    assert unnamed_files(library.folder) == 1
    del deletions[0], one
    deletions[0].restore(library)
    assert np.array_equal(library.load(names[1]).samples, before[1])
    deletions.clear()
    assert unnamed_files(library.folder) == 0


def test_they_come_back_in_another_library_if_theirs_was_set_aside(library: Library, tmp_path: Path) -> None:
    deleted, name = DeletedTakes(KeptAudio(library.folder)), f"{2:032x}"
    before = library.load(name)
    deleted.delete(before, library)
    library.close()
    with Library(tmp_path / "new") as other:
        deleted.restore(other)
        assert np.array_equal(other.load(name).samples, before.samples)
        deleted.delete_again(other)
        assert not len(other)
