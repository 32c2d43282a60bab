"""Artefacts of techniques. Torch-free."""

from __future__ import annotations

from typing import Protocol


class Artefact(Protocol):
    """Result of preparing a technique that synthesis needs, such as a strategy table. Immutable and picklable."""

    @property
    def fingerprint(self) -> str:
        """Hexadecimal digits that are equal for artefacts that act alike; settings name artefacts by them."""
