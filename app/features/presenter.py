"""What a presenter is: one part of the user's work, with its panels, its actions and what connects them to the state.

A presenter is given what it needs when it is made, binds its actions, and puts those panels into their docks that are
there at once. Panels that draw with pyqtgraph come later, so that the window is painted first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from PySide6.QtWidgets import QWidget


class Presenter(Protocol):
    """What the window asks of every presenter."""

    later: Mapping[str, Callable[[], QWidget]]
    """Panels to build after the first paint, by the name of their place."""

    def refresh(self) -> None:
        """Show the present state: enable what can be done, and say why the rest cannot."""
