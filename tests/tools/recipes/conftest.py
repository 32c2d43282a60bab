"""Shared by tests of recipes."""

from collections.abc import Iterator
from functools import cache
from types import SimpleNamespace

import pytest
import torch

# What these tests draw is the same every time, as in tests of the engine.
from tests.engine.conftest import pytest_fixture_setup, pytest_runtest_call  # noqa: F401
from tests.workload import is_thorough


@pytest.fixture(autouse=True, scope="module")
def _short_decoder() -> Iterator[None]:
    """The decoder that says what an error sounds like has its first block only, and is read once: most of the time of a
    training step of a small model would be its other three."""
    if is_thorough():
        yield
        return
    from tests.tools.recipes import bundled_recipe

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bundled_recipe, "NaturalDecoder", SimpleNamespace(load=_decoder))
        yield


@cache
def _decoder(device: torch.device) -> object:
    from paretone.models.minis.natural_decoder import NaturalDecoder

    decoder = NaturalDecoder.load(device=device)
    decoder.network.blocks = decoder.network.blocks[:1]
    return decoder
