"""Tensors that go to a device together."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TypeVar

import torch
from torch import Tensor

Batch = TypeVar("Batch")


def moved(batch: Batch, device: torch.device) -> Batch:
    """A copy of the dataclass ``batch`` whose tensors are on ``device``; everything else is as it was."""
    parts = {one.name: getattr(batch, one.name) for one in fields(batch)}  # type: ignore[arg-type]
    tensors = {name: part.to(device) for name, part in parts.items() if isinstance(part, Tensor)}
    return replace(batch, **tensors)  # type: ignore[type-var]
