"""Peak memory."""

from __future__ import annotations

import pytest
import torch

from engine.measure.memory import PeakMemory, bytes_in_use

MEBI = 2**20


def test_peak_of_the_cpu_sees_what_has_been_freed() -> None:
    memory = PeakMemory()
    before = memory.sample()
    block = torch.ones(64 * MEBI)
    assert memory.sample() - before > 200 * MEBI
    del block
    assert bytes_in_use() - before < 100 * MEBI, "the block of 256 MiB is free again"
    assert 200 * MEBI < memory.peak_bytes - before < 400 * MEBI


def test_peak_starts_anew() -> None:
    first = PeakMemory()
    before = first.sample()
    block = torch.ones(64 * MEBI)
    first.sample()
    del block
    assert first.peak_bytes - before > 200 * MEBI
    assert PeakMemory().peak_bytes - before < 100 * MEBI


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA graphics card")
def test_peak_of_a_graphics_card() -> None:
    memory = PeakMemory("cuda")
    before = memory.sample()
    block = torch.ones(64 * MEBI, device="cuda")
    del block
    assert memory.peak_bytes - before == 256 * MEBI
