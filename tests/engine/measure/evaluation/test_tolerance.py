"""Drafted tokens that the model would hardly say are heard: the judge of naturalness orders tolerances.

The drafts that ship know the model's tokens so well that no tolerance is heard in two dozen sentences. So the draft is
one that was hardly trained, and the sampler cuts nothing off, as a tolerance never accepts what has probability 0.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from paretone.cli import main
from paretone.commands.compare import prepare, typed_side
from paretone.measure.evaluation.judges import judge_named
from paretone.models import load_model
from paretone.models.base import SpeechModel
from paretone.models.catalogue import unseen_sentences, voices
from paretone.speaking import synthesise
from tests.workload import only_in_full

SENTENCES = 16


def naturalness(model: SpeechModel, tolerance: float) -> float:
    """Mean over the sentences, in the voices in turn."""
    texts, speakers = unseen_sentences()[:SENTENCES], voices("lm-mini")
    drafting = f"speculative:adaptive=false;draft_length=8;tolerance={tolerance}"
    side = typed_side(f"top_k=1000,top_p=1,technique={drafting}", "lm-mini")
    prepare(side, model)
    judge, found = judge_named("naturalness").ready(texts), []
    for at, text in enumerate(texts):
        voice = speakers[at % len(speakers)]
        take = synthesise(model, text, voice, side.setting, side.artefacts)
        found.append(judge.hear(text, voice, take.samples, take.sample_rate).figures["naturalness"])
    return float(np.mean(found))


@pytest.mark.slow
@pytest.mark.timeout(900)
@only_in_full("speech")
def test_a_tolerance_that_is_too_high_is_less_natural(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path / "own"))
    little = ["--sentences", "2", "--positions", "200", "--steps", "2"]
    assert main(["train", "draft", "--quiet", "--work", str(tmp_path / "work"), *little]) == 0
    model = load_model("lm-mini", device="cpu")
    assert Path(model.info.drafts[0].path).is_relative_to(tmp_path), "of two with one name, the user's"
    assert naturalness(model, 1.0) < naturalness(model, 0.0)
