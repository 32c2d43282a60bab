"""Processes killed at random moments of trainings, exports, library writes and listening tests: nothing finished
is lost, nothing is counted twice, and the next one goes on. 100 kills where tests are thorough, with those of
studies in ``studies/test_running.py``."""

import multiprocessing
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save

from paretone import files
from paretone.export.delivery import deliver
from paretone.files import ABANDONED_SECONDS, TEMPORARY
from paretone.listening import trials
from paretone.models.files.checkpoints import read_checkpoint
from paretone.setting.knobs import Values
from paretone.setting.library import Library
from paretone.setting.setting import Setting
from paretone.setting.take import Measurements, Take
from paretone.techniques.searched_grid.searching import Journal
from paretone.training.runs import log_of, save_with_log
from paretone.training.session import CHECKPOINT, LOG, Budget, Intervals, TrainingSession, read_log
from tests.engine.listening.listeners import abx_trial
from tests.workload import workload

KILLS = workload(20, 3)
"""Kills of each kind; studies have as many."""
EXPORTS, TAKES, LINES = workload((300, 600, 1200), (100, 300, 600))
"""What there is to do, which takes longer than the kills."""
LONGEST_SECONDS = 0.15
"""After that, at the latest, a process is killed."""


@dataclass(frozen=True)
class Kind:
    """What a process does until it is killed or at its end, and what must hold then."""

    name: str
    work: Callable[[Path], None]
    """Goes on where the process before was killed."""
    check: Callable[[Path], object]
    """What is finished, after looking at it; later it is still there."""


# --- Killing ---------------------------------------------------------------------------------------------------------
def killed(work: Callable[[Path], None], folder: Path, moment: float) -> bool:
    """Kill ``work``, a process that writes into ``folder``, after ``moment`` seconds; whether it still ran."""
    # A server with torch loaded makes processes in no time, so that they are killed at work.
    context = multiprocessing.get_context("spawn" if sys.platform == "win32" else "forkserver")
    if sys.platform != "win32":
        context.set_forkserver_preload([__name__])
    reading, writing = context.Pipe(duplex=False)
    process = context.Process(target=_begin, args=(work, folder, writing), daemon=True)
    process.start()
    writing.close()
    try:
        reading.recv()
        process.join(moment)
        at_work = process.is_alive()
    finally:
        process.kill()
        process.join()
        reading.close()
    return at_work


def _begin(work: Callable[[Path], None], folder: Path, begun: object) -> None:
    begun.send(None)
    work(folder)


def note(folder: Path, line: str) -> None:
    """Note in the file of what is finished, which nothing else writes: whole, or not at all."""
    handle = os.open(folder / "finished", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(handle, line.encode() + b"\n")
    os.close(handle)


def finished(folder: Path) -> list[str]:
    path = folder / "finished"
    return path.read_text().splitlines() if path.exists() else []


# --- A training and its result ---------------------------------------------------------------------------------------
STEPS = workload(1200, 300)


class Adding:
    """A recipe whose steps add draws to weights: every step depends on all before it, and takes no time."""

    device = torch.device("cpu")
    name = "adding"

    def __init__(self) -> None:
        self.weights = torch.zeros(50_000)
        self.generator = torch.Generator().manual_seed(5)

    def describe(self) -> dict[str, object]:
        return {"data": "none"}

    def step(self, number: int, progress: float) -> dict[str, float]:
        self.weights += torch.randn(self.weights.shape, generator=self.generator)
        return {"loss": float(self.weights.abs().mean())}

    def validate(self) -> dict[str, float]:
        return {"mean": float(self.weights.mean())}

    def state(self) -> dict[str, object]:
        return {"weights": self.weights, "generator": self.generator.get_state()}

    def restore(self, state: dict[str, torch.Tensor]) -> None:
        self.weights = state["weights"]
        self.generator.set_state(state["generator"])

    def save(self, path: Path) -> None:
        files.write_atomically(path, save({"weights": self.weights}))


def train(folder: Path, steps: int = STEPS) -> None:
    """Train a little further than the process before, and write the result each time that the budget is spent."""
    recipe, work = Adding(), folder / "work"
    intervals = Intervals(log_steps=1, validation_steps=20, checkpoint_seconds=0.0)
    session = TrainingSession(recipe, work, Budget(steps=steps), intervals, report=lambda line: None)
    session.train(resume=(work / CHECKPOINT).exists())
    save_with_log(recipe.save, folder / "made" / "weights.safetensors", work)


def trained(folder: Path) -> Counter[str]:
    """Every step up to the checkpoint was logged once."""
    work = folder / "work"
    if not (work / CHECKPOINT).exists():
        return Counter()
    step = read_checkpoint(work / CHECKPOINT)["step"]
    logged = [one["step"] for one in read_log(work / LOG) if "losses" in one]
    assert [one for one in logged if one <= step] == list(range(1, step + 1))
    made = sorted((folder / "made").glob("*.safetensors")) if (folder / "made").exists() else []
    assert [one.name for one in made] in ([], ["weights.safetensors"])
    return Counter({f"step {one}": 1 for one in range(1, step + 1)} | {one.name: 1 for one in made})


def test_a_training_killed_at_random_moments_ends_as_one_that_was_not(tmp_path: Path) -> None:
    killed_at_random(Kind("training", train, trained), tmp_path / "killed")
    for _ in range(2):  # A run that has ended may be resumed again; it makes nothing new.
        train(tmp_path / "killed")
    train(tmp_path / "whole")
    ours, theirs = tmp_path / "killed", tmp_path / "whole"
    assert sorted(one.name for one in (ours / "made").iterdir()) == ["weights.safetensors", "weights.training.jsonl"]
    first, second = ((one / "made" / "weights.safetensors").read_bytes() for one in (ours, theirs))
    assert first == second
    names = ("step", "losses", "validation")
    first, second = (
        [{name: one.get(name) for name in names} for one in read_log(folder / "work" / LOG) if {*names[1:]} & {*one}]
        for folder in (ours, theirs)
    )
    assert first == second
    assert read_log(log_of(ours / "made" / "weights.safetensors"))[0] == read_log(ours / "work" / LOG)[0]
    # What a kill left half written is removed after an hour, see below.
    assert sorted(one for one in os.listdir(ours / "work") if not one.startswith(TEMPORARY)) == [CHECKPOINT, LOG]


# --- Exports ---------------------------------------------------------------------------------------------------------
def content(name: str) -> bytes:
    return np.random.default_rng(list(name.encode())).bytes(40_000)


def export(folder: Path) -> None:
    """Deliver folders of files, and write single files, one after the other."""
    done = set(finished(folder))
    for number in range(EXPORTS):
        place, names = folder / f"export-{number}", ("weights", "inner/config.json", "README.md")
        if place.name not in done:
            deliver(place, {name: content(f"{number} {name}") for name in names}, lambda done, total: None)
            note(folder, place.name)
        path = folder / f"profile-{number}.json"
        if path.name not in done:
            files.write(path, content(path.name))
            note(folder, path.name)


def exported(folder: Path) -> Counter[str]:
    """Every file is whole wherever it is, and everything that was finished is there."""
    there = Counter()
    for path in (one for one in folder.rglob("*") if one.is_file()):
        parts = path.relative_to(folder).parts
        if parts[0] == "finished" or any(one.startswith(TEMPORARY) for one in parts):
            continue
        if len(parts) > 1:
            name = f"{parts[0].removeprefix('export-')} {'/'.join(parts[1:])}"
        assert path.read_bytes() == content(name if len(parts) > 1 else path.name)
        there[parts[0]] += 1
    done = finished(folder)
    assert all(there[one] == (3 if one.startswith("export") else 1) for one in done)
    return Counter(done)


def test_exports_killed_at_random_moments_are_whole_or_not_there(tmp_path: Path) -> None:
    killed_at_random(Kind("exports", export, exported), tmp_path)
    export(tmp_path)
    assert set(exported(tmp_path).values()) == {1}
    # What killed processes left is removed by the next one that writes there, once it is old.
    left = tmp_path / f"{TEMPORARY}left"
    left.mkdir()
    (left / "half").write_bytes(b"x")
    before = time.time() - 2 * ABANDONED_SECONDS
    for path in tmp_path.rglob("*"):
        os.utime(path, (before, before), follow_symlinks=False)
    assert not killed(write_everywhere, tmp_path, moment=60.0)
    assert [one for one in tmp_path.rglob("*") if one.name.startswith(TEMPORARY)] == []


def write_everywhere(folder: Path) -> None:
    """So that what was left in each folder is looked for."""
    for place in (folder, *(one for one in sorted(folder.rglob("*")) if one.is_dir())):
        if not any(one.startswith(TEMPORARY) for one in place.relative_to(folder).parts):
            files.write_atomically(place / "last", b"")


# --- The take library ------------------------------------------------------------------------------------------------
def take(number: int) -> Take:
    samples = np.full(2_000, number, np.float32)
    setting = Setting("f5-mini", Values({"steps": 8}), seed=number)
    at, measured = f"2026-01-01T00:00:{number:06d}", Measurements(1.0, 1.0, 0.1)
    return Take(f"{number:032x}", at, "A text.", "anna", setting, 24_000, samples, measurements=measured)


def keep(folder: Path) -> None:
    """Keep takes, star every second one, delete every third one."""
    done = finished(folder)
    with Library(folder / "takes") as library:
        for number in range(TAKES):
            one = take(number)
            if f"kept {number}" not in done:
                if one.id not in library:
                    library.add(one)
                note(folder, f"kept {number}")
            if number % 2 == 0 and f"starred {number}" not in done and one.id in library:
                library.star(one.id, True)
                note(folder, f"starred {number}")
            if number % 3 == 0 and f"deleted {number}" not in done:
                if one.id in library:
                    library.delete(one.id)
                note(folder, f"deleted {number}")


def kept(folder: Path) -> Counter[str]:
    """Takes and their audio agree with what was done."""
    done = finished(folder)
    with Library(folder / "takes") as library:
        there = {one.id: one for one in library.summaries()}
        assert {f"{one}.wav" for one in there} == set(os.listdir(folder / "takes" / "audio"))
        for one in there:
            assert set(library.load_audio(one)) == {float(int(one, 16))}
    for number in range(TAKES):
        name = f"{number:032x}"
        if f"deleted {number}" in done:
            assert name not in there
        elif f"kept {number}" in done and number % 3:
            assert name in there
            assert there[name].starred or f"starred {number}" not in done
    return Counter(done)


def test_a_library_killed_at_random_moments_has_what_was_kept(tmp_path: Path) -> None:
    killed_at_random(Kind("library", keep, kept), tmp_path)
    keep(tmp_path)
    assert max(kept(tmp_path).values()) == 1
    with Library(tmp_path / "takes") as library:
        assert len(library) == TAKES - len(range(0, TAKES, 3))


# --- Lines -----------------------------------------------------------------------------------------------------------
def answer(folder: Path) -> None:
    """Add trials to the file of a session, and grids to the journal of a search."""
    os.environ["PARETONE_DATA"] = str(folder)
    done = finished(folder)
    journal = Journal("search")
    known = {one.number for one in trials.read(folder / "listening").trials}
    for number in range(LINES):
        if number not in known:
            one = replace(abx_trial("s", number), created="2026-01-01T00:00:00.000+00:00")
            trials.append(one, folder / "listening")
        grid = (0.0, number / LINES, 1.0)
        if grid not in journal.known:
            journal.add(grid, (float(number),))
        if f"{number}" not in done:
            note(folder, f"{number}")


def answered(folder: Path) -> Counter[str]:
    os.environ["PARETONE_DATA"] = str(folder)
    done = finished(folder)
    found = Counter(one.number for one in trials.read(folder / "listening").trials)
    assert set(found.values()) <= {1}
    assert {int(one) for one in done} <= set(found)
    assert {(0.0, int(one) / LINES, 1.0) for one in done} <= set(Journal("search").known)
    return Counter(done)


def test_trials_and_journals_killed_at_random_moments_have_every_line_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path))
    killed_at_random(Kind("lines", answer, answered), tmp_path)
    # A line that is cut off, as by a failing machine, costs that line and no other.
    for path in (*(tmp_path / "listening").iterdir(), *(tmp_path / "grid-searches").iterdir()):
        path.write_bytes(path.read_bytes()[:-9])
    answer(tmp_path)
    assert sorted(map(int, answered(tmp_path))) == list(range(LINES))


def killed_at_random(kind: Kind, folder: Path) -> None:
    """Kill ``kind`` again and again; what was finished once is finished for good."""
    folder.mkdir(exist_ok=True)
    draw, kills_at_work, productive = random.Random(kind.name), 0, 0
    before: Counter[str] = Counter()
    while kills_at_work < KILLS:
        moment = LONGEST_SECONDS * draw.random() ** 2  # Most of them early: beginning is a moment like others.
        if not killed(kind.work, folder, moment):
            break  # It has done everything.
        kills_at_work += 1
        after = kind.check(folder)
        assert set(before) <= set(after), f"{kind.name}, killed after {moment:.3f} s"
        productive += after != before
        before = after
    print(f"{kind.name}: {kills_at_work} kills at work, {productive} after something new was finished")
    assert kills_at_work >= KILLS // 2
