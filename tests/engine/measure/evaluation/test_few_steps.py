"""Two steps speak the average reading: what falls is variety, and not necessarily predicted naturalness."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engine.measure.melody import diversity, log_pitch
from engine.models import load_model
from engine.models.base import SpeechModel, run_to_completion
from engine.models.catalogue import entry, voices
from engine.models.silent_observer import SilentObserver
from engine.setting.setting import Setting

TEXT = "The birch canoe slid on the smooth planks."
SEEDS = range(3)


def spread(model: SpeechModel, steps: int) -> float | None:
    """Diversity of ``TEXT`` over the seeds, without guidance, which lessens it at any number of steps."""
    setting = Setting("f5-mini", entry("f5-mini").options_with(steps=steps, guidance=0.0))
    voice, curves = voices("f5-mini")[0], []
    for seed in SEEDS:
        spoken = model.synthesise(TEXT, voice, replace(setting, seed=seed), (), SilentObserver())
        take = run_to_completion(spoken)
        curves.append(log_pitch(np.asarray(take.samples), take.sample_rate))
    return diversity(curves)


@pytest.mark.slow
def test_two_steps_vary_less_from_seed_to_seed() -> None:
    model = load_model("f5-mini", device="cpu")
    few, many = spread(model, 2), spread(model, 8)
    assert few is not None and many is not None
    assert few < 0.9 * many
