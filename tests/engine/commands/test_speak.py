"""``paretone speak``: its messages before and with speech."""

from __future__ import annotations

from pathlib import Path

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
