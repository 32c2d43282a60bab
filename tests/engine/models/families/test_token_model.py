"""Token models: tables on both sides of a transformer."""

from __future__ import annotations

import pytest
import torch

from paretone.models.families.token_model import TokenModel
from tests.engine.models.small_causal import small_model, small_transformer


def test_ids_are_codes_then_stops() -> None:
    model = small_model(codes=20, stops=3)
    assert (model.rows, model.stops) == (23, (20, 21, 22))
    ids = [[0, 22], [5, 5]]
    assert torch.equal(model.embed(ids), model.embedding[torch.tensor(ids)])
    hidden = torch.randn(4, 24, dtype=torch.float64)
    torch.testing.assert_close(model.logits(hidden), hidden @ model.head.T + model.bias)


def test_the_optimised_one_scores_alike() -> None:
    model = small_model()
    x = model.embed([[3, 4, 5, 6]])
    with torch.inference_mode():
        expected = model.logits(model.transformer(x))
        fast = model.optimised()
        torch.testing.assert_close(fast.logits(fast.transformer(x)), expected)
    assert fast.optimised().transformer is fast.transformer


def test_kept_layers_share_weights_where_nothing_is_trained() -> None:
    model = small_model()
    copied, shared = model.kept([0, 3]), model.optimised().kept([0, 3])
    model.head.zero_()
    assert copied.head.any()
    assert shared.head.data_ptr() == model.head.data_ptr()
    with torch.inference_mode():
        x = model.embed([[3, 4, 5, 6]])
        torch.testing.assert_close(shared.transformer(x), copied.transformer(x))


@pytest.mark.parametrize("codes", [0, 22])
def test_tables_without_codes_or_stops(codes: int) -> None:
    with pytest.raises(ValueError, match="do not hold"):
        TokenModel(small_transformer(), torch.zeros(22, 24), torch.zeros(22, 24), codes=codes)
