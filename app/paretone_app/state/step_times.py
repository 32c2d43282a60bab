"""The flow times from noise to speech that a plan, or sampler options alone, make."""

from __future__ import annotations

from typing import Any

import numpy as np

from paretone.errors import SettingError
from paretone.sampling.schedules import first_halved, time_grid
from paretone.setting.knobs import Values
from paretone.setting.plan import FlowPlan


def plan_times(plan: Any) -> tuple[float, ...]:
    """Step times, placed ones included; empty unless it is a flow plan."""
    if not isinstance(plan, FlowPlan):
        return ()
    times = option_times(plan.options) if plan.times is None else plan.times
    return tuple(first_halved(np.array(times, np.float32)).tolist()) if plan.halves_first and times else times


def option_times(options: Values) -> tuple[float, ...]:
    """Those that ``options`` make; none if they make no grid."""
    try:
        times = time_grid(int(options["steps"]), str(options["spacing"]), float(options["sway"]))
    except (KeyError, SettingError):
        return ()
    return tuple(float(time) for time in times)
