"""Products of float32 numbers from exact products of whole ones: as right as float32, whatever comes in."""

import copy
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from paretone.models.f5.config import BackboneConfig
from paretone.models.f5.layers import F5Attention, F5FeedForward, RotaryEmbedding
from paretone.models.kernels import products, split_products
from paretone.models.kernels.products import PackableLinear, PackedProduct
from paretone.models.kernels.split_products import SplitProduct, split
from tests.workload import workload


@pytest.fixture(autouse=True)
def _exact() -> None:
    torch.manual_seed(0)
    if not split_products.exact():
        pytest.skip("this build of torch, or this processor, does not sum 8-bit products exactly")


@pytest.fixture
def _small_ones_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small layers stand for wide ones, and this processor for one with AMX."""
    if not products.available():
        pytest.skip("this build of torch cannot pack weights")
    monkeypatch.delenv(split_products.VARIABLE, raising=False)
    monkeypatch.setattr(split_products, "has_amx", lambda: True)
    monkeypatch.setattr(split_products, "NARROWEST", 1)
    monkeypatch.setattr(split_products, "FEWEST_ROWS", 2)
    monkeypatch.setattr(products, "NARROWEST", 1)


def _log_normal_channels(*shape: int) -> Tensor:
    return torch.randn(shape) * torch.randn(shape[-1]).exp()


@pytest.mark.parametrize("factor", [1.0, 3e-28, 1e30])
def test_digits_make_up_the_numbers_to_24_bits(factor: float) -> None:
    rows = _log_normal_channels(150, 1100) * factor  # More than a piece.
    digits = split(rows)
    high, middle, low, scales = (one.double() for one in digits)
    assert {one.dtype for one in digits[:3]} == {torch.int8}
    largest = rows.double().abs().amax(1, keepdim=True)
    error = ((high * 2**16 + middle * 2**8 + low) * scales / 2**16 - rows).abs()
    # Half of the last digit; what scaling rounds is relative to the number itself.
    assert (error <= largest / split_products.LARGEST / 2 + 4 * 2**-24 * rows.double().abs()).all()


@pytest.mark.parametrize(
    ("numbers", "most"),
    [
        (torch.randn, 2),
        (_log_normal_channels, 7),
        (lambda *shape: torch.distributions.StudentT(3.0).sample(shape), 7),
        (lambda *shape: torch.randn(shape) * torch.where(torch.arange(shape[-1]) == 7, 1000.0, 1.0), 13),
    ],
    ids=["normal", "log-normal channels", "heavy tails", "one strong channel"],
)
def test_its_error_is_a_small_multiple_of_float32_s_own(numbers: Callable[..., Tensor], most: float) -> None:
    # Processors without these instructions take seconds for as many rows as an utterance has.
    rows, outputs, inputs = workload(200, 40), workload(256, 64), 300
    x, weight, bias = numbers(rows, inputs), torch.randn(outputs, inputs) / 32, torch.randn(outputs)
    exact = F.linear(x.double(), weight.double(), bias.double())
    own, plain = SplitProduct(weight, bias)(x), F.linear(x, weight, bias)
    assert own.dtype == torch.float32
    assert (own - exact).norm() <= most * (plain - exact).norm()
    assert (own - exact).norm() <= 5e-6 * exact.norm()


def test_a_row_s_result_depends_on_that_row_only() -> None:
    product = SplitProduct(torch.randn(100, 200), torch.randn(100))
    x = torch.randn(300, 200)
    x[7] *= 1e6
    together = product(x)
    for few in (slice(7, 8), slice(0, 40), slice(45, 300)):
        assert torch.equal(product(x[few]), together[few])
    assert torch.equal(product(x[::3]), together[::3])


def test_rows_of_zeros_give_the_bias_and_tiny_ones_stay_what_they_are() -> None:
    weight, bias = torch.randn(50, 80), torch.randn(50)
    x = torch.randn(40, 80)
    x[3], x[4], x[5] = 0, x[4] * 1e-34, x[5] * 1e-26
    product = SplitProduct(weight, bias)(x)
    assert torch.equal(product[3], bias)
    assert torch.allclose(product[4], bias)
    assert torch.allclose(SplitProduct(weight)(x)[5], x[5] @ weight.T, rtol=1e-4, atol=1e-31)


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_what_is_not_finite_stays_so_in_its_row_only(value: float) -> None:
    product, x = SplitProduct(torch.randn(50, 80), torch.randn(50)), torch.randn(40, 80)
    before = product(x)
    x[11, 17] = value
    after = product(x)
    assert not after[11].isfinite().any()
    others = torch.arange(40) != 11
    assert torch.equal(after[others], before[others])


@pytest.mark.usefixtures("_small_ones_too")
def test_layers_are_split_where_it_pays_and_only_then(monkeypatch: pytest.MonkeyPatch) -> None:
    weight = torch.randn(8, 8)
    assert split_products.can_split(weight)
    assert PackedProduct(weight, many_rows=True).is_split
    assert not PackedProduct(weight).is_split
    assert not split_products.can_split(torch.full((8, 8), float("nan")))
    monkeypatch.setenv(split_products.VARIABLE, "0")
    assert not split_products.can_split(weight)
    monkeypatch.delenv(split_products.VARIABLE)
    monkeypatch.setattr(split_products, "has_amx", lambda: False)
    assert not split_products.can_split(weight)
    monkeypatch.setattr(split_products, "has_amx", lambda: True)
    monkeypatch.setattr(split_products, "NARROWEST", 9)
    assert not split_products.can_split(weight)


def test_operators_that_round_or_are_missing_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    right = torch.ops.onednn.qlinear_pointwise

    def rounding(*given: object) -> Tensor:
        return right(*given).mul_(1 + 1e-6)

    rounding.binary = right.binary
    monkeypatch.setattr(torch.ops.onednn, "qlinear_pointwise", rounding)
    assert not split_products.exact.__wrapped__()
    monkeypatch.setattr(torch.ops.onednn, "qlinear_pointwise", right)
    assert split_products.exact.__wrapped__()
    monkeypatch.setattr(torch.ops, "onednn", object())
    assert not split_products.exact.__wrapped__()


@pytest.mark.usefixtures("_small_ones_too")
def test_few_rows_are_multiplied_as_ever_and_many_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_products, "ROWS", 16)
    layer = PackableLinear(40, 24).requires_grad_(False)
    layer.pack()
    x = torch.randn(3, 15, 40)
    assert torch.equal(layer(x[0, :1]), F.linear(x[0, :1], layer.weight, layer.bias))
    assert torch.equal(layer(x).flatten(0, 1), SplitProduct(layer.weight, layer.bias)(x.flatten(0, 1)))
    assert copy.deepcopy(layer).packed is layer.packed
    assert products.notes_of(layer) == (products.NOTE,)
    layer.unpack()
    assert products.notes_of(layer) == ()


@pytest.mark.usefixtures("_small_ones_too")
@pytest.mark.parametrize("length", [7, 30, 75])
def test_layers_by_blocks_are_the_layers(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_products, "ROWS", 64)  # Several items at once, one at once, and blocks of one.
    config = BackboneConfig("DiT", 48, 1, 3, 16, qk_norm="rms_norm", pe_attn_head=1)
    attention, forward = F5Attention(config), F5FeedForward(config)
    x, table = torch.randn(3, length, 48), RotaryEmbedding(16).table(length)
    before = attention(x, table), forward(x)
    for module in (attention, forward):
        module.requires_grad_(False)
        module.fuse()
    assert attention.packed.is_split
    assert forward.first.packed.is_split
    assert torch.allclose(attention(x, table), before[0], atol=1e-5, rtol=0)
    assert torch.allclose(forward(x), before[1], atol=1e-5, rtol=0)
    gate, hidden = torch.randn(48), x.clone()
    attention.add_to(hidden, gate, lambda rows: rows, table)
    assert torch.allclose(hidden, x + gate * before[0], atol=1e-5, rtol=0)


@pytest.mark.parametrize(("items", "length", "most"), [(2, 450, 256), (5, 30, 64), (1, 1, 1)])
def test_tiles_cover_every_row_once(items: int, length: int, most: int) -> None:
    seen = torch.zeros(items, length)
    for some, block in products.tiles(items, length, most):
        seen[some, block] += 1
        assert seen[some, block].numel() <= most
    assert (seen == 1).all()
