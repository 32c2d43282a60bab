"""Mel front ends, Vocos, predicted naturalness and voice embeddings against the official code."""

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from paretone.audio.mel import STYLES, MelFrontEnd, htk_filterbank
from paretone.measure.evaluation import naturalness, speakers
from paretone.models.networks.vocos import Vocos
from tests.parity.fixtures import SHIPPED, Fixture, assert_close, fixtures

MEL = 3e-5
"""Logarithms of what is left in quiet bands next to loud ones: 1.5e-5 was found without vector instructions."""
TABLE = 2e-5
"""Slopes of the narrowest filters, whose ends are rounded at some thousand Hz."""
ONE_FORWARD = 1e-5
AUDIO = 1e-5
SAMPLE_RATE = 24000


def is_mel(description: dict) -> bool:
    return any(f"mel_{style}" in description.get("tensors", {}) for style in STYLES)


def front_end(fixture: Fixture, style: str) -> MelFrontEnd:
    """Sizes as far as the fixture tells them; the hop follows from the number of frames."""
    mel, samples = fixture[f"mel_{style}"], fixture["wav"].shape[-1]
    sizes = {"bands": mel.shape[1]}
    if "window" in fixture:
        sizes["window"] = len(fixture["window"])
    sizes |= {name: fixture.description[name] for name in ("sample_rate", "hop") if name in fixture.description}
    found = MelFrontEnd(style, **sizes)
    assert found.frames(samples) == mel.shape[2]
    return found


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("fixture", fixtures("dit", is_mel))
def test_parity_mel(fixture: Fixture, style: str) -> None:
    if f"mel_{style}" not in fixture:
        pytest.skip(f"{fixture.name} has no {style} mel")
    mel = front_end(fixture, style)(fixture["wav"]).transpose(1, 2)
    assert_close(mel, fixture[f"mel_{style}"], MEL, f"mel_{style}")


@pytest.mark.parametrize("fixture", fixtures("dit", is_mel))
def test_parity_mel_tables(fixture: Fixture) -> None:
    if "window" in fixture:
        assert_close(torch.hann_window(len(fixture["window"])), fixture["window"], TABLE, "window")
    if "fb" in fixture:
        bins, bands = fixture["fb"].shape
        rate = fixture.description.get("sample_rate", SAMPLE_RATE)
        assert_close(htk_filterbank(rate, 2 * (bins - 1), bands), fixture["fb"], TABLE, "fb")


@pytest.mark.parametrize("fixture", fixtures("dit", lambda said: "feature_extractor" in said.get("config", {})))
def test_parity_vocos_layers_and_audio(fixture: Fixture, tmp_path: Path) -> None:
    parts = {name: {"init_args": arguments} for name, arguments in fixture.description["config"].items()}
    (tmp_path / "config.yaml").write_text(json.dumps(parts), encoding="utf-8")
    save_file(fixture.weights, tmp_path / "model.safetensors")
    vocos = Vocos.load(tmp_path)
    found: dict[str, Tensor] = {"mel": fixture["mel"]}
    backbone = vocos.backbone
    modules = {"embed": backbone.embed, "norm": backbone.norm, "backbone_out": backbone, "head_lin": vocos.head.out}
    modules |= {f"convnext{index}": block for index, block in enumerate(vocos.backbone.convnext)}
    for name, module in modules.items():
        module.register_forward_hook(lambda module, given, value, name=name: found.update({name: value}))
    found["audio"] = vocos.decode(fixture["mel"])
    for name in fixture.names:
        assert_close(found[name], fixture[name], AUDIO if name == "audio" else ONE_FORWARD, name)


# --- Judges -----------------------------------------------------------------------------------------------------------
# Predicted naturalness and voice embeddings against what the packages' own code computed (``distillmos`` 0.9.1;
# ``resemblyzer`` 0.1.4 with librosa 0.10.2), from the same weights and the same samples at 16 kHz. That code cannot run
# here: it needs torchaudio, librosa and webrtcvad.

RATE = 16_000
RECORDED = json.loads((SHIPPED / "judges" / "scores.json").read_text(encoding="utf-8"))
"""By the seconds of the recording: ``naturalness`` and ``embedding``."""
SECONDS = (0.5, 1.7, 8.5)


def voiced(seconds: float) -> np.ndarray:
    """A gliding voice of twenty harmonics with pauses, and a little noise; (n,) at 16 kHz."""
    count = round(seconds * RATE)
    time = np.arange(count) / RATE
    phase = 2 * np.pi * np.cumsum(150 + 40 * np.sin(1.3 * time)) / RATE
    tone = sum(np.sin(number * phase) / number for number in range(1, 21))
    open_mouth = np.clip(np.sin(9 * time) + 0.5, 0, 1)
    noise = np.random.default_rng(0).standard_normal(count)
    return (0.1 * tone * open_mouth + 0.002 * noise).astype(np.float32)


@pytest.mark.skipif(find_spec(naturalness.PACKAGE) is None, reason="distillmos is not installed")
def test_naturalness_is_the_packages_own() -> None:
    judge = naturalness.load((), Path(), "cpu")
    for seconds in SECONDS:
        assert judge.score(voiced(seconds)) == pytest.approx(RECORDED[str(seconds)]["naturalness"], abs=2e-4)


@pytest.mark.skipif(find_spec(speakers.PACKAGE) is None, reason="resemblyzer is not installed")
def test_voice_embeddings_are_the_packages_own() -> None:
    judge = speakers.load((), Path(), "cpu")
    for seconds in SECONDS:
        np.testing.assert_allclose(judge.embed(voiced(seconds)), RECORDED[str(seconds)]["embedding"], atol=2e-5)
