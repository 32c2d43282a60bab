"""Whether a model's output can be played. Torch-free."""

from __future__ import annotations

import numpy as np

from paretone.errors import PlainError
from paretone.models.base import FLOW, ModelInfo
from paretone.setting.setting import Setting


def audible(samples: np.ndarray, what: str, setting: Setting, info: ModelInfo) -> np.ndarray:
    """``samples`` as contiguous float32. Raises :class:`PlainError` that names ``what`` if they are no numbers."""
    require_finite(samples, what, setting, info)
    return np.ascontiguousarray(samples, dtype=np.float32)


def require_finite(values: np.ndarray, what: str, setting: Setting, info: ModelInfo) -> None:
    """Raise :class:`PlainError` if ``values``, which are ``what``, are not all numbers."""
    if np.isfinite(values).all():
        return
    steps = setting.options.get("steps")
    remedies = ["more steps" if steps is not None else "other options"]
    if info.family == FLOW:
        remedies.append("less guidance")
    if info.precision != "float32":
        remedies.append("full precision (float32)")
    at = f" at {steps} steps" if steps is not None else ""
    raise PlainError(
        f"The model produced invalid numbers (NaN) for {what}{at} in {info.precision}; "
        f"try {' or '.join(remedies)}, or download the checkpoint again."
    )
