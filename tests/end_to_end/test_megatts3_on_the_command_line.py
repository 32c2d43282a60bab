"""MegaTTS 3 from the command line, from a baseline to a profile that runs: a small model of random weights in the
layout of the bundled one, so that every command runs for real in seconds."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from paretone import cli
from paretone.setting.profile import Profile
from tests.engine.models.minis.small_megatts3_mini import LAYERS, write_bundled

MODEL = "megatts3-mini"
TEXT = "Rice is often served."
OPTIONS = ("--steps", "3", "--seed", "5")

Run = Callable[..., dict]


@pytest.fixture
def paretone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command on the small model, and gives what it wrote for machines."""
    folder = tmp_path / "models" / MODEL
    write_bundled(folder)

    def run(command: str, *arguments: object) -> dict:
        capsys.readouterr()
        place = ("--folder", folder, "--device", "cpu", "--json")
        code = cli.main([command, *map(str, (*arguments, *place))])
        captured = capsys.readouterr()
        assert code == 0, captured.err
        return json.loads(captured.out)

    return run


def samples(path: Path) -> np.ndarray:
    return soundfile.read(path, dtype="float32")[0]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_speak_calibrate_export_and_run(paretone: Run, tmp_path: Path) -> None:
    spoken, accelerated, again = (tmp_path / f"{name}.wav" for name in ("baseline", "accelerated", "again"))
    profile, table = tmp_path / "profile.json", tmp_path / "table.json"
    said = paretone("speak", "--model", MODEL, "--text", TEXT, *OPTIONS, "--out", spoken)
    assert said["ops_ratio"] == 1.0
    assert {"intelligibility", "similarity", "overshoot"} <= set(said["setting"]["options"])

    found = paretone(
        "calibrate", "--model", MODEL, "--text", TEXT, *OPTIONS, "--threshold", 0.5, "--profile", profile,
        "--table", table,
    )  # fmt: skip
    assert found["ops_ratio"] < 1
    exported = Profile.load(profile)
    assert (exported.artefact("table").layers, exported.artefact("table").steps) == (LAYERS, 3)
    assert {"intelligibility", "similarity", "overshoot"} <= set(exported.artefact("table").compatibility.sampling)

    by_table = paretone("speak", "--model", MODEL, "--text", TEXT, *OPTIONS, "--table", table, "--out", accelerated)
    assert by_table["ops_ratio"] == pytest.approx(found["ops_ratio"])
    ran = paretone("speak", "--profile", profile, "--text", TEXT, "--out", again)
    assert ran["ops_ratio"] == pytest.approx(found["ops_ratio"])
    # One setting, one sound: from the table, from the profile, and from Python.
    assert np.array_equal(samples(accelerated), samples(again))
    direct = exported.synthesise(TEXT, device="cpu", folder=str(tmp_path / "models" / MODEL))
    assert np.array_equal(direct.samples, samples(again))
    # And the baseline differs by the technique only: equally long, with the same noise.
    assert samples(spoken).shape == samples(again).shape
    assert not np.array_equal(samples(spoken), samples(again))
    plain = exported.baseline.synthesise(TEXT, device="cpu", folder=str(tmp_path / "models" / MODEL))
    assert np.array_equal(plain.samples, samples(spoken))

    compared = paretone("compare", "baseline", profile, "--text", TEXT, "--repeats", 1)
    assert compared["log_mel_distance"] > 0
    assert {one["technique"] for one in compared["differences"]} == {True}


def test_calibrating_as_the_official_code_does(paretone: Run, tmp_path: Path) -> None:
    official = ("--metric", "relative", "--compare", "combined", "--check-phase", "first_half")
    said = ("--model", MODEL, "--text", "Rice.", "--steps", "3", "--threshold", "1.2", "--no-evidence", *official)
    profile = tmp_path / "profile.json"
    found = paretone("calibrate", *said, "--profile", profile)
    assert (found["metric"], found["compare"]) == ("relative", "combined")
    knobs = Profile.load(profile).setting.technique("ditreducio").knobs
    assert (knobs["compare"], knobs["check_phase"]) == ("combined", "first_half")
