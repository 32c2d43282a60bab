"""The result of a command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Result:
    """JSON values for machines, text for people; both give the same numbers."""

    data: Mapping[str, object]
    text: str = ""
    problem: str = ""
    """Why there is only a part of it, as a sentence for standard error; ``""`` for the whole."""
    exit_code: int = 0
