"""A study's results as tables: CSV for programs, LaTeX for papers. Torch-free."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from paretone.measure.estimates import Estimate
from paretone.measure.metrics import METRICS, Metric
from paretone.models.own_voices import shown_name
from paretone.studies.results import Results, value_of
from paretone.studies.store import Store
from paretone.studies.wording import REFERENCE, setting_title
from paretone.tables import comma_separated


def to_csv(results: Results) -> str:
    """One row a setting: each metric with its interval and number of takes."""
    rows: list[list[object]] = []
    names = [one.name for one in results.metrics]
    columns = [f"{name}{suffix}" for name in names for suffix in ("", "_low", "_high", "_n")]
    rows.append(["setting", "key", "origin", "takes", "busy_takes", "problem", *columns, "definition"])
    for one in results.settings:
        about = [setting_title(one), one.key, one.origin, one.finished, one.busy, one.problem]
        definition = json.dumps(one.setting.to_json(), sort_keys=True)
        rows.append([*about, *_csv_cells(one.figures, names), definition])
    if results.references:
        rows.append([REFERENCE, "", "reference", "", "", "", *_csv_cells(results.references, names), ""])
    return comma_separated(rows)


def _csv_cells(figures: Mapping[str, Estimate], names: Sequence[str]) -> list[object]:
    cells: list[object] = []
    for name in names:
        figure = figures.get(name)
        cells += ["", "", "", ""] if figure is None else [figure.value, figure.low, figure.high, figure.n]
    return cells


def takes_csv(results: Results) -> str:
    """One row a finished take, as measured."""
    rows: list[list[object]] = []
    own = {one.name: one for one in METRICS if one.of is not None}
    head = ["setting", "text", "voice", "seed", "round", "audio", *own, "busy", "clock_seconds", "clock"]
    rows.append([*head, "verdicts", "machine", "created", "voice_id"])
    with Store(results.folder, read_only=True) as store:
        for take in store.takes():
            values = [value_of(one, take) for one in own.values()]
            verdicts = json.dumps([one.to_json() for one in take.verdicts], ensure_ascii=False)
            rows.append(
                [
                    take.cell.setting,
                    take.text,
                    shown_name(take.voice),
                    take.cell.seed,
                    take.cell.round,
                    "" if take.take in results.lost else f"audio/{take.take}.wav",
                    *("" if value is None else value for value in values),
                    int(take.measurements.busy),
                    take.clock_seconds,
                    take.clock,
                    verdicts,
                    take.machine,
                    take.created,
                    take.voice,
                ]
            )
    return comma_separated(rows)


def to_latex(results: Results) -> str:
    """A table for papers, with the package booktabs."""
    shown = [one for one in results.metrics if one.better != "neither" and _varies(results, one)]
    lines = [
        "% Needs \\usepackage{booktabs}. Values with 95 \\% bootstrap intervals over the sentences.",
        f"\\begin{{tabular}}{{l{'r' * len(shown)}}}",
        "\\toprule",
        " & ".join(["Setting", *(_tex(one.label) + _arrow(one) for one in shown)]) + " \\\\",
        "\\midrule",
    ]
    for one in results.settings:
        if one.finished:
            cells = (_tex_figure(one.figures.get(each.name)) for each in shown)
            lines.append(" & ".join([_tex(setting_title(one)), *cells]) + " \\\\")
    if any(each.name in results.references for each in shown):
        cells = (_tex_figure(results.references.get(each.name)) for each in shown)
        lines += ["\\midrule", " & ".join([REFERENCE, *cells]) + " \\\\"]
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", ""])


def _varies(results: Results, one: Metric) -> bool:
    """Whether the settings differ in it at all: a column of zeros says nothing in a paper, unless a judge said so."""
    return bool(one.judge) or len({setting.value(one.name) for setting in results.settings} - {None}) > 1


def _arrow(one: Metric) -> str:
    return " $\\downarrow$" if one.better == "lower" else " $\\uparrow$"


def _tex_figure(figure: Estimate | None) -> str:
    if figure is None:
        return "--"
    if not figure.spreads:
        return f"{figure.value:.3g}"
    return f"{figure.value:.3g} {{\\scriptsize [{figure.low:.3g}, {figure.high:.3g}]}}"


_TEX = {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "–": "--"}
_GREEK = {
    "δ": "\\delta",
    "β": "\\beta",
    "τ": "\\tau",
    "ε": "\\varepsilon",
    "θ": "\\theta",
    "α": "\\alpha",
    "γ": "\\gamma",
}


def _tex(text: str) -> str:
    """``text`` with all that means something to LaTeX escaped."""
    found = []
    for letter in text:
        if letter in _GREEK:
            found.append(f"${_GREEK[letter]}$")
        else:
            found.append(_TEX.get(letter, f"\\{letter}" if letter in "&%$#_{}" else letter))
    return "".join(found)
