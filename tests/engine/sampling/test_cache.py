"""Keys and values in static memory."""

from __future__ import annotations

import pytest
import torch

from paretone.sampling.cache import KeyValueCache


def rows(tokens: int, seed: int) -> torch.Tensor:
    return torch.randn(2, 3, tokens, 4, generator=torch.Generator().manual_seed(seed))


def test_what_was_written_comes_back_in_order() -> None:
    cache = KeyValueCache(2, 3, 10, 4, batch=2)
    for layer in range(2):
        keys, values = cache.extend(layer, rows(4, layer), -rows(4, layer))
        assert torch.equal(keys, rows(4, layer)) and torch.equal(values, -rows(4, layer))
    cache.advance(4)
    keys, _ = cache.extend(1, rows(2, 7), rows(2, 8))
    assert torch.equal(keys, torch.cat([rows(4, 1), rows(2, 7)], dim=2))
    assert cache.length == 4


def test_taking_back_moves_no_memory() -> None:
    cache = KeyValueCache(1, 3, 10, 4, batch=2)
    keys, _ = cache.extend(0, rows(6, 0), rows(6, 1))
    cache.advance(6)
    cache.crop(2)
    again, values = cache.extend(0, rows(1, 2), rows(1, 3))
    assert again.data_ptr() == keys.data_ptr()
    assert torch.equal(again, torch.cat([rows(6, 0)[:, :, :2], rows(1, 2)], dim=2))
    assert torch.equal(values, torch.cat([rows(6, 1)[:, :, :2], rows(1, 3)], dim=2))


def test_windows_write_what_extending_returns() -> None:
    cache = KeyValueCache(2, 3, 10, 4, batch=2)
    for layer in range(2):
        cache.extend(layer, rows(4, layer), -rows(4, layer))
    cache.advance(4)
    for layer, (place, keys, values) in enumerate(cache.windows(2)):
        place.copy_(torch.cat([rows(2, 7), rows(2, 8)], dim=1).transpose(1, 2))
        assert torch.equal(keys, torch.cat([rows(4, layer), rows(2, 7)], dim=2))
        assert torch.equal(values, torch.cat([-rows(4, layer), rows(2, 8)], dim=2))
    assert cache.length == 4
    with pytest.raises(ValueError, match="11 tokens do not fit into a cache of 10"):
        cache.windows(7)


def test_it_never_grows() -> None:
    cache = KeyValueCache(1, 3, 5, 4, batch=2)
    cache.extend(0, rows(4, 0), rows(4, 0))
    cache.advance(4)
    with pytest.raises(ValueError, match="6 tokens do not fit into a cache of 5"):
        cache.extend(0, rows(2, 0), rows(2, 0))
    with pytest.raises(ValueError, match="2 tokens cannot follow 4"):
        cache.advance(2)
    with pytest.raises(ValueError, match="4 tokens cannot be cropped to 5"):
        cache.crop(5)
