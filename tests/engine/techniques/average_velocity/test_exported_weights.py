"""Weights of average velocity outside training: exported, shipped, and in the official class."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from paretone.errors import ProfileError
from paretone.export.targets import account, export
from paretone.models.base import IntervalWeights
from paretone.models.catalogue import entry
from paretone.models.f5.checkpoint import read_f5_checkpoint
from paretone.models.files.checkpoints import fingerprint, read_weights
from paretone.models.files.trained_weights import (
    INTERVALS,
    PREFIX,
    find_interval_weights,
    interval_metadata,
    save_interval_weights,
)
from paretone.models.networks.diffusion import add_interval
from paretone.observer import Observer
from paretone.paths import resource
from paretone.setting.knobs import Values
from paretone.setting.profile import Profile
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques.average_velocity import NAME, TECHNIQUE
from paretone.techniques.average_velocity.exports import NO_TEMPERATURE, WEIGHTS
from paretone.training.f5_checkpoints import diffusion_transformer
from tests import official
from tests.engine.training.toy_model import toy_model

MODEL = entry("f5-mini")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model with weights for few evaluations next to it."""
    place = toy_model(tmp_path / "model")
    checkpoint = read_f5_checkpoint(place)
    model = diffusion_transformer(checkpoint)
    add_interval(model)
    described = IntervalWeights("", "", 4, -1.0, Values(guidance=1.0), "displacement")
    told = interval_metadata(described, fingerprint(checkpoint.path), 3)
    (place / INTERVALS).mkdir()
    save_interval_weights(
        place / INTERVALS / "guidance-1.safetensors", {PREFIX + k: v for k, v in model.state_dict().items()}, told
    )
    return place


def _profile(folder: Path, artefact: str = "") -> Profile:
    path = folder / INTERVALS / "guidance-1.safetensors"
    used = UsedTechnique(NAME, Values(evaluations=2), artefact or fingerprint(path))
    setting = Setting(MODEL.id, MODEL.options_with(steps=32)).with_technique(used)
    return Profile(setting, fingerprint(folder / "model.safetensors"), "toy")


def test_the_weights_are_written_as_they_were_trained_with_their_companions(folder: Path, tmp_path: Path) -> None:
    written = export(_profile(folder), "average-velocity", tmp_path / "out", Observer(), str(folder))
    assert {one.name for one in written} >= {
        "model_average_velocity_guidance-1.safetensors",
        "model.yaml",
        "vocab.txt",
    }
    one = tmp_path / "out" / "model_average_velocity_guidance-1.safetensors"
    assert one.read_bytes() == (folder / INTERVALS / "guidance-1.safetensors").read_bytes()
    extra = {name for name in read_weights(one) if "interval_mlp" in name}
    plain = read_weights(folder / "model.safetensors")
    assert len(extra) == 4
    assert set(read_weights(one)) == {name for name in plain if name.startswith(PREFIX)} | extra
    assert not torch.any(read_weights(one)[f"{PREFIX}time_embed.interval_mlp.2.weight"])


def test_a_temperature_of_the_profiles_own_is_dropped_and_said(folder: Path) -> None:
    profile = _profile(folder)
    (used,) = profile.setting.techniques
    calm = replace(used, knobs=used.knobs.replace(temperature=0.8))
    found = account(WEIGHTS, replace(profile, setting=profile.setting.with_technique(calm)), True)
    assert [line.value for line in found.honours if line.what == TECHNIQUE.title] == ["2 evaluations in one branch"]
    (dropped,) = [line for line in found.drops if line.what == "Average velocity, Temperature"]
    assert (dropped.value, dropped.how) == ("0.8", NO_TEMPERATURE)
    assert not [line for line in account(WEIGHTS, profile, True).drops if line.what == dropped.what]


@pytest.mark.parametrize(
    ("target", "words"),
    [("f5-tts", "an embedding of the interval"), ("safetensors", "no CFG-free weights to write")],
)
def test_other_targets_refuse_the_profile(folder: Path, tmp_path: Path, target: str, words: str) -> None:
    with pytest.raises(ProfileError, match=words):
        export(_profile(folder), target, tmp_path / "out", Observer(), str(folder))


def test_weights_that_are_not_there_are_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match=r"weights 'ffffffffffff' of the profile are in none of .*intervals"):
        export(_profile(folder, "f" * 64), "average-velocity", tmp_path / "out", Observer(), str(folder))


def test_a_profile_without_the_technique_has_no_such_weights(folder: Path, tmp_path: Path) -> None:
    profile = _profile(folder)
    plain = Profile(profile.setting.without(NAME), profile.checkpoint, profile.variant)
    with pytest.raises(ProfileError, match="The profile does without Average velocity"):
        export(plain, "average-velocity", tmp_path / "out", Observer(), str(folder))


SHIPPED = {
    "f5-mini": (resource("models", "f5-mini", "model.safetensors"), {"guidance": 0.7}, 1.1),
    "megatts3-mini": (
        resource("models", "megatts3-mini", "diffusion_transformer", "model.safetensors"),
        {"intelligibility": 1.4, "similarity": 1.2},
        0.75,
    ),
}


@pytest.mark.parametrize("model", SHIPPED)
def test_weights_are_of_the_bundled_model_and_include_its_usual_guidance(model: str) -> None:
    checkpoint, guidance, temperature = SHIPPED[model]
    base, folder = fingerprint(checkpoint), checkpoint.parent / "intervals"
    (found,) = find_interval_weights([folder], base, lambda: None)
    assert dict(found.guidance) == guidance and (found.evaluations, found.temperature) == (4, temperature)
    usual = entry(model).options_with()
    assert {name: usual[name] for name in guidance} == guidance
    file, log = Path(found.path), Path(found.path).with_suffix(".training.jsonl")
    assert {file.name, log.name} == {one.name for one in folder.iterdir()} and file.stat().st_size < 30_000_000
    header, *lines = (json.loads(line) for line in log.read_text(encoding="utf-8").splitlines())
    assert header["initial_weights"] == base and header["options"]["guidance"] == guidance
    left = [one["validation"]["left"] for one in lines if "validation" in one]
    assert left[0] == 1 and left[-1] < 0.5, "it was learnt"


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_official_class_with_the_guides_embedding_gives_the_engines_evaluations() -> None:
    found = official.run("tests.engine.techniques.average_velocity.official_class")
    assert len(found["differences"]) == 3
    assert max(found["differences"]) < 1e-4
