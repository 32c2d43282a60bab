"""Torch's profiler, without the lines that it writes for tracing tools on standard error.

``USDT:… profiler_start`` and ``…_stop`` are messages of Kineto, which torch's profiler is made of, at its highest
level. From which level on it writes any, it reads from the environment when it is first used. None is missed: what goes
wrong raises, or the profiler's users check for it.

:class:`profile_operators` is what :class:`profile` is made of, for processors only. The latter would import torch's
compiler first, for a second.
"""

from __future__ import annotations

import os

from torch.autograd.profiler import profile as profile_operators
from torch.profiler import ProfilerActivity, profile

__all__ = ["ProfilerActivity", "profile", "profile_operators"]

os.environ.setdefault("KINETO_LOG_LEVEL", "6")
