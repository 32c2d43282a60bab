"""Contrast of two colours."""

from __future__ import annotations

from PySide6.QtGui import QColor


def luminance(colour: str) -> float:
    """Relative luminance of a hexadecimal colour, 0 to 1 (WCAG 2.2)."""
    channels = (QColor(colour).redF(), QColor(colour).greenF(), QColor(colour).blueF())
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours, 1 to 21 (WCAG 2.2)."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)
