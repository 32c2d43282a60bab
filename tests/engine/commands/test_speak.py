"""``paretone speak``: its messages before and with speech."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from safetensors import safe_open

from engine import cli
from engine.errors import SettingError
from engine.setting.profile import Profile
from tests.voices import FIRST

SPEAK = ["speak", "--model", "f5-mini", "--quiet", "--text", "Rice.", "--steps", "2"]
ON_TOP = "CFG-free weights already contain their guidance."


def test_help_says_for_which_models_an_option_is(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["speak", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "F5-TTS, MegaTTS 3: Number of steps from noise to speech" in said
    assert "Omni mini, OmniVoice: Number of steps in which a canvas" in said
    assert "MegaTTS 3: Guidance strength of the text" in said


def test_guidance_on_top_of_cfg_free_weights_is_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ["--out", str(tmp_path / "o.wav")]
    technique = ["--technique", "guidance_free:weight=0.5"]
    assert cli.main([*SPEAK, *out, *technique, "--guidance", "1.5"]) == 0
    assert f"--guidance 1.5 is ignored: {ON_TOP}" in capsys.readouterr().out
    assert cli.main([*SPEAK, *out, *technique]) == 0
    assert ON_TOP not in capsys.readouterr().out


def test_a_model_that_is_not_there_is_said_before_its_voices(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path))
    code = cli.main(["speak", "--model", "MegaTTS3", "--text", "Rice.", "--out", str(tmp_path / "o.wav")])
    assert code == 5
    assert "download it with 'paretone download MegaTTS3', or give --folder" in capsys.readouterr().err


def test_the_setting_is_kept_as_a_profile_that_exports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """So that settings without a strategy table become profiles as well, CFG-free ones among them."""
    kept, again, folder = tmp_path / "p.json", tmp_path / "again.json", tmp_path / "exported"
    technique = ["--technique", "guidance_free:weight=0.5", "--out", str(tmp_path / "o.wav")]
    assert cli.main([*SPEAK, *technique, "--keep-profile", str(kept)]) == 0
    assert f"Wrote the profile to {kept}." in capsys.readouterr().out
    profile = Profile.load(kept)
    assert profile.setting.technique("guidance_free").knobs["weight"] == 0.5
    assert profile.setting.options["steps"] == 2
    assert (profile.evidence.text, profile.evidence.voice) == ("Rice.", FIRST)
    assert profile.evidence.metrics["real_time_factor"] > 0
    run = ["speak", "--profile", str(kept), "--quiet", "--text", "Rice.", "--out", str(tmp_path / "b.wav")]
    assert cli.main([*run, "--keep-profile", str(again)]) == 0
    assert Profile.load(again).setting == profile.setting
    assert (tmp_path / "o.wav").read_bytes() == (tmp_path / "b.wav").read_bytes()
    export = ["export", "--quiet", "--profile", str(kept), "--out", str(folder), "--target"]
    for target in ("safetensors", "safetensors", "f5-tts"):  # What is there already says the same, and stays.
        assert cli.main([*export, target]) == 0, capsys.readouterr().err
    (weights,) = folder.glob("*.safetensors")
    with safe_open(weights, "np") as file:
        assert file.metadata()["weight"] == "0.5"


@pytest.mark.parametrize("inside", ["", "within"])
def test_a_file_is_no_folder_to_export_to(tmp_path: Path, capsys: pytest.CaptureFixture[str], inside: str) -> None:
    """And that is said before anything is read."""
    file = tmp_path / "file"
    file.touch()
    out = ["--profile", "none.json", "--out", str(file / inside)]
    assert cli.main(["export", "--target", "f5-tts", *out]) == 1
    assert capsys.readouterr().err == f"{file} is a file; give the name of a folder.\n"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (
            ["speak", "--technique", "error_curve", "--technique", "first_block", "--out", "o.wav"],
            "both decide about skipping",
        ),
        (["speak", "--technique", "spade", "--out", "o.wav"], "is not for models like F5 mini"),
        (["speak", "--technique", "nothing", "--out", "o.wav"], "There is no technique named 'nothing'"),
        (["compare", "baseline", "technique=error_curve,technique=first_block"], "both decide about skipping"),
        (["roofline", "--technique", "spade"], "is not for models like F5 mini"),
    ],
)
def test_techniques_that_cannot_be_are_refused_before_a_model_is_loaded(
    command: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main([*command, "--model", "f5-mini", "--text", "Rice."]) == SettingError.exit_code
    said = capsys.readouterr().err
    assert words in said and "Loading" not in said


# --- Where speech is written ------------------------------------------------------------------------------------------
PARETONE = [sys.executable, "-m", "engine"]


def spoken(*more: object, **how: Any) -> subprocess.CompletedProcess[bytes]:
    command = [*PARETONE, *SPEAK, *map(str, more)]
    return subprocess.run(command, capture_output=True, check=False, timeout=300, **how)


def test_speech_goes_to_standard_output_and_words_to_standard_error(tmp_path: Path) -> None:
    file = tmp_path / "o.wav"
    assert spoken("--out", file).returncode == 0
    done = spoken("--out", "-", "--json")
    assert (done.returncode, done.stdout) == (0, file.read_bytes())
    assert json.loads(done.stderr)["out"] == "standard output"
    command = " ".join([*PARETONE, *SPEAK, "--text", "'Rice is often served in round bowls.'"])
    stopped = subprocess.run(["sh", "-c", f"{command} --out - | head -c 4"], capture_output=True, check=False)
    assert stopped.stdout == b"RIFF"
    assert b"standard output could not be written: its reader has stopped." in stopped.stderr
    assert b"Traceback" not in stopped.stderr


def test_speech_goes_through_links_pipes_and_devices(tmp_path: Path) -> None:
    pipe, link, kept = tmp_path / "pipe", tmp_path / "link.wav", tmp_path / "kept.json"
    os.mkfifo(pipe)
    link.symlink_to("speech.wav")
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
        assert spoken("--out", link, "--keep-profile", pipe).returncode == 0
        assert reader.stdout is not None
        kept.write_bytes(reader.stdout.read())
    assert Profile.load(kept).setting.options["steps"] == 2
    assert link.is_symlink() and (tmp_path / "speech.wav").read_bytes()[:4] == b"RIFF"
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_pipe_without_a_reader_is_left_by_ctrl_c(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = [*PARETONE, *(one for one in SPEAK if one != "--quiet"), "--out", str(pipe)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("Waiting for a reader"):
                process.send_signal(signal.SIGINT)
                break
        assert process.wait(60) == cli.CANCELLED
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize(
    ("name", "words"),
    [("o.txt", "ends in none of .wav, .flac, .ogg, .mp3"), ("folder", "is a folder"), ("socket", "it is a socket")],
)
def test_what_cannot_be_written_is_said_before_anything_is_loaded(
    tmp_path: Path, name: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "folder").mkdir()
    socket.socket(socket.AF_UNIX).bind(str(tmp_path / "socket"))
    assert cli.main([*SPEAK, "--out", str(tmp_path / name), "--folder", "/nowhere"]) == 1
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_long_text_is_cancelled_while_it_is_read(tmp_path: Path, number: signal.Signals, code: int) -> None:
    command = [*PARETONE, "speak", "--model", "f5-mini", "--out", str(tmp_path / "o.wav"), "--text", "7" * 4_000]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line == "Reading 4,000 characters …\n":
                process.send_signal(number)
                break
        rest = process.stderr.read()
        assert process.wait(60) == code
    assert rest == "Cancelled.\n"
    assert not any(tmp_path.iterdir())
