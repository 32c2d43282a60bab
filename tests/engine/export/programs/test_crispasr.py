"""Profiles for CrispASR: the script calls it with flags and variables."""

from pathlib import Path

import pytest

from paretone.export.programs.crispasr import TARGET
from paretone.export.targets import account, export
from paretone.observer import Observer
from paretone.setting.knobs import Values
from paretone.setting.setting import UsedTechnique
from tests.engine.export.programs.scripts import called, flags, needs_shell, profile


@needs_shell
def test_f5_is_run_with_its_flags(tmp_path: Path) -> None:
    export(profile("F5TTS_v1_Base", steps=7, guidance=1.5, speed=1.2), "crispasr", tmp_path, Observer())
    words, _ = called(tmp_path / "speak.sh", "crispasr", "It's a text.", "o.wav")
    wanted = {"--backend": "f5-tts", "--tts": "It's a text.", "--tts-output": "o.wav", "--seed": "5"}
    assert flags(words) == {**wanted, "--tts-steps": "7", "--tts-cfg-scale": "1.5", "--tts-speed": "1.2"}
    assert words[words.index("-m") + 1] == "auto"
    said = "A text.", "o.wav", "v.wav", "What is said.", "--i-have-rights"
    given = flags(called(tmp_path / "speak.sh", "crispasr", *said)[0])
    assert (given["--voice"], given["--ref-text"]) == ("v.wav", "What is said.") and "--i-have-rights" in given
    assert "CrispASR itself was not run" in (tmp_path / "README.md").read_text()


@needs_shell
def test_omnivoice_is_run_with_its_variables(tmp_path: Path) -> None:
    stride = UsedTechnique("guidance_stride", Values(every=3, between="reuse"))
    given = profile("OmniVoice", stride, steps=16, guidance=1.2, class_temperature=0.4, instruct="female, low pitch")
    export(given, "crispasr", tmp_path, Observer())
    words, variables = called(tmp_path / "speak.sh", "crispasr", "A text.", "o.wav")
    assert flags(words)["--instruct"] == "female, low pitch"
    assert "--tts-cfg-scale" not in flags(words) and "--language" not in flags(words)
    own = {name: value for name, value in variables.items() if name.startswith("CRISPASR_")}
    wanted = {"GUIDANCE": "1.2", "POS_TEMP": "5", "CLASS_TEMP": "0.4", "CFG_INTERVAL": "3"}
    assert own == {f"CRISPASR_OMNIVOICE_{name}": value for name, value in wanted.items()}


@pytest.mark.parametrize(
    ("model", "options", "seed", "dropped"),
    [
        ("F5TTS_v1_Base", {"steps": 128}, 5, "Steps"),
        ("F5TTS_v1_Base", {}, 0, "Seed"),
        ("F5TTS_v1_Base", {}, 2**40, "Seed"),
        ("F5TTS_v1_Base", {"solver": "midpoint"}, 5, "Solver"),
        ("OmniVoice", {"shift": 0.3}, 5, "Schedule"),
        ("OmniVoice", {"duration": 3.0}, 5, "Duration"),
    ],
)
def test_what_it_cannot_do_is_left_out(tmp_path: Path, model: str, options: dict, seed: int, dropped: str) -> None:
    given = profile(model, seed=seed, **options)
    assert dropped in [line.what for line in account(TARGET, given).drops]
    export(given, "crispasr", tmp_path, Observer())
    script = (tmp_path / "speak.sh").read_text()
    assert ("--tts-steps" in script) is (dropped != "Steps")
    assert ("--seed" in script) is (dropped != "Seed")


def test_what_it_has_no_weights_for_is_refused() -> None:
    assert "CrispASR has F5-TTS v1 Base and OmniVoice" in account(TARGET, profile("F5TTS_Base")).why_not
    assert "guidance in its weights" in account(TARGET, profile("F5TTS_v1_Base"), guided_weights=True).why_not
