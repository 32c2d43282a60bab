"""The average-velocity weights that ship: of the bundled models as they are, with the logs of their training."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from paretone.models.catalogue import entry
from paretone.models.files.checkpoints import fingerprint
from paretone.models.files.interval_weights import find_interval_weights
from paretone.paths import resource

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
