"""The take library: what is kept comes back, and neither a crash nor a full disk leaves half of a take."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tracemalloc
import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from paretone import database
from paretone.database import AUDIO
from paretone.errors import LibraryError
from paretone.setting.knobs import Values
from paretone.setting.library import DATABASE, SCHEMA, DeletedTakes, KeptAudio, Library, LibraryDamaged
from paretone.setting.setting import Setting, UsedTechnique
from paretone.setting.take import (
    ACCEPTED,
    DECODED,
    RESAMPLED,
    DecodingCycle,
    DecodingTrace,
    Measurements,
    Metrics,
    Take,
    Trace,
)
from tests.app.damage import spoil_database

RATE = 24_000
PHONES = (("w", 0.1, 0.2), ("i", 0.2, 0.3))
FRAMES = 100_000


def take(number: int = 0, seconds: float = 0.01, **changes: object) -> Take:
    """A take that differs in everything from those with other numbers."""
    random = np.random.default_rng(number)
    used = UsedTechnique("ditreducio", Values(threshold=0.1))
    setting = Setting("f5-mini", Values(steps=16, guidance=2.0), (used,), number)
    samples = random.standard_normal(round(seconds * RATE)).astype(np.float32)
    measured = Measurements(seconds=0.1 + number, audio_seconds=seconds, evaluations=16, device="cpu")
    trace = Trace(((0.1, 0.2), (0.3,)), ("one", "two"), (0.5, 0.25), np.zeros((3, 2), np.float32), phones=PHONES)
    metrics = Metrics(-23.5, -1.25, 0.0, 0.125, mel_cepstral_distortion=1.5)
    values = {"id": uuid.UUID(int=number + 1).hex, "created": f"2026-11-21T10:00:{number:06.3f}+00:00", "voice": "anna"}
    values |= {"text": f"Größe “{number}” 日本", "setting": setting, "sample_rate": RATE, "samples": samples}
    values |= {"measurements": measured, "trace": trace, "label": f"take {number}", "fidelity_to": "baseline"}
    values |= {"log_mel_distance": 0.25, "notes": ("dropped 日本",), "metrics": metrics, "machine": "a machine"}
    values |= {"checkpoint": "ab" * 32, "remark": "“Harsh” s #s 日本"}
    return Take(**(values | changes))


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library(tmp_path / "takes") as opened:
        yield opened


def audio_files(folder: Path) -> list[str]:
    return sorted(os.listdir(folder / AUDIO))


def test_a_take_comes_back_whole_but_for_its_spectrogram(library: Library) -> None:
    kept = take()
    library.add(kept)
    library.close()
    library.close()
    for refused in (library.summaries, lambda: library.add(kept)):
        with pytest.raises(LibraryError, match="has been closed"):
            refused()
    with Library(library.folder) as again:
        loaded = again.load(kept.id)
    assert loaded == kept and loaded.samples.dtype == np.float32
    assert np.array_equal(loaded.samples, kept.samples) and loaded.trace.step_seconds == kept.trace.step_seconds
    assert loaded.trace.chunk_texts == kept.trace.chunk_texts and loaded.trace.phones == PHONES
    assert loaded.trace.mel is None


def test_how_tokens_came_to_be_comes_back(library: Library) -> None:
    cycles = (
        DecodingCycle((5,), target_seconds=0.25),
        DecodingCycle((7, 7, 9), (7, 7, 3), 2, RESAMPLED, (1.0, 0.75, 0.5), 0.125, 0.5),
        DecodingCycle((), (1920,), 1, ACCEPTED, (1.0,), 0.125, 0.5),
    )
    decoding = DecodingTrace(50.0, 1920, (cycles[:1], cycles[1:]), (0.0, 1.5), (False, True))
    library.add(take(trace=Trace(decoding=decoding)))
    assert library.load(take().id).trace.decoding == decoding and decoding.tokens == (5, 7, 7, 9)
    assert decoding.outcomes == ("decoded", "accepted", "accepted", "resampled")
    assert decoding.cycle_of == (0, 1, 1, 1) and decoding.seconds_of == (0.0, 1.5, 1.52, 1.54)
    for damaged in ([5, 0.25], [], [[5], 0.25, 0.0, DECODED, [], 0, [], 1]):
        with pytest.raises((TypeError, ValueError)):
            DecodingTrace.from_json({**decoding.to_json(), "passages": [[damaged]]})


def test_measurements_from_before_a_figure_was_measured_can_be_read(library: Library) -> None:
    library.add(take(1, measurements=Measurements(seconds=1.0, streaming_difference=-21.5)))
    assert library.summaries()[0].measurements.streaming_difference == -21.5
    written = json.dumps({"seconds": 1.0, "audio_seconds": 2.0, "device": "cpu"})
    with closing(sqlite3.connect(library.folder / DATABASE)) as direct, direct:
        direct.execute("UPDATE takes SET measurements = ?", (written,))
    (one,) = library.summaries()
    assert one.measurements == Measurements(seconds=1.0, audio_seconds=2.0, device="cpu")
    assert not one.measurements.busy and one.measurements.other_share is None


def test_a_take_timed_again_has_the_medians_of_all_repeats(library: Library) -> None:
    library.add(take(1, measurements=Measurements(seconds=4.0, audio_seconds=2.0, ops_ratio=0.5, peak_memory_bytes=7)))
    runs = [Measurements(seconds=one, audio_seconds=2.0, cpu_seconds=1.0, cores=2) for one in (1.1, 1.0, 9.0)]
    known = library.repeat(take(1).id, runs)
    assert known == library.summary(take(1).id) and known.repeats == tuple(runs)
    measured = known.measurements
    assert (measured.seconds, measured.real_time_factor, measured.cpu_seconds) == (1.1, 0.55, 1.0)
    assert (measured.ops_ratio, measured.peak_memory_bytes) == (0.5, 7), "what does not vary stays"
    assert library.repeat(take(1).id, runs[:2]).measurements.seconds == 1.1, "the median of all five"
    assert len(library.load(take(1).id).repeats) == 5
    with pytest.raises(LibraryError, match="no take"):
        library.repeat(take(2).id, runs)


def test_summaries_of_many_takes_need_no_audio(library: Library) -> None:
    library.add(take())
    with closing(sqlite3.connect(library.folder / DATABASE)) as direct, direct:
        direct.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1999) INSERT INTO takes "
            "SELECT printf('%032x', 1000 + i), printf('2027-01-01T00:00:%06d', i), text, voice, model, "
            "replace(setting, '\"seed\":0', '\"seed\":' || i), sample_rate, frames, measurements, trace, label, "
            "starred, fidelity_to, log_mel_distance, notes, machine, metrics, checkpoint, unfinished, repeats, remark "
            "FROM takes, n"
        )
    shutil.rmtree(library.folder / AUDIO)
    found = library.summaries()
    assert len(found) == len(library) == 2_000 and found[0].setting.seed == 1999 and found[-1].id == take().id
    with pytest.raises(LibraryError, match="could not be read"):
        library.load_audio(take().id)


def test_what_cannot_be_added_or_found_is_refused(library: Library) -> None:
    library.add(take(0))
    with pytest.raises(LibraryError, match="in the library already"):
        library.add(replace(take(1), id=take(0).id))
    with pytest.raises(LibraryError, match="32 hexadecimal digits"):
        library.add(take(0, id="../../evil"))
    for call in (library.load, library.delete, lambda one: library.star(one, True)):
        with pytest.raises(LibraryError, match="has no take 'none'"):
            call("none")
    assert np.array_equal(library.load_audio(take(0).id), take(0).samples)


def test_star_label_and_delete(library: Library) -> None:
    one, other = library.add(take(0)), library.add(take(1))
    library.star(one.id, True)
    library.label(one.id, "mine")
    assert library.summary(one.id) == replace(one, starred=True, label="mine")
    library.star(one.id, False)
    assert not library.summary(one.id).starred
    library.delete(one.id)
    assert one.id not in library and audio_files(library.folder) == [f"{other.id}.wav"]


def test_killed_while_adding(library: Library, tmp_path: Path) -> None:
    """A process that dies between file and row leaves no take, and the next opening no file."""
    library.add(take(0))
    code = (
        "import os, sys\n"
        "from paretone.setting import library\n"
        "from tests.engine.setting.test_library import take\n"
        "write = library.files.write_atomically\n"
        "def die(path, content):\n"
        "    write(path, content)\n"
        "    os._exit(9)\n"
        "library.files.write_atomically = die\n"
        "library.Library(sys.argv[1]).add(take(1))\n"
    )
    assert subprocess.run([sys.executable, "-c", code, str(library.folder)], check=False).returncode == 9
    assert len(audio_files(library.folder)) == 2 and [one.id for one in library.summaries()] == [take(0).id]
    (library.folder / AUDIO / ".part-x").write_bytes(b"left by a crash")
    (library.folder / AUDIO / "notes.txt").write_text("the user's own")
    with Library(tmp_path / "takes") as again:
        assert audio_files(tmp_path / "takes") == [f"{take(0).id}.wav", "notes.txt"]
        again.add(take(1))


def test_a_library_that_another_program_writes_to(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "PATIENCE_SECONDS", 0.05)
    with Library(library.folder) as impatient:
        other = sqlite3.connect(library.folder / DATABASE, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LibraryError, match="another program is writing to it"):
            impatient.add(take(0))
        other.execute("ROLLBACK")
        other.close()
        assert audio_files(library.folder) == []
        impatient.add(take(0))
        assert [one.id for one in library.summaries()] == [take(0).id], "both are open"


# --- Other versions, damage -------------------------------------------------------------------------------------------
def test_a_newer_library_is_left_alone(library: Library, tmp_path: Path) -> None:
    library.add(take(0))
    library.close()
    path = tmp_path / "takes" / DATABASE
    with closing(sqlite3.connect(path)) as direct, direct:
        direct.execute(f"PRAGMA user_version = {SCHEMA + 1}")
    before = path.read_bytes()
    with pytest.raises(LibraryError, match=rf"newer Paretone \(schema {SCHEMA + 1}, this one knows {SCHEMA}\)"):
        Library(tmp_path / "takes")
    assert path.read_bytes() == before
    assert audio_files(tmp_path / "takes") == [f"{take(0).id}.wav"]


def test_takes_of_the_first_schema_have_no_metrics_and_no_checkpoint(library: Library, tmp_path: Path) -> None:
    library.add(take(0))
    library.close()
    first = tmp_path / "first"
    shutil.copytree(tmp_path / "takes", first)
    with closing(sqlite3.connect(first / DATABASE)) as direct, direct:
        for column in ("metrics", "checkpoint", "unfinished", "repeats", "remark"):
            direct.execute(f"ALTER TABLE takes DROP COLUMN {column}")
        direct.execute("PRAGMA user_version = 1")
    for read_only in (True, False):
        with Library(first, read_only=read_only) as older:
            assert older.load(take(0).id) == take(0, metrics=Metrics(), checkpoint="", remark="")
    with Library(first) as newer:
        newer.add(take(1))
        assert newer.load(take(1).id) == take(1)


def test_an_unreadable_library_can_be_set_aside(library: Library, tmp_path: Path) -> None:
    content = b"SQLite format 3\0" + b"\xff" * 5000
    library.add(take(0))
    library.close()
    folder = tmp_path / "takes"
    (folder / DATABASE).write_bytes(content)
    with pytest.raises(LibraryDamaged, match="Set it aside"):
        Library(folder)
    assert audio_files(folder) == [f"{take(0).id}.wav"]
    backup = Library.set_aside(folder)
    assert (backup / DATABASE).read_bytes() == content and audio_files(backup) == [f"{take(0).id}.wav"]
    with Library(folder) as fresh:
        assert fresh.summaries() == ()
        fresh.add(take(1))


def test_a_damaged_library_can_be_read_where_it_is_sound(library: Library, tmp_path: Path) -> None:
    for number in range(8):
        library.add(take(number))
    library.close()
    spoil_database(tmp_path / "takes" / DATABASE, "takes_by_creation")
    with Library(tmp_path / "takes") as damaged:
        assert damaged.damage and damaged.load(take(3).id) == take(3)
        with pytest.raises(LibraryError, match="can only be read because it is damaged"):
            damaged.add(take(99))
        assert len(audio_files(tmp_path / "takes")) == 8


def test_read_only(library: Library, tmp_path: Path) -> None:
    library.add(take(0))
    with Library(tmp_path / "takes", read_only=True) as shared:
        assert shared.load(take(0).id) == take(0)
        with pytest.raises(LibraryError, match="can only be read; set it aside"):
            shared.star(take(0).id, True)
        library.add(take(1))
        assert len(shared) == 2
    library.close()
    with Library(tmp_path / "takes", read_only=True) as alone:
        assert len(alone) == 2
    with pytest.raises(LibraryError, match="no take library"):
        Library(tmp_path / "nowhere", read_only=True)
    (tmp_path / "a file").write_text("")
    with pytest.raises(LibraryError, match="could not be opened"):
        Library(tmp_path / "a file")
    with closing(sqlite3.connect(tmp_path / DATABASE)) as direct, direct:
        direct.execute("CREATE TABLE recipes (name TEXT)")
    with pytest.raises(LibraryError, match="belongs to another program"):
        Library(tmp_path)


# --- A full disk ------------------------------------------------------------------------------------------------------
def test_a_full_disk_keeps_what_was_there(tiny_disk: Path) -> None:
    with Library(tiny_disk) as library:
        library.add(take(0))
        with pytest.raises(LibraryError, match="the disk is full; free some space"):
            library.add(take(1, seconds=10))
        assert [one.id for one in library.summaries()] == [take(0).id]
        assert audio_files(tiny_disk) == [f"{take(0).id}.wav"] and library.load(take(0).id) == take(0)
        library.add(take(2))
        assert len(library) == 2


@pytest.fixture
def four(tmp_path: Path) -> Iterator[Library]:
    with Library(tmp_path) as made:
        for number in range(4):
            samples = np.random.default_rng(number).standard_normal(FRAMES + number).astype(np.float32)
            setting = Setting("f5-mini", Values({"steps": 8}), seed=number)
            said, measured = (f"{number:032x}", f"2026-01-01T00:00:{number:02d}", "A text."), Measurements(1.0)
            made.add(Take(*said, "anna", setting, 24_000, samples, measurements=measured))
        yield made


def test_what_was_deleted_comes_back_whole_and_its_audio_is_not_in_memory(four: Library) -> None:
    names, there = [one.id for one in four.summaries()], set(os.listdir(four.folder))
    before, summaries = {one: four.load(one) for one in names}, four.summaries()
    tracemalloc.start()
    try:
        deleted = DeletedTakes(KeptAudio(four.folder))
        for one in names:
            deleted.delete(four.load(one), four)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < FRAMES * 4, "less than the audio of one take"
    assert not len(four) and list(deleted) == names and os.listdir(four.folder / "audio") == []
    for _ in range(2):
        deleted.restore(four)
        deleted.restore(four)  # What is there already stays.
        assert four.summaries() == summaries
        for one in names:
            after = four.load(one)
            assert np.array_equal(after.samples, before[one].samples) and after.trace == before[one].trace
        deleted.delete_again(four)
        assert not len(four)
    # One that is killed here leaves nothing either: the file has no name.
    assert set(os.listdir(four.folder)) == there or os.name == "nt"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
def test_a_take_whose_audio_cannot_be_kept_stays(four: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    deleted = DeletedTakes(KeptAudio(four.folder))
    with open("/dev/full", "w+b", buffering=0) as full:
        monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: full)
        with pytest.raises(LibraryError, match="was not deleted, since its audio could not be kept for Undo: the disk"):
            deleted.delete(four.load(f"{3:032x}"), four)
    assert len(four) == 4 and not len(deleted)
    monkeypatch.undo()
    assert len(four.load(f"{3:032x}").samples) == FRAMES + 3
