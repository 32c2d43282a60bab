"""Products with weights that are held in float16 where that loses nothing."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from paretone.models.kernels.few_rows import (
    FEW_ROWS,
    GROUPS,
    HalfProduct,
    Int4Product,
    Int8Product,
    available,
    can_halve,
    packed_product,
    product,
    weight_of,
)
from paretone.models.kernels.few_rows import can_read_packed as packs

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


pytestmark = pytest.mark.skipif(not packs(), reason="this build of torch lacks the operators")

WAYS: dict[str, Callable[[Tensor, Tensor | None, Callable[[Tensor], Tensor]], Int8Product | Int4Product]] = {
    "int8": Int8Product,
    **{f"int4, {group}": lambda *given, group=group: Int4Product(*given, group) for group in GROUPS},
}
ways = pytest.mark.parametrize("way", WAYS)


def drawn(outputs: int = 50, inputs: int = 256, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Weights and a bias; the outputs are no multiple of what operators like, and one of them is all zero."""
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(outputs, inputs, generator=generator) * torch.rand(outputs, 1, generator=generator)
    weight[3] = 0.0
    return weight, torch.randn(outputs, generator=generator)


def never(x: Tensor) -> Tensor:
    raise AssertionError("few rows are computed with packed weights")


@ways
@pytest.mark.parametrize("rows", [1, 4, FEW_ROWS])
def test_it_computes_with_the_weights_that_it_names(way: str, rows: int) -> None:
    weight, bias = drawn()
    made = WAYS[way](weight, bias, never)
    # Small whole numbers are exact in bfloat16; sums are rounded to it once.
    x = torch.randint(-8, 9, (rows, 256), generator=torch.Generator().manual_seed(1)).float()
    wanted = F.linear(x.double(), made.weight.double(), bias.double())
    found = made(x)
    assert found.dtype == torch.float32 and found.shape == (rows, 50)
    scale = F.linear(x.double(), made.weight.double()).abs()
    assert ((found - wanted).abs() <= 2**-7 * scale + 1e-3).all()
    assert torch.allclose(found[:, 3], bias[3].expand(rows))


@pytest.mark.parametrize(("way", "largest"), [("int8", 0.6 / 127), *((f"int4, {group}", 0.6 / 15) for group in GROUPS)])
def test_weights_are_rounded_to_the_nearest(way: str, largest: float) -> None:
    weight, _ = drawn()
    made = WAYS[way](weight, None, never)
    group = made.weight.shape[1] if way == "int8" else int(way.partition(", ")[2])
    ranges = weight.unflatten(1, (-1, group))
    wide = ranges.abs().amax(-1) if way == "int8" else ranges.amax(-1) - ranges.amin(-1)
    apart = (made.weight - weight).unflatten(1, (-1, group)).abs().amax(-1)
    # Scales and zero points are rounded to bfloat16, and so a little more is lost.
    assert (apart <= largest * wide + 2**-7 * ranges.abs().amax(-1)).all()
    assert not made.weight[3].any()


def test_fewer_inputs_share_a_scale_and_less_is_lost() -> None:
    weight, _ = drawn()
    lost = [float((WAYS[f"int4, {group}"](weight, None, never).weight - weight).square().mean()) for group in GROUPS]
    eight = float((Int8Product(weight, None, never).weight - weight).square().mean())
    assert eight < lost[0] and lost == sorted(lost)
    bytes_each = [WAYS[f"int4, {group}"](weight, None, never).weight_bytes for group in GROUPS]
    assert bytes_each == sorted(bytes_each, reverse=True) and bytes_each[0] < Int8Product.weight_bytes


@ways
def test_many_rows_are_the_unpacked_product(way: str) -> None:
    weight, bias = drawn()
    made = WAYS[way](weight, bias, product(weight, bias))
    x = torch.randn(FEW_ROWS + 1, 256, generator=torch.Generator().manual_seed(2))
    assert torch.equal(made(x), F.linear(x, weight, bias))
    assert copy.deepcopy(made) is made


@pytest.mark.parametrize("halves", [False, True])
def test_weights_come_back_out_of_products(halves: bool) -> None:
    weight, bias = drawn()
    weight = weight.half().float() if halves else weight
    made = product(weight, bias)
    if halves and available():
        assert isinstance(made, HalfProduct)
    found, other = weight_of(made, 256)
    assert torch.equal(found, weight) and other is not None and torch.equal(other, bias)
    assert weight_of(product(weight), 256)[1] is None


@pytest.mark.parametrize("inputs", [1, 24, 40, 63, 64, 200])
def test_any_number_of_inputs_has_eight_bits(inputs: int) -> None:
    """The operator reads beyond rows that its vectors do not divide, and does not say so."""
    weight, _ = drawn(inputs=inputs)
    made = Int8Product(weight, None, never)
    x = torch.ones(2, inputs)
    assert made.weight.shape == weight.shape
    assert torch.allclose(made(x), F.linear(x, made.weight), rtol=2**-7, atol=0.05 * inputs**0.5)


def test_inputs_that_make_no_groups_stay_as_they_are() -> None:
    plain = product(drawn(inputs=48)[0])
    assert packed_product(plain, 48, 4, 32) is plain
    assert isinstance(packed_product(plain, 48, 8), Int8Product)
    assert isinstance(packed_product(product(drawn()[0]), 256, 4, 32), Int4Product)
