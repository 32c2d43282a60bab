from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from paretone.models.kernels.fused_causal import QuickNorm


@pytest.mark.parametrize("shape", [(1, 48), (5, 48), (2, 3, 48)])
@pytest.mark.parametrize("size", [1e-4, 1.0, 1e4])
def test_it_is_the_root_mean_square_norm(shape: tuple[int, ...], size: float):
    generator = torch.Generator().manual_seed(0)
    x, weight = size * torch.randn(shape, generator=generator), torch.randn(48, generator=generator)
    before = x.clone()
    torch.testing.assert_close(QuickNorm(weight, 1e-5)(x), F.rms_norm(x, (48,), weight, 1e-5), rtol=1e-5, atol=1e-7)
    assert torch.equal(x, before)


def test_nothing_stays_nothing():
    assert torch.equal(QuickNorm(torch.ones(8), 1e-5)(torch.zeros(2, 8)), torch.zeros(2, 8))


def test_half_precision_is_left_to_pytorch():
    """A sum of squares of float16 numbers as large as these is none."""
    x, weight = torch.full((1, 64), 300.0, dtype=torch.float16), torch.ones(64, dtype=torch.float16)
    assert torch.equal(QuickNorm(weight, 1e-5)(x), F.rms_norm(x, (64,), weight, 1e-5))
    torch.testing.assert_close(QuickNorm(weight, 1e-5)(x), torch.ones(1, 64, dtype=torch.float16))
