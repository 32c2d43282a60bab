from __future__ import annotations

import pytest
import torch

from paretone.sampling.flow import sampling_grid
from paretone.sampling.schedules import EPSS


@pytest.mark.parametrize("sway", [0.0, -1.0, -0.5, 0.3, 1.0])
@pytest.mark.parametrize("spacing", ["uniform", "epss"])
def test_every_grid_is_that_of_the_official_formula(spacing: str, sway: float) -> None:
    for steps in range(1, 129):
        if spacing == "epss" and steps in EPSS:
            times = torch.tensor(EPSS[steps], dtype=torch.float32) / 32
        else:
            times = torch.linspace(0, 1, steps + 1)
        if sway:
            times = times + sway * (torch.cos(torch.pi / 2 * times) - 1 + times)
        found = torch.from_numpy(sampling_grid(steps, spacing, sway))
        # Torch's own linspace differs from itself by a unit in the last place, by the processor's instructions.
        torch.testing.assert_close(found, times, atol=2**-22, rtol=0, msg=f"{steps} steps")
