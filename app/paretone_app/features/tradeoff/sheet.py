"""The trade-off view for export: plot, legend and origin as SVG or PNG; all figures as CSV."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from PySide6.QtGui import QFont

from paretone.models.voices import shown_name
from paretone_app.features.tradeoff.axes import axis, said
from paretone_app.features.tradeoff.plot import TradeoffPlot
from paretone_app.features.tradeoff.scene import Filter, Scene
from paretone_app.features.tradeoff.styles import PointStyles, legend
from paretone_app.features.tradeoff.words import counts, remarks, table
from paretone_app.plotting import files
from paretone_app.plotting.chart import EVERYTHING, Sections
from paretone_app.plotting.sheet import Sheet
from paretone_app.results.points import STUDY, technique_title
from paretone_app.shell.colours import LIGHT, Colours

WIDTH, PLOT = 1100, 620


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
    lines = _origins(shown, chosen, sections != EVERYTHING)

    def sheet() -> Sheet:
        plot = TradeoffPlot(colours, on_paper=True)
        looks = PointStyles(colours)
        plot.show_scene(shown, looks)
        plot.show_sections(sections)
        made = Sheet(WIDTH, colours, font)
        made.title(_title(shown))
        made.charts([plot], PLOT)
        made.legend(tuple(legend(shown, looks)))
        for line in lines:
            made.line(line)
        return made

    files.write(
        path,
        {
            ".svg": lambda: sheet().svg(_title(shown), " ".join(lines)),
            ".png": lambda: sheet().png(),
            ".csv": lambda: table(shown).encode(),
        },
    )


def _title(shown: Scene) -> str:
    x, y = (one.label(shown.options.ratios) for one in shown.options.axes)
    return f"{y} against {x}"


def _origins(shown: Scene, chosen: Filter, section: bool) -> list[str]:
    """Description of the figure, in lines."""
    own = [one for one in shown.points if not one.published]
    sources = dict.fromkeys(f"{one.source} ({one.model})" for one in own)
    found = [f"{counts(shown)}. {'; '.join(sources)}. {datetime.now(UTC):%Y-%m-%d}."]
    if any(one.kind == STUDY for one in own) and shown.options.intervals:
        found.append("Lines: 95 % bootstrap intervals over sentences. Step line: Pareto front of the shown points.")
    if any(shown.floors):
        found.append("Dashed: the same judge's score of the reference speech; points beyond it cannot be told apart.")
    if section:
        found.append("A section of the axes; points outside are not drawn.")
    conditions = [
        f"{name}: {value}"
        for name, value in (
            ("source", chosen.source),
            ("ghosts", chosen.ghosts),
            ("model", chosen.model),
            ("voice", shown_name(chosen.voice)),
            ("words", chosen.words),
            (
                "ranges",
                ", ".join(f"{axis(one.axis).title} {said(one.low)} to {said(one.high)}" for one in chosen.ranges),
            ),
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
