"""The trade-off view as a sheet by itself: plot, legend and origin as SVG or PNG; all figures as CSV."""

from __future__ import annotations

import csv
import io
import json
import math
from datetime import UTC, datetime
from pathlib import Path

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPicture

from app.features.tradeoff.axes import AXES
from app.features.tradeoff.painting import EVERYTHING, Painting, Sections
from app.features.tradeoff.points import PUBLISHED, STUDY, TAKE, Point, in_order, technique_title
from app.features.tradeoff.scene import Filter, Scene
from app.features.tradeoff.styles import Looks, paint_glyph
from app.features.tradeoff.words import counts, remarks
from app.plotting import files
from app.shell.theme import LIGHT, Colours

ENDINGS = ("svg", "png", "csv")
WIDTH, PLOT, MARGIN = 1100, 620, 18
_LETTERS = 15
"""Pixels of the font's size on paper."""
_FINE = 12


def write(
    shown: Scene,
    chosen: Filter,
    path: Path,
    font: QFont,
    colours: Colours = LIGHT,
    sections: Sections = EVERYTHING,
) -> None:
    """Write what is shown as the ending of ``path`` says: ``.svg``, ``.png`` or ``.csv``, which has the points beyond
    the ``sections``, too. Raises :class:`PlainError` for another ending, or when the file cannot be written."""
    looks = Looks(in_order({name for one in shown.points for name in one.techniques}), colours)
    lines = _origins(shown, chosen, sections != EVERYTHING)

    def paint(painter: QPainter, height: float = 2.0 * PLOT) -> float:
        return _paint(painter, shown, looks, lines, QRectF(0, 0, WIDTH, height), font, colours, sections)

    trial = QPicture()
    painter = QPainter(trial)
    size = QSize(WIDTH, math.ceil(paint(painter)))
    painter.end()

    files.write(
        path,
        {
            ".svg": lambda: files.svg(size, paint, _title(shown), " ".join(lines)),
            ".png": lambda: files.png(size, paint),
            ".csv": lambda: table(shown).encode(),
        },
    )


def _title(shown: Scene) -> str:
    x, y = (one.label(shown.options.ratios) for one in shown.options.axes)
    return f"{y} against {x}"


def _origins(shown: Scene, chosen: Filter, section: bool) -> list[str]:
    """What the figure is of, in lines."""
    own = [one for one in shown.points if not one.published]
    sources = dict.fromkeys(f"{one.source} ({one.model})" for one in own)
    found = [f"{counts(shown)}. {'; '.join(sources)}. {datetime.now(UTC):%Y-%m-%d}."]
    if any(one.kind == STUDY for one in own) and shown.options.intervals:
        found.append("Lines: 95 % bootstrap intervals over sentences. Step line: the front of what is shown.")
    if any(shown.floors):
        found.append("Dashed: what the same judge makes of the reference speech; below, it tells no two points apart.")
    if section:
        found.append("A section of the axes; points beyond it are not drawn.")
    conditions = [
        f"{name}: {value}"
        for name, value in (
            ("source", chosen.source),
            ("model", chosen.model),
            ("voice", chosen.voice),
            ("words", chosen.words),
            ("without", ", ".join(technique_title(one) or "baseline" for one in sorted(chosen.hidden))),
        )
        if value
    ]
    if conditions:
        found.append(f"Filtered by {'; '.join(conditions)}.")
    found += remarks(shown)
    found += dict.fromkeys(machine for one in own for machine in one.machines)
    papers = dict.fromkeys(
        f"Published: {one.source}, {one.model} ({one.remarks[1]})" for one in shown.points if one.published
    )
    return [*found, *papers]


def _paint(
    painter: QPainter,
    shown: Scene,
    looks: Looks,
    lines: list[str],
    whole: QRectF,
    font: QFont,
    colours: Colours,
    sections: Sections,
) -> float:
    """Draw the sheet; gives the height that it takes."""
    painter.fillRect(whole, QColor(colours.base))
    plain, fine, bold = QFont(font), QFont(font), QFont(font)
    plain.setPixelSize(_LETTERS - 1)
    fine.setPixelSize(_FINE)
    bold.setPixelSize(_LETTERS + 2)
    bold.setBold(True)
    painter.setFont(bold)
    painter.setPen(QColor(colours.text))
    width = whole.width() - 2 * MARGIN
    painter.drawText(QRectF(MARGIN, MARGIN / 2, width, 2 * _LETTERS), Qt.AlignmentFlag.AlignVCenter, _title(shown))
    area = QRectF(MARGIN, MARGIN / 2 + 2 * _LETTERS, width, PLOT)
    Painting(shown, looks, plain, area, sections).paint(painter, colours)
    painter.setFont(fine)
    y = _paint_legend(painter, shown, looks, QRectF(MARGIN, area.bottom() + MARGIN / 2, width, 0), fine, colours)
    painter.setPen(QColor(colours.muted))
    metrics = QFontMetricsF(fine)
    for line in lines:
        text = metrics.elidedText(line, Qt.TextElideMode.ElideRight, width)
        painter.drawText(QRectF(MARGIN, y, width, 1.5 * _FINE), Qt.AlignmentFlag.AlignVCenter, text)
        y += 1.5 * _FINE
    return y + MARGIN


def _paint_legend(painter: QPainter, shown: Scene, looks: Looks, line: QRectF, font: QFont, colours: Colours) -> float:
    """Techniques and kinds of points with what they look like; gives where the next line begins."""
    metrics, height = QFontMetricsF(font), 1.6 * _FINE
    names = in_order({name for one in shown.points for name in one.techniques})
    entries = [(looks.glyph((name,), STUDY), technique_title(name)) for name in names]
    if any(not one.techniques and not one.published for one in shown.points):
        entries.insert(0, (looks.glyph((), STUDY), "Baseline"))
    kinds = {TAKE: "single take", STUDY: "setting of a study", PUBLISHED: "published"}
    there = {one.kind for one in shown.points}
    if len(there) > 1:
        first = names[:1]
        entries += [(looks.glyph(first, kind), text) for kind, text in kinds.items() if kind in there]
    x, y = line.left(), line.top()
    for glyph, text in entries:
        width = metrics.horizontalAdvance(text) + 3.2 * _FINE
        if x + width > line.right():
            x, y = line.left(), y + height
        paint_glyph(painter, QPointF(x + 0.6 * _FINE, y + height / 2), 0.42 * _FINE, glyph, colours)
        painter.setPen(QColor(colours.text))
        spot = QRectF(x + 1.5 * _FINE, y, width, height)
        painter.drawText(spot, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, text)
        x += width
    return y + height


def table(shown: Scene) -> str:
    """One row for each point that is shown, from left to right: every figure with its interval and number of takes."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    there = {name for one in shown.points for name in one.figures}
    names = [one.name for one in AXES if one.name in there]
    # Of papers, there may be figures that nobody measures here.
    names += sorted(there - set(names))
    head = ["title", "kind", "source", "model", "techniques", "front", *_places(shown)]
    columns = [f"{name}{suffix}" for name in names for suffix in ("", "_low", "_high", "_n")]
    judged = [name for name in names if any(name in one.floors for one in shown.points)]
    columns += [f"{name}_of_reference_speech" for name in judged]
    writer.writerow([*head, *columns, "setting", "machines", "remarks"])
    for index in shown.across:
        one = shown.points[index]
        cells: list[object] = []
        for name in names:
            figure = one.figures.get(name)
            cells += ["", "", "", ""] if figure is None else [figure.value, figure.low, figure.high, figure.n]
        cells += [one.floors[name].value if name in one.floors else "" for name in judged]
        places = [shown.x[index, 0], shown.y[index, 0]]
        writer.writerow(
            [
                *(one.title, one.kind, one.source, one.model, "+".join(one.techniques), int(index in shown.front)),
                *(float(place) for place in places),
                *cells,
                _setting(one),
                "; ".join(one.machines),
                "; ".join(one.remarks),
            ]
        )
    return text.getvalue()


def _places(shown: Scene) -> list[str]:
    axes = zip("xy", shown.options.axes, shown.logarithmic, strict=True)
    return [f"{side}{' (logarithmic)' * of}: {one.label(shown.options.ratios)}" for side, one, of in axes]


def _setting(one: Point) -> str:
    return "" if one.setting is None else json.dumps(one.setting.to_json(), sort_keys=True)
