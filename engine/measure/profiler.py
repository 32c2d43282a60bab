"""Torch's profiler, without the lines that it writes for tracing tools on standard error.

``USDT:… profiler_start`` and ``…_stop`` come from Kineto, which torch's profiler is made of, at its highest level of
messages. It reads the level that is written when it is first used; what goes wrong raises, or its users check for it.
"""

from __future__ import annotations

import os

from torch.profiler import ProfilerActivity, profile

__all__ = ["ProfilerActivity", "profile"]

os.environ.setdefault("KINETO_LOG_LEVEL", "6")
