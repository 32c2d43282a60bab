"""Layers whose change of the rows is computed in one pass and reused in the next."""

from __future__ import annotations

from torch import Tensor


class LayerSpan:
    """Layers that lie side by side, neither the first nor the last among them, and what they added when they ran."""

    def __init__(self, layers: range) -> None:
        self.layers = layers
        self.recording = True
        """Whether the next pass computes them, or adds what they added."""
        self._added: Tensor | None = None

    def passed(self, hidden: Tensor) -> Tensor:
        """Rows (n, hidden) before the span to those after it, by what was added to the first n when it ran."""
        if self._added is None:
            raise ValueError("The layers of the span have not run yet.")
        return hidden + self._added[: len(hidden)]

    def ran(self, before: Tensor, after: Tensor) -> None:
        """Keep what the layers added: rows (n, hidden) before the span, and after it."""
        self._added = after - before
