"""``paretone view``: compute a view and print its figure as text, JSON or a table for other programs."""

from __future__ import annotations

import argparse

from paretone import files
from paretone.bench.report import table as table_lines
from paretone.commands import arguments
from paretone.commands.command import Result
from paretone.commands.output import writable
from paretone.commands.terminal import JOB, Session
from paretone.models.base import Utterance
from paretone.session.commands import ComputeView
from paretone.setting.knobs import Values
from paretone.setting.setting import UsedTechnique
from paretone.techniques import Technique, techniques
from paretone.techniques.published import rule_of
from paretone.views import named_view, views
from paretone.views.figure import Bars, HeatMap, Panel
from paretone.views.view import CHOSEN, RULE, View

NAME = "view"
SUMMARY = "Compute a view: a question about a model, answered by real runs as a figure."
NOMINAL_LAYERS = 999
"""Knobs depend on the number of layers, which only the loaded model knows; their names do not."""
MOST_COLUMNS = 16
"""Wider heat maps are printed with every second, third … column."""


def declare(parser: argparse.ArgumentParser) -> None:
    names = parser.add_subparsers(title="views", metavar="NAME", required=True)
    for view in views():
        one = names.add_parser(view.name, help=view.question, description=f"{view.question} Source: {view.source}.")
        arguments.add_output(one)
        one.set_defaults(view=view)
        if knobs := view.knobs(NOMINAL_LAYERS):
            arguments.add_knobs(one.add_argument_group("the view"), knobs)
        one.add_argument("--csv", metavar="FILE", help="write all values as one long table")
        arguments.add_text(one)
        arguments.add_model(one)
        arguments.add_sampler(one)
        for technique in _calibrated(view):
            # The first knob sets a technique's strength, which views choose.
            arguments.add_knobs(
                one.add_argument_group(f"{technique.title}, if the view calibrates"), technique.knobs[1:]
            )


def run(options: argparse.Namespace, session: Session) -> Result:
    view = options.view
    table = None if options.csv is None else writable(options.csv)
    model_id = arguments.model(options)
    plain = arguments.setting(options, model_id)
    utterance = Utterance(arguments.text(options), arguments.voice(options, model_id))
    model = arguments.load(options, session, model_id, options.variant)
    knobs = Values(arguments.given(options, view.knobs(model.info.layers)))
    for technique in _calibrated(view):
        if given := arguments.given(options, technique.knobs):
            # In the published rule, what is given replaces only itself.
            published = RULE in view.knobs(NOMINAL_LAYERS) and "rule" not in knobs
            used = rule_of(technique, plain, model.info.knobs, published).replace(**given)
            plain = plain.with_technique(UsedTechnique(technique.name, used))
            knobs = knobs.replace(rule=CHOSEN) if published else knobs
    figure = session.carry_out(ComputeView(JOB, view.name, utterance, plain, knobs)).figure
    if table is not None:
        files.write(table, figure.to_csv().encode())
    lines = [f"{figure.title}: {figure.question}", f"Source: {figure.source}", ""]
    for panel in figure.panels:
        lines += [f"{panel.title} ({_axes(panel)})", *table_lines(_rows(panel)), ""]
    lines += [figure.caption, "", f"Made with {figure.provenance.line}; {figure.provenance.machine}."]
    return Result(figure.to_json(), "\n".join([*lines, f"Wrote {table}."] if table else lines))


def _calibrated(view: View) -> list[Technique]:
    own = (one for one in techniques() if one.prepared_by == "calibration")
    return [one for one in own if any(named_view(name) is view for name in one.views)]


def _axes(panel: Panel) -> str:
    if isinstance(panel, HeatMap):
        return f"{panel.colour.label}; {panel.y.label} down, {panel.x.label} to the right"
    return f"{panel.y.label} by {panel.x.label}"


def _rows(panel: Panel) -> list[dict[str, object]]:
    if isinstance(panel, HeatMap):
        stride = -(-len(panel.columns) // MOST_COLUMNS)
        return [
            {panel.y.title: f"{y:g}"}
            | {
                f"{x:g}": panel.categories[int(value)] if panel.categories else round(value, 3)
                for x, value in list(zip(panel.columns, row, strict=True))[::stride]
            }
            for y, row in zip(panel.rows, panel.values, strict=True)
        ]
    bars = isinstance(panel, Bars)
    return [
        {"series": series, panel.x.title: x if bars else round(x, 4), panel.y.title: round(value, 4)}
        | ({"low": round(low, 4), "high": round(high, 4)} if low != "" else {})
        | ({"note": note} if note else {})
        for series, x, _, value, low, high, note in panel.lines()
    ]
