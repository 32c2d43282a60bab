"""Products of packed weights, in float32 and bfloat16, and norms: as torch's."""

import copy
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretone.models.f5.config import BackboneConfig
from paretone.models.f5.layers import F5Attention, F5FeedForward, RotaryEmbedding
from paretone.models.kernels import few_rows, products
from paretone.models.kernels.few_rows import (
    GROUPS,
    BlockProduct,
    Int4Product,
    Int8Product,
    packed_product,
    product,
    weight_of,
)
from paretone.models.kernels.fused_causal import QuickNorm
from paretone.models.kernels.products import FEED_FORWARD_ROWS, ROWS, PackableLinear, PackedProduct
from tests.workload import crossed

TOLERANCE = 1e-5


@pytest.fixture(autouse=True)
def _narrow_layers_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small layers stand for wide ones, with the same numbers every time."""
    torch.manual_seed(0)
    monkeypatch.setattr(products, "NARROWEST", 1)
    monkeypatch.setattr(products, "LEAST_WORK", 1)


@pytest.fixture(params=["MKL", "oneDNN"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each library that packs weights, whichever is faster here."""
    name: str = request.param
    monkeypatch.setattr(products, "onednn_pays", lambda: name == "oneDNN")
    return name


needs_operators = pytest.mark.skipif(not few_rows.can_read_packed(), reason="this build of torch lacks the operators")
needs_code = pytest.mark.skipif(few_rows.machine_code() is None, reason="numba compiles nothing here")
needs_packing = pytest.mark.skipif(not products.available(), reason="this build of torch cannot pack weights")


@needs_packing
@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("rows", [1, ROWS + 1])
def test_packed_layers_give_what_plain_ones_give(rows: int) -> None:
    layer = PackableLinear(40, 24).requires_grad_(False)
    x = torch.randn(rows, 40)
    plain = layer(x)
    layer.pack()
    assert layer.is_packed(x)
    assert torch.allclose(layer(x), plain, atol=TOLERANCE, rtol=0)
    assert torch.allclose(layer(x.expand(2, 1, -1, -1)), plain.expand(2, 1, -1, -1), atol=TOLERANCE, rtol=0)


@needs_packing
def test_layers_that_learn_do_not_use_what_was_packed() -> None:
    network = products.packed(nn.Sequential(PackableLinear(40, 24)))
    layer, x = network[0], torch.randn(9, 40)
    with torch.no_grad():
        assert layer.is_packed(x)
    assert not layer.is_packed(x)
    network(x).sum().backward()
    assert layer.weight.grad is not None
    network.train()
    with torch.no_grad():
        layer.weight.add_(1)
        assert torch.equal(layer(x), F.linear(x, layer.weight, layer.bias))


def test_packing_is_done_without_where_its_products_are_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PackedProduct, "__call__", lambda self, x: self.plain(x) + (len(x) != ROWS))
    assert not products.available.__wrapped__()


@needs_packing
def test_the_faster_library_is_found_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert products.onednn_pays() is products.onednn_pays()
    decide = products.onednn_pays.__wrapped__
    monkeypatch.setattr(products, "PAYS", 0.0)
    assert not decide()
    monkeypatch.setattr(products, "PAYS", 1e9)
    assert decide() == torch.backends.mkldnn.is_available()


@needs_packing
def test_few_rows_are_not_packed_for_onednn(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "LEAST_WORK", 9 * 40 * 24)
    product = PackedProduct(torch.randn(24, 40))
    for rows in (8, 9):
        x = torch.randn(rows, 40)
        assert torch.equal(product(x), product.plain(x)) or (library, rows) != ("oneDNN", 8)
        torch.testing.assert_close(product(x), product.plain(x))


CONFIG = BackboneConfig("DiT", 48, 1, 3, 16)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(("rotary_heads", "norm", "length"), crossed([None, 1], [None, "rms_norm"], [7, ROWS + 9]))
def test_attention_by_blocks_is_the_attention(rotary_heads: int | None, norm: str | None, length: int) -> None:
    attention = F5Attention(replace(CONFIG, qk_norm=norm, pe_attn_head=rotary_heads)).requires_grad_(False)
    x, table = torch.randn(2, length, 48), RotaryEmbedding(16).table(length)
    before = attention(x, table)
    attention.fuse()
    assert (attention.packed is not None) == products.available()
    assert torch.allclose(attention(x, table), before, atol=TOLERANCE, rtol=0)


@pytest.mark.usefixtures("library")
def test_feed_forward_by_blocks_is_the_feed_forward() -> None:
    module = F5FeedForward(replace(CONFIG, dim=24)).requires_grad_(False)
    x = torch.randn(2, FEED_FORWARD_ROWS // 2 + 9, 24)
    before = module(x)
    module.fuse()
    assert torch.allclose(module(x), before, atol=TOLERANCE, rtol=0)


def test_other_precisions_and_replaced_layers_do_not_use_what_was_packed() -> None:
    module = F5FeedForward(replace(CONFIG, dim=24)).requires_grad_(False)
    module.fuse()
    x = torch.randn(2, 30, 24)
    assert copy.deepcopy(module).to(torch.bfloat16)(x.bfloat16()).dtype == torch.bfloat16
    replaced = copy.deepcopy(module)
    replaced.ff[2] = nn.Linear(48, 24)
    assert not replaced.is_packed(x)
    assert torch.allclose(replaced(x), replaced.ff[2](F.gelu(replaced.ff[0][0](x), approximate="tanh")), atol=TOLERANCE)
    assert torch.equal(copy.deepcopy(module)(x), module(x))


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


@needs_operators
@ways
@pytest.mark.parametrize("rows", [1, few_rows.FEW_ROWS])
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


@needs_operators
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


@needs_operators
@ways
def test_many_rows_are_the_unpacked_product(way: str) -> None:
    weight, bias = drawn()
    made = WAYS[way](weight, bias, product(weight, bias))
    x = torch.randn(few_rows.FEW_ROWS + 1, 256, generator=torch.Generator().manual_seed(2))
    assert torch.equal(made(x), product(weight, bias)(x))
    assert copy.deepcopy(made) is made


@needs_operators
@pytest.mark.parametrize("halves", [False, True])
def test_weights_come_back_out_of_products(halves: bool) -> None:
    weight, bias = drawn()
    weight = weight.half().float() if halves else weight
    made = product(weight, bias)
    if few_rows.machine_code() is not None:
        assert isinstance(made, BlockProduct) and made.half is halves
    found, other = weight_of(made)
    assert torch.equal(found, weight) and other is not None and torch.equal(other, bias)
    assert weight_of(product(weight))[1] is None


@needs_operators
@pytest.mark.parametrize("inputs", [1, 40, 63])
def test_any_number_of_inputs_has_eight_bits(inputs: int) -> None:
    """The operator reads beyond rows that its vectors do not divide, and does not say so."""
    weight, _ = drawn(inputs=inputs)
    made = Int8Product(weight, None, never)
    x = torch.ones(2, inputs)
    assert made.weight.shape == weight.shape
    assert torch.allclose(made(x), F.linear(x, made.weight), rtol=2**-7, atol=0.05 * inputs**0.5)


@needs_operators
def test_inputs_that_make_no_groups_stay_as_they_are() -> None:
    plain = product(drawn(inputs=48)[0])
    assert packed_product(plain, 48, 4, 32) is plain
    assert isinstance(packed_product(plain, 48, 8), Int8Product)
    assert isinstance(packed_product(product(drawn()[0]), 256, 4, 32), Int4Product)


def weights() -> tuple[Tensor, Tensor]:
    return drawn(70, 33)


@needs_code
@pytest.mark.parametrize(("rows", "biased"), [(1, True), (130, False)])
def test_weights_from_float16_give_the_products_of_float32(rows: int, biased: bool) -> None:
    weight, bias = weights()[0].half().float(), weights()[1] if biased else None
    found, x = product(weight, bias), torch.randn(rows, 33, generator=torch.Generator().manual_seed(1))
    assert isinstance(found, BlockProduct)
    torch.testing.assert_close(found(x), F.linear(x, weight, bias), atol=2e-5, rtol=0)


@needs_code
@pytest.mark.parametrize("rows", [1, 130])
def test_weights_from_bfloat16_do_too(rows: int) -> None:
    weight = (0.02 * weights()[0]).bfloat16().float()
    weight[0, :2] = torch.tensor([1e-4, 3e-9])
    weight = weight.bfloat16().float()
    found, x = product(weight, weights()[1]), torch.randn(rows, 33, generator=torch.Generator().manual_seed(1))
    assert isinstance(found, BlockProduct) and found.scale > 1
    torch.testing.assert_close(found(x), F.linear(x, weight, weights()[1]), atol=2e-6, rtol=0)
    kept, bias = weight_of(found)
    torch.testing.assert_close(kept, weight, atol=2.0**-39 * float(weight.abs().max()), rtol=0)
    assert bias is not None and torch.equal(bias, weights()[1])


@needs_code
@pytest.mark.parametrize("faster", [True, False])
def test_large_weights_are_packed_where_that_is_faster(monkeypatch: pytest.MonkeyPatch, faster: bool) -> None:
    assert few_rows.blocks_pay(64, 64, 1, True) in (True, False)
    monkeypatch.setattr(few_rows, "LARGE", 70 * 33)
    monkeypatch.setattr(few_rows, "blocks_pay", lambda *_: faster)
    assert isinstance(product(weights()[0].half().float()), BlockProduct) is faster
    assert isinstance(product(weights()[0][:-1].half().float()), BlockProduct)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_other_weights_stay_what_they_are(dtype: torch.dtype) -> None:
    weight, bias = (one.to(dtype) for one in weights())
    found, x = product(weight, bias), torch.randn(4, 33, generator=torch.Generator().manual_seed(1)).to(dtype)
    assert not getattr(found, "half", False)
    torch.testing.assert_close(found(x), F.linear(x, weight, bias), atol=2e-5, rtol=0)


@needs_code
def test_what_float16_cannot_hold() -> None:
    weight = weights()[0].half().float()
    assert few_rows.half_scale(weight) == 1
    weight[3, 5] = 1e-9
    assert (few_rows.half_scale(weight) or 0) > 1
    for value in (1e6, 1 + 2.0**-12):
        weight[3, 5] = value
        assert few_rows.half_scale(weight) is None


@pytest.mark.parametrize(("shape", "size"), [((1, 48), 1e-4), ((2, 3, 48), 1e4)])
def test_it_is_the_root_mean_square_norm(shape: tuple[int, ...], size: float):
    generator = torch.Generator().manual_seed(0)
    x, weight = size * torch.randn(shape, generator=generator), torch.randn(48, generator=generator)
    before = x.clone()
    torch.testing.assert_close(QuickNorm(weight, 1e-5)(x), F.rms_norm(x, (48,), weight, 1e-5), rtol=1e-5, atol=1e-7)
    assert torch.equal(x, before)
