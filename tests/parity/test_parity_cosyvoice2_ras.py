"""Repetition-aware sampling in closed form, against what the official sampler draws from."""

from __future__ import annotations

import math

import pytest

from paretone.sampling.tokens import RepetitionAware
from tests.parity.fixtures import Fixture, assert_close, fixtures

PROBABILITY = 1e-5
samplers = pytest.mark.parametrize("fixture", fixtures("ar", lambda said: "ras_sampling" in said.get("source", "")))


@samplers
@pytest.mark.parametrize(("variant", "name"), [("2026", "ras_head"), ("2025", "ras_pre_f2ddcbe")])
def test_parity_cosyvoice2_ras(fixture: Fixture, variant: str, name: str) -> None:
    sampler = RepetitionAware(variant)
    for case in fixture.description["cases"]:
        golden = {part: fixture[f"{case['name']}.{part}"] for part in ("logits", "history", "nucleus", name)}
        history = golden["history"].tolist()
        assert len(history) == case["history_len"]
        if case["mask_eos"]:
            golden["logits"][fixture.description["speech_token_size"]] = -math.inf
        found = sampler.probabilities(golden["logits"][None], history)[0]
        assert_close(found, golden[name], PROBABILITY, f"{name} of {case['name']}")
        nucleus = sampler.probabilities(golden["logits"][None], [])[0]
        assert_close(nucleus, golden["nucleus"], PROBABILITY, f"the nucleus of {case['name']}")
        assert (nucleus > 0).sum() == case["nucleus_size"]
