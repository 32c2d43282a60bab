"""Shared by tests of the roofline."""

from pathlib import Path

import pytest
import torch

from paretone.measure.roofline import benchmarks, clock
from paretone.measure.roofline import ceilings as store
from paretone.measure.roofline.ceilings import Ceilings
from tests.engine.measure.roofline.known import keep_known_ceilings
from tests.workload import workload


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is measured must be there; how exactly does not matter."""
    for module in (benchmarks, clock):
        monkeypatch.setattr(module, "LEAST_SECONDS", workload(module.LEAST_SECONDS, 0.001))


@pytest.fixture
def known_ceilings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Ceilings:
    """Ceilings that are kept for this machine, so that no test has to measure them."""
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path))
    keep_known_ceilings()
    return store.kept(benchmarks.unmeasured(torch.device("cpu")).key)
