"""The family's own layers: what is computed another way than written gives the same."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from paretone.models.f5.layers import GELU_PIECE, F5FeedForward, TextEmbedding

FRAMES = 41


@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize("average_upsampling", [False, True])
@pytest.mark.parametrize("mask_padding", [False, True])
@pytest.mark.parametrize("durations", [None, (FRAMES, 30)])
def test_text_without_its_padding_is_the_text(
    drop: bool, average_upsampling: bool, mask_padding: bool, durations: tuple[int, int] | None
) -> None:
    """Ids that are padded to the whole length leave nothing out."""
    torch.manual_seed(0)
    module = TextEmbedding(9, 16, 3, mask_padding or average_upsampling, average_upsampling).requires_grad_(False)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    ids = torch.randint(0, 9, (2, 13))
    ids[1, 7:] = -1
    mask = None if durations is None else torch.arange(FRAMES) < torch.tensor(durations)[:, None]
    whole = module(F.pad(ids, (0, FRAMES - ids.shape[1]), value=-1), FRAMES, drop, mask)
    short = module(ids, FRAMES, drop, mask)
    assert whole.abs().max() > 0.1
    assert torch.allclose(short, whole, atol=1e-5, rtol=0)


def test_gelu_is_torchs_and_has_its_gradient() -> None:
    x = torch.randn(GELU_PIECE // 16 + 3, 20) * 5
    x[0, :4] = torch.tensor([1e4, -1e4, 1e20, -1e20])
    expected = F.gelu(x, approximate="tanh")
    assert torch.allclose(F5FeedForward.activation(x.clone()), expected, atol=1e-6, rtol=1e-6)
    assert F5FeedForward.activation(x.clone().fill_(float("nan"))).isnan().all()
    left, right = (x[1:].clone().requires_grad_() for _ in range(2))
    F5FeedForward.activation(left).sum().backward()
    F.gelu(right, approximate="tanh").sum().backward()
    assert torch.equal(left.grad, right.grad)
