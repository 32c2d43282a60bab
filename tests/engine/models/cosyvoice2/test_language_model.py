"""Speech may end with any of three stop ids, but not before the least length."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paretone.models.cosyvoice2.language_model import STOPS, LanguageModel, PromptIds
from paretone.models.networks.causal import CausalConfig
from paretone.sampling.autoregressive import decode
from paretone.sampling.tokens import Greedy, Uniforms
from tests.engine.models.cosyvoice2.small_release import CODES, EAGER_END, QWEN2, language_weights

TEXT = (5, 6, 7)


@pytest.mark.parametrize("eager", range(STOPS))
def test_no_stop_id_ends_speech_before_the_least_length(eager: int) -> None:
    weights = language_weights(end=0.0)
    weights["llm_decoder.bias"][CODES + eager] = EAGER_END
    model = LanguageModel.from_official(weights, CausalConfig.read(QWEN2), "llm.pt")
    request = model.request(PromptIds(), TEXT)
    assert request.minimum == 2 * len(TEXT)
    ours, official = (
        list(decode(model.tokens, one, Greedy(), Uniforms(0))) for one in (request, replace(request, masked_stops=1))
    )
    assert ours[-1].stopped and sum(len(one.tokens) for one in ours) == request.minimum
    # The official code masks the first alone: another ends speech at once.
    assert official[-1].stopped and sum(len(one.tokens) for one in official) == (0 if eager else request.minimum)
