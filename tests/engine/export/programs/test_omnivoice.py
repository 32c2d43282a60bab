"""Profiles for the official omnivoice package: run in it, and as files."""

from pathlib import Path

import pytest

from paretone.export.copied import paretone_omnivoice
from paretone.export.programs.omnivoice import FILE, KIND, SCHEMA, TARGET
from paretone.export.targets import account, export
from paretone.observer import Observer
from paretone.setting.knobs import Values
from paretone.setting.setting import UsedTechnique
from paretone.techniques import precision
from tests.engine.export.programs.scripts import called, flags, needs_shell, profile


def test_the_module_reads_what_is_written(tmp_path: Path) -> None:
    export(profile("OmniVoice", steps=16, language="en"), "omnivoice", tmp_path, Observer())
    assert (paretone_omnivoice.FILE, paretone_omnivoice.KIND, paretone_omnivoice.SCHEMA) == (FILE, KIND, SCHEMA)
    read = paretone_omnivoice.read(tmp_path)
    asked = [read["generate"][name] for name in ("num_step", "language", "instruct", "duration")]
    assert asked == [16, "en", None, None]
    assert (read["seed"], read["precision"]) == (5, None)
    with pytest.raises(paretone_omnivoice.ProfileMismatch, match="cannot be read"):
        paretone_omnivoice.read(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("wanted", "loaded"), [("bfloat16_all", "bfloat16"), ("float32", "float32"), ("bfloat16", None), ("int8", None)]
)
def test_a_precision_of_the_whole_network_is_carried(wanted: str, loaded: str | None) -> None:
    said = account(TARGET, profile("OmniVoice", UsedTechnique(precision.TECHNIQUE.name, Values(precision=wanted))))
    assert said.given.get("precision") == loaded
    assert any(line.what == precision.TECHNIQUE.title for line in (said.honours if loaded else said.drops))


@needs_shell
def test_the_script_calls_the_packages_command_with_its_flags(tmp_path: Path) -> None:
    export(profile("OmniVoice", instruct="female, low pitch", guidance=0.5), "omnivoice", tmp_path / "out", Observer())
    script = tmp_path / "out" / "speak.sh"
    words, _ = called(script, "omnivoice-infer", "It's a text.", "o.wav", "--ref_audio", "my voice.wav")
    wanted = {"--text": "It's a text.", "--instruct": "female, low pitch", "--guidance_scale": "0.5"}
    assert {**wanted, "--ref_audio": "my voice.wav"}.items() <= flags(words).items()


def test_other_models_are_refused() -> None:
    said = account(TARGET, profile("omni-mini"))
    assert "Omni mini, which is not a model of the omnivoice package" in said.why_not
