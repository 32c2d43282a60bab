"""Contrast of two colours, and of what a control adds to what it is drawn on, read from rendered pixels."""

from collections import Counter
from collections.abc import Iterable

import numpy as np
from PySide6.QtGui import QColor, QImage

INK = "\u2588" * 4
"""Text of full blocks: where it is drawn, its whole area has the colour of the text."""
BLANK = "\u2800" * 4
"""Text that draws nothing."""
_SHARE = 0.2
"""Of the pixels that are compared; fewer are the softened edges of letters and corners."""
_NEIGHBOURS = [(down, right) for down in (-1, 0, 1) for right in (-1, 0, 1)]


def luminance(colour: str) -> float:
    """Relative luminance of a hexadecimal colour, 0 to 1 (WCAG 2.2)."""
    channels = (QColor(colour).redF(), QColor(colour).greenF(), QColor(colour).blueF())
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def text_contrast(inked: QImage, blank: QImage) -> float:
    """Least contrast of a text to its ground, from a control with :data:`INK` and :data:`BLANK`; 1 if unseen."""
    there, ground = _pixels(inked), _pixels(blank)
    changed = there != ground
    return _least(zip(there[changed].tolist(), ground[changed].tolist(), strict=True))


def ring_contrast(focused: QImage, plain: QImage) -> float:
    """Least contrast of what marks the focus to what is below and beside it; 1 for a focus that cannot be seen."""
    there = _pixels(focused)
    changed = there != _pixels(plain)
    if not changed.any():
        return 1.0
    ring = Counter(there[changed].tolist()).most_common(1)[0][0]
    softened = _grown(changed & (there == ring))
    touched = _grown(softened) & ~softened & (there != ring)
    return _least((ring, one) for one in there[touched].tolist())


def _grown(area: np.ndarray) -> np.ndarray:
    """``area`` and the pixels around it: one of them is the softened edge of a round mark."""
    return np.any([np.roll(area, shift, (0, 1)) for shift in _NEIGHBOURS], axis=0)


def _least(pairs: Iterable[tuple[int, int]]) -> float:
    """The lowest contrast that a good part of ``pairs`` have."""
    counted = Counter(pairs)
    passed, number = 0.0, counted.total()
    for value, count in sorted((contrast(_name(one), _name(other)), count) for (one, other), count in counted.items()):
        passed += count
        if passed >= _SHARE * number:
            return value
    return 1.0


def _pixels(image: QImage) -> np.ndarray:
    plain = image.convertToFormat(QImage.Format.Format_RGB32)
    rows = np.frombuffer(plain.constBits(), np.uint32).reshape(plain.height(), plain.bytesPerLine() // 4)
    return rows[:, : plain.width()] & 0xFFFFFF


def _name(pixel: int) -> str:
    return f"#{pixel:06x}"
