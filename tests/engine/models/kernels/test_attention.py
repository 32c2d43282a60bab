"""Attention in machine code: equal to torch's, row by row, and used only where it applies."""

import logging
from collections.abc import Iterator

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from paretone.models.kernels import attention
from paretone.models.kernels.attention import attend
from paretone.sampling.tokens import unless_numba_fails

compiled_attention = pytest.importorskip("paretone.models.kernels.compiled_attention", exc_type=ImportError)
_chosen = unless_numba_fails("Attention runs in torch")(attention.machine_code.__wrapped__)


@pytest.fixture(autouse=True)
def _faster(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Machine code is used whatever a measurement says, on one thread."""
    monkeypatch.setattr(attention, "machine_code", lambda: compiled_attention)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def _inputs(heads: int, key_heads: int, queries: int, keys: int, width: int = 64, items: int = 2) -> list[Tensor]:
    shapes = (heads, queries), (key_heads, keys), (key_heads, keys)
    generator = torch.Generator().manual_seed(queries)
    return [torch.randn(items, some, length, width, generator=generator) for some, length in shapes]


@pytest.mark.parametrize(
    ("heads", "key_heads", "queries", "keys", "width"),
    [(1, 1, 1, 1, 64), (4, 4, 13, 64, 64), (2, 2, 7, 65, 128), (6, 2, 261, 261, 64), (4, 1, 5, 200, 192)],
)
def test_it_equals_the_operator(heads: int, key_heads: int, queries: int, keys: int, width: int) -> None:
    inputs = _inputs(heads, key_heads, queries, keys, width)
    grouped = heads != key_heads
    torch.testing.assert_close(attend(*inputs), F.scaled_dot_product_attention(*inputs, enable_gqa=grouped))
    apart = [one.transpose(1, 2).contiguous().transpose(1, 2) for one in inputs]
    strided = [torch.stack([one, one], -1)[..., 0] for one in inputs]
    for some in (apart, strided):
        assert torch.equal(attend(*some), attend(*inputs)), "the order in memory is only read"


def test_large_scores_and_numbers_that_are_none() -> None:
    query, key, value = _inputs(2, 2, 9, 90)
    wanted = F.scaled_dot_product_attention(100 * query, key, value)
    torch.testing.assert_close(attend(100 * query, key, value), wanted, atol=1e-4, rtol=1e-4)
    key[1, 1, 89] = torch.nan
    found = attend(query, key, value)
    assert found[1, 1].isnan().all()
    assert not (found[0].isnan().any() or found[1, 0].isnan().any())


def test_a_query_does_not_depend_on_others() -> None:
    query, key, value = _inputs(4, 2, 20, 130)
    whole = attend(query, key, value)
    assert torch.equal(attend(query[:, :, 7:8], key, value), whole[:, :, 7:8])
    assert torch.equal(attend(query[1:], key[1:], value[1:]), whole[1:])


def test_sequences_side_by_side_are_apart() -> None:
    inputs, lengths = _inputs(4, 2, 150, 150), [70, 1, 79]
    alone = torch.cat([attend(*part) for part in zip(*(one.split(lengths, 2) for one in inputs), strict=True)], 2)
    assert torch.equal(attend(*inputs, lengths=lengths), alone)


def test_a_mask_gradients_other_types_and_threads_are_the_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "machine_code", lambda: pytest.fail("it is not for these"))
    query, key, value = _inputs(2, 2, 5, 5)
    mask = torch.ones(5, 5, dtype=torch.bool).tril()
    assert torch.equal(attend(query, key, value, mask), F.scaled_dot_product_attention(query, key, value, mask))
    attend(query.requires_grad_(), key, value).sum().backward()
    assert query.grad is not None
    attend(*(one.detach().bfloat16() for one in (query, key, value)))
    torch.set_num_threads(2)
    attend(*(one.detach() for one in (query, key, value)))


def test_its_operations_are_counted() -> None:
    inputs, counted = _inputs(4, 2, 30, 30), []
    for lengths in (None, [10, 20]):
        with FlopCounterMode(display=False) as counter:
            attend(*inputs, lengths=lengths)
        counted.append(counter.get_total_flops())
    assert counted == [4 * 2 * 4 * 64 * 30 * 30, 4 * 2 * 4 * 64 * (10 * 10 + 20 * 20)]


def test_where_numba_fails_torch_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_attention, "attention", lambda *given: given[2] + 1)
    said: list[logging.LogRecord] = []
    log, handler = logging.getLogger(unless_numba_fails.__module__), logging.Handler()
    monkeypatch.setattr(handler, "emit", said.append)
    log.addHandler(handler)
    try:
        assert _chosen() is None
    finally:
        log.removeHandler(handler)
    assert [one.getMessage() for one in said] == ["Attention runs in torch: numba failed (its results are wrong)."]
