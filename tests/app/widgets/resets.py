"""Where Tab finds the button that restores the default of a knob."""

from __future__ import annotations

from PySide6.QtWidgets import QToolButton

from paretone_app.widgets.knob_controls import KnobControls


def reset_of(controls: KnobControls, name: str) -> QToolButton:
    """The button after the control of the knob ``name``."""
    places = iter(controls.reachable)
    found = next(after for one, after in zip(places, places, strict=True) if one is controls.editor(name))
    assert isinstance(found, QToolButton)
    return found
