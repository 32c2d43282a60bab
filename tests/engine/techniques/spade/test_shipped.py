"""Shipped students of LM mini: pruned, briefly retrained and fully retrained ones can each be chosen and heard."""

from __future__ import annotations

import pytest

from paretone.models import load_model
from paretone.models.catalogue import entry, voice
from paretone.models.minis.lm_mini import LmMiniSpeech
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import scripted
from paretone.techniques import problem, resolve, spade

DEPTH = 6
TEXT = "The birch canoe slid on the smooth planks."


@pytest.fixture(scope="module")
def model() -> LmMiniSpeech:
    return load_model("lm-mini", device="cpu")


def stage(recovery: str) -> Setting:
    plain = Setting("lm-mini", entry("lm-mini").options_with(), seed=1)
    return plain.with_technique(UsedTechnique(spade.NAME, Values(depth=DEPTH, recovery=recovery)))


@pytest.mark.parametrize("recovery", [spade.NONE, spade.PARTLY, spade.RECOVERED])
def test_every_stage_is_offered_and_speaks(model: LmMiniSpeech, recovery: str) -> None:
    chosen = stage(recovery)
    assert problem(model.info, chosen) is None
    cycles = [
        cycle
        for _, decoding in model.decodings(scripted(model, TEXT, voice("", "lm-mini"), chosen))
        for cycle in decoding
    ]
    tokens = [token for cycle in cycles for token in cycle.tokens]
    assert 1 < len(tokens) / model.info.token_rate < 5
    if recovery != spade.NONE:  # Pruned, speech seldom ends by itself.
        assert cycles[-1].stopped


def test_the_stages_are_of_one_recovery(model: LmMiniSpeech) -> None:
    partly, recovered = (resolve(model.info, stage(one)).weights for one in (spade.PARTLY, spade.RECOVERED))
    pruned = resolve(model.info, stage(spade.NONE)).layers
    assert partly.retained == recovered.retained == pruned
    assert len(pruned) == DEPTH
    assert 0 < partly.minutes < recovered.minutes
    assert not partly.recovered and recovered.recovered
