"""One step speaks the average reading: what falls is variety, and not necessarily predicted naturalness."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from paretone.measure.pitch import diversity, log_pitch
from paretone.models import load_model
from paretone.models.base import SpeechModel
from paretone.models.catalogue import entry, voices
from paretone.setting.setting import Setting
from paretone.speaking import synthesise
from tests.workload import only_in_full

TEXTS = ("The birch canoe slid on the smooth planks.", "Glue the sheet to the dark blue background.")
SEEDS = range(3)


def spread(model: SpeechModel, steps: int) -> float:
    """Mean diversity of ``TEXTS`` over the seeds, without guidance, which lessens it at any number of steps."""
    setting = Setting("f5-mini", entry("f5-mini").options_with(steps=steps, guidance=0.0))
    voice, found = voices("f5-mini")[0], []
    for text in TEXTS:
        curves = []
        for seed in SEEDS:
            take = synthesise(model, text, voice, replace(setting, seed=seed))
            curves.append(log_pitch(np.asarray(take.samples), take.sample_rate))
        found.append(diversity(curves))
    assert None not in found
    return float(np.mean(found))


@only_in_full("speech")
@pytest.mark.slow
def test_one_step_varies_less_from_seed_to_seed() -> None:
    model = load_model("f5-mini", device="cpu")
    assert spread(model, 1) < 0.9 * spread(model, 8)
