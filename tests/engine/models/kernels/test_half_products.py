"""Products with weights that are held in float16 where that loses nothing."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from paretone.models.kernels.half_products import HalfProduct, available, can_halve, product

needs_operators = pytest.mark.skipif(not available(), reason="this build of torch lacks FBGEMM's operators")


def weights(seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(70, 33, generator=generator), torch.randn(70, generator=generator)


@needs_operators
@pytest.mark.parametrize("rows", [1, 2, 4, 9, 130])
@pytest.mark.parametrize("biased", [True, False])
def test_weights_from_float16_give_the_products_of_float32(rows: int, biased: bool) -> None:
    weight, bias = weights()[0].half().float(), weights()[1] if biased else None
    found, x = product(weight, bias), torch.randn(rows, 33, generator=torch.Generator().manual_seed(1))
    assert isinstance(found, HalfProduct)
    torch.testing.assert_close(found(x), F.linear(x, weight, bias), atol=2e-5, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_other_weights_stay_what_they_are(dtype: torch.dtype) -> None:
    weight, bias = (one.to(dtype) for one in weights())
    found, x = product(weight, bias), torch.randn(4, 33, generator=torch.Generator().manual_seed(1)).to(dtype)
    assert not isinstance(found, HalfProduct)
    assert torch.equal(found(x), F.linear(x, weight, bias))


@needs_operators
def test_what_float16_cannot_hold() -> None:
    weight = weights()[0].half().float()
    assert can_halve(weight)
    for value in (1e-9, 1e6, 1 + 2.0**-12):
        weight[3, 5] = value
        assert not can_halve(weight)
