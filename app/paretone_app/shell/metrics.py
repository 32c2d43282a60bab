"""The type scale and the spacing grid: the only sizes and weights of text, and the only gaps between controls.

Sizes are shares of the desktop's own font, so that people who enlarge that enlarge everything. Text painted into cells
of a plot is fitted to the cells instead.
"""

from __future__ import annotations

from PySide6.QtGui import QFont

SMALL, BODY, HEADING, FIGURE = 0.85, 1.0, 1.4, 2.4
TYPE_SCALE = (SMALL, BODY, HEADING, FIGURE)
"""Scales and names in plots; text; headings and large buttons; the figure that a panel is about."""
REGULAR, STRONG = 400, 600
WEIGHTS = (REGULAR, STRONG)

TIGHT, NEAR, GAP, WIDE, BROAD = 2, 4, 8, 12, 16
GRID = (0, TIGHT, NEAR, GAP, WIDE, BROAD)
"""Pixels between what belongs together, lines of one thing, controls, parts of a panel, and columns."""


def text_font(base: QFont, size: float = BODY, strong: bool = False) -> QFont:
    """``base``, the desktop's font, in one of the sizes of :data:`TYPE_SCALE`."""
    made = QFont(base)
    if size != BODY:
        made.setPointSizeF(base.pointSizeF() * size)
    if strong:
        made.setWeight(QFont.Weight.DemiBold)
    return made


def bold_font(base: QFont) -> QFont:
    """``base`` as rich text shows it in bold, to measure such text by."""
    made = QFont(base)
    made.setBold(True)
    return made
