"""MegaTTS 3's duration model against the official code: the prompt's pass, and the codes of a text."""

from __future__ import annotations

import pytest
import torch

from paretone.models.files.checkpoints import load_strictly
from paretone.models.files.config_file import ConfigFile
from paretone.models.megatts3.duration_model import DurationConfig, DurationModel, rotated
from tests.parity.fixtures import Fixture, assert_close, fixtures, full_precision

TOLERANCE = 1e-5


def is_duration_model(description: dict) -> bool:
    return "dur_model_type" in description.get("hparams", {})


def build(fixture: Fixture) -> DurationModel:
    entries = fixture.description["hparams"] | fixture.description["config"]
    config = DurationConfig.of_entries(ConfigFile(entries, fixture.name), entries["ph_dict_size"])
    model = DurationModel(config)
    load_strictly(model, fixture.weights, fixture.name)
    return model.eval().requires_grad_(False)


@pytest.mark.parametrize("fixture", fixtures("dit", is_duration_model))
def test_parity_duration_model(fixture: Fixture) -> None:
    full_precision()
    model = build(fixture)
    phones, tones = fixture["in.ph_ref"], fixture["in.tone_ref"]
    durations = fixture["in.ctx_dur"] - 1
    with torch.inference_mode():
        assert_close(model.read_text(phones, tones), fixture["x_ling_ref"], TOLERANCE, "text of the prompt")
    prompt = model.read_prompt(phones, tones, durations)
    for number, (keys, values) in enumerate(fixture["prompt_kv"]):
        assert_close(prompt.past[number].keys, rotated(keys, 0), TOLERANCE, f"keys of layer {number}")
        assert_close(prompt.past[number].values, values, TOLERANCE, f"values of layer {number}")
    codes = model.predict(prompt, fixture["in.ph_pred"], fixture["in.tone_pred"])
    assert codes == fixture["dur_codes"][0].tolist()


@pytest.mark.parametrize("fixture", fixtures("dit", is_duration_model))
def test_parity_duration_model_outputs_before_rounding(fixture: Fixture) -> None:
    full_precision()
    model = build(fixture)
    prompt = model.read_prompt(fixture["in.ph_ref"], fixture["in.tone_ref"], fixture["in.ctx_dur"] - 1)
    with torch.inference_mode():
        text = model.read_text(fixture["in.ph_pred"], fixture["in.tone_pred"])
        past, before = prompt.past, prompt.last
        for place, code in enumerate(fixture["dur_codes"][0].tolist()):
            output, past = model(torch.tensor([[before]]), text[:, place : place + 1], past)
            assert_close(output[0, 0], fixture["raw_pred"][0, place], TOLERANCE, f"output {place}")
            before = code
