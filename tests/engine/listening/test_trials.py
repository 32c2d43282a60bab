"""Records of trials: written whole or not at all, and read back whatever happened to the file."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from paretone.listening import trials
from paretone.listening.trials import CUTOFFS, LOW, MID, RecordError, low_passed
from tests.engine.listening.listeners import abx_trial, preference_trial


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    first, second = abx_trial("s1", 1), preference_trial("s2", 1, vote=-2)
    paths = [trials.append(one, tmp_path / "listening") for one in (first, second)]
    assert [path.name for path in paths] == ["abx-s1.jsonl", "ccr-s2.jsonl"]
    found = trials.read(tmp_path / "listening")
    assert found.problems == ()
    assert [replace(one, created="") for one in found.trials] == [first, second]
    assert found.trials[0].created.endswith("+00:00")
    line = json.loads(paths[0].read_text())
    assert line["schema"] == 1
    assert line["conditions"][0]["gain"] == first.conditions[0].gain


@pytest.mark.parametrize(
    "spoil",
    [
        lambda line: line[: len(line) // 2],
        lambda line: "[1, 2]",
        lambda line: line.replace('"abx"', '"abc"'),
        lambda line: line.replace('"said":1', '"said":7').replace('"said":0', '"said":7'),
        lambda line: line.replace('"order":[0,1,', '"order":[0,9,'),
        lambda line: line.replace('"number":1', '"number":"1"'),
        lambda line: "\x00\udcff\udcfe" * 10,
    ],
)
def test_damaged_lines_are_passed_over_and_told(tmp_path: Path, spoil: Callable[[str], str]) -> None:
    path = trials.append(abx_trial("s", 1), tmp_path)
    whole = path.read_text()
    damaged = spoil(whole.rstrip("\n"))
    assert damaged != whole.rstrip("\n")
    # Without an end of line, as a crash leaves it: the next trial must not be drawn into it.
    path.write_bytes(damaged.encode("utf-8", "surrogateescape"))
    trials.append(abx_trial("s", 2), tmp_path)
    found = trials.read(tmp_path)
    assert [one.number for one in found.trials] == [2] and len(found.problems) == 1
    assert str(path) in found.problems[0]


def test_lines_of_a_newer_version_are_left_to_it(tmp_path: Path) -> None:
    path = trials.append(abx_trial("s", 1), tmp_path)
    path.write_text(path.read_text() + json.dumps({"schema": 99}) + "\n")
    found = trials.read(tmp_path)
    assert len(found.trials) == 1 and "newer Paretone" in found.problems[0]


def test_a_full_disk_adds_nothing_and_says_so(tiny_disk: Path) -> None:
    folder = tiny_disk / "listening"
    path = trials.append(abx_trial("s", 1), folder)
    room = os.statvfs(tiny_disk)
    filler = tiny_disk / "filler"
    filler.write_bytes(bytes(room.f_bavail * room.f_frsize))
    before, huge = path.read_bytes(), abx_trial("s", 2, text="long " * 20000)
    with pytest.raises(RecordError, match="disk is full"):
        trials.append(huge, folder)
    assert path.read_bytes() == before
    filler.unlink()
    trials.append(huge, folder)
    assert [one.number for one in trials.read(folder).trials] == [1, 2]


def test_many_writers_of_one_session_do_not_mix_their_lines(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from paretone.listening import trials\n"
        "from tests.engine.listening.listeners import abx_trial\n"
        "for one in range(40): trials.append(abx_trial('s', one + 1, text=sys.argv[1] * 500), Path(sys.argv[2]))"
    )
    children = [subprocess.Popen([sys.executable, "-c", code, letter, str(tmp_path)]) for letter in "ab"]
    assert [child.wait() for child in children] == [0, 0]
    found = trials.read(tmp_path)
    assert found.problems == () and len(found.trials) == 80


def test_sessions_that_were_broken_off_count_for_nothing() -> None:
    whole = [abx_trial("whole", number, planned=3) for number in (1, 2, 4)]
    void = replace(abx_trial("whole", 3, planned=3), void=True)
    broken = [abx_trial("broken", number, planned=3) for number in (1, 2)]
    assert trials.complete_sessions([*whole, void, *broken]) == (tuple(whole),)


@pytest.mark.parametrize("rate", [16000, 48000])
@pytest.mark.parametrize("name", [LOW, MID])
def test_the_filters_meet_the_mask(rate: int, name: str) -> None:
    cutoff, pulse = CUTOFFS[name], np.zeros(rate, np.float32)
    pulse[rate // 2] = 1
    spectrum = np.abs(np.fft.rfft(low_passed(pulse, rate, cutoff)))
    frequencies, gains = np.fft.rfftfreq(rate, 1 / rate), 20 * np.log10(np.maximum(spectrum, 1e-9))
    assert np.abs(gains[frequencies <= cutoff]).max() <= 0.1
    assert gains[frequencies >= cutoff + 500].max() <= -25
    assert gains[frequencies >= cutoff + 1000].max(initial=-99) <= -50


def test_nothing_is_delayed_or_cut_off() -> None:
    tone = np.sin(2 * np.pi * 1000 * (np.arange(24000) / 24000)).astype(np.float32)
    filtered = low_passed(tone, 24000, CUTOFFS[LOW])
    assert (len(filtered), filtered.dtype) == (len(tone), np.float32)
    np.testing.assert_allclose(filtered[500:-500], tone[500:-500], atol=0.012)
    assert np.argmax(np.correlate(filtered[1000:3000], tone[990:3010], "valid")) == 10
    noise = np.random.default_rng(0).standard_normal(800).astype(np.float32)
    np.testing.assert_array_equal(low_passed(noise, 8000, CUTOFFS[MID]), noise)
