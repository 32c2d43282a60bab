"""The colours of the light and the dark scheme."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Colours:
    window: str
    base: str
    raised: str
    border: str
    text: str
    muted: str
    disabled: str
    accent: str
    on_accent: str
    good: str
    warning: str
    danger: str
    baseline: str
    """Take A, in every plot."""
    accelerated: str
    """Take B, in every plot."""


LIGHT = Colours(
    window="#f3f5f8",
    base="#ffffff",
    raised="#e8ecf2",
    border="#cfd6e0",
    text="#18202c",
    muted="#505b6b",
    disabled="#6d7786",
    accent="#1f57c8",
    on_accent="#ffffff",
    good="#146c43",
    warning="#7d5200",
    danger="#ad1f17",
    baseline="#1f57c8",
    accelerated="#b4480b",
)

DARK = Colours(
    window="#14171c",
    base="#1b1f26",
    raised="#262c36",
    border="#38414e",
    text="#e8ebf1",
    muted="#a9b3c1",
    disabled="#8d97a6",
    accent="#82aaff",
    on_accent="#0b1630",
    good="#63d39a",
    warning="#f2bd56",
    danger="#ff948a",
    baseline="#82aaff",
    accelerated="#ffa366",
)

ON_GROUND = "#ffffff"
"""Text on :func:`ground`, in both schemes."""
_GROUND = 0.16
"""Luminance: contrast 5 to white, and 3 to each scheme's text, which marks the focus around it."""


def ground(colour: str) -> str:
    """The shade of ``colour`` for pressed and primary buttons."""
    channels = [_linear(int(colour[place : place + 2], 16) / 255) for place in (1, 3, 5)]
    factor = _GROUND / sum(weight * one for weight, one in zip((0.2126, 0.7152, 0.0722), channels, strict=True))
    return "#" + "".join(f"{round(255 * _encoded(min(1.0, factor * one))):02x}" for one in channels)


def _linear(value: float) -> float:
    return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4


def _encoded(value: float) -> float:
    return 12.92 * value if value <= 0.0031308 else 1.055 * value ** (1 / 2.4) - 0.055
