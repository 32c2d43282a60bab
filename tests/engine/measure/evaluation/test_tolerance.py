"""Drafted tokens that the model would hardly say are heard: the judge of naturalness orders tolerances."""

from __future__ import annotations

import numpy as np
import pytest

from engine.commands.comparison_sides import prepare, typed_side
from engine.measure.evaluation.judges import judge_named
from engine.models import load_model
from engine.models.base import SpeechModel, run_to_completion
from engine.models.catalogue import unseen_sentences, voices
from engine.models.silent_observer import SilentObserver
from tests.workload import is_thorough

SENTENCES = 30


def naturalness(model: SpeechModel, tolerance: float) -> float:
    """Mean over the sentences, in the voices in turn."""
    texts, speakers = unseen_sentences()[:SENTENCES], voices("lm-mini")
    side = typed_side(f"technique=speculative:tolerance={tolerance}", "lm-mini")
    prepare(side, model)
    judge, found = judge_named("naturalness").ready(texts), []
    for at, text in enumerate(texts):
        voice = speakers[at % len(speakers)]
        take = run_to_completion(model.synthesise(text, voice, side.setting, side.artefacts, SilentObserver()))
        found.append(judge.hear(text, voice, take.samples, take.sample_rate).figures["naturalness"])
    return float(np.mean(found))


@pytest.mark.slow
@pytest.mark.skipif(not is_thorough(), reason="a minute of speech; where tests are thorough")
def test_a_tolerance_that_is_too_high_is_less_natural() -> None:
    model = load_model("lm-mini", device="cpu")
    assert naturalness(model, 1.0) < naturalness(model, 0.0)
