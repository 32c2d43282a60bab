"""Profiles for CrispASR: the script calls it with flags and variables."""

from __future__ import annotations

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
    assert flags(words) == {
        "--backend": "f5-tts",
        "--tts": "It's a text.",
        "--tts-output": "o.wav",
        "--tts-steps": "7",
        "--tts-cfg-scale": "1.5",
        "--tts-speed": "1.2",
        "--seed": "5",
    }
    assert words[words.index("-m") + 1] == "auto"
    words, _ = called(
        tmp_path / "speak.sh", "crispasr", "A text.", "o.wav", "v.wav", "What is said.", "--i-have-rights"
    )
    given = flags(words)
    assert (given["--voice"], given["--ref-text"]) == ("v.wav", "What is said.")
    assert "--i-have-rights" in given
    assert "CrispASR itself was not run" in (tmp_path / "README.md").read_text()


@needs_shell
def test_omnivoice_is_run_with_its_variables(tmp_path: Path) -> None:
    stride = UsedTechnique("guidance_stride", Values(every=3, between="reuse"))
    given = profile("OmniVoice", stride, steps=16, guidance=1.2, class_temperature=0.4, instruct="female, low pitch")
    export(given, "crispasr", tmp_path, Observer())
    words, variables = called(tmp_path / "speak.sh", "crispasr", "A text.", "o.wav")
    assert flags(words)["--instruct"] == "female, low pitch"
    assert "--tts-cfg-scale" not in flags(words) and "--language" not in flags(words)
    assert {name: value for name, value in variables.items() if name.startswith("CRISPASR_")} == {
        "CRISPASR_OMNIVOICE_GUIDANCE": "1.2",
        "CRISPASR_OMNIVOICE_POS_TEMP": "5",
        "CRISPASR_OMNIVOICE_CLASS_TEMP": "0.4",
        "CRISPASR_OMNIVOICE_CFG_INTERVAL": "3",
    }


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
def test_what_it_cannot_do_is_dropped_and_left_out(
    tmp_path: Path, model: str, options: dict, seed: int, dropped: str
) -> None:
    given = profile(model, seed=seed, **options)
    assert dropped in [line.what for line in account(TARGET, given).drops]
    export(given, "crispasr", tmp_path, Observer())
    script = (tmp_path / "speak.sh").read_text()
    assert ("--tts-steps" in script) is (dropped != "Steps")
    assert ("--seed" in script) is (dropped != "Seed")


def test_what_it_has_no_weights_for_is_refused() -> None:
    assert "CrispASR has F5-TTS v1 Base and OmniVoice" in account(TARGET, profile("F5TTS_Base")).why_not
    assert "guidance in its weights" in account(TARGET, profile("F5TTS_v1_Base"), guided_weights=True).why_not
