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
    rows = rows_of_settings(results)
    for row, one in zip(rows, results.settings, strict=True):
        row["definition"] = json.dumps(one.setting.to_json(), sort_keys=True)
    if results.references:
        reference = {"setting": REFERENCE, "origin": "reference"} | _cells(results, results.references)
        rows.append(dict.fromkeys(rows[0] if rows else reference, "") | reference)
    return _with_head(rows)


def takes_csv(results: Results) -> str:
    """One row a finished take, as measured."""
    return _with_head(rows_of_takes(results))


def rows_of_settings(results: Results) -> list[dict[str, object]]:
    """One row per setting: each metric with its interval and number of takes; ``None`` where it was not measured."""
    return [
        {
            "setting": setting_title(one),
            "key": one.key,
            "origin": one.origin,
            "takes": one.finished,
            "busy_takes": one.busy,
            "problem": one.problem,
        }
        | _cells(results, one.figures)
        for one in results.settings
    ]


def _cells(results: Results, figures: Mapping[str, Estimate]) -> dict[str, object]:
    cells: dict[str, object] = {}
    for name in (one.name for one in results.metrics):
        figure = figures.get(name)
        values = (None,) * 4 if figure is None else (figure.value, figure.low, figure.high, figure.n)
        cells |= dict(zip((name, f"{name}_low", f"{name}_high", f"{name}_n"), values, strict=True))
    return cells


def rows_of_takes(results: Results) -> list[dict[str, object]]:
    """One row per finished take."""
    own = {one.name: one for one in METRICS if one.of is not None}
    with Store(results.folder, read_only=True) as store:
        return [
            {
                "setting": take.cell.setting,
                "text": take.text,
                "voice": shown_name(take.voice),
                "seed": take.cell.seed,
                "round": take.cell.round,
                "audio": "" if take.take in results.lost else f"audio/{take.take}.wav",
                **{name: value_of(one, take) for name, one in own.items()},
                "busy": int(take.measurements.busy),
                "clock_seconds": take.clock_seconds,
                "clock": take.clock,
                "verdicts": json.dumps([one.to_json() for one in take.verdicts], ensure_ascii=False),
                "machine": take.machine,
                "created": take.created,
                "voice_id": take.voice,
            }
            for take in store.takes()
        ]


def _with_head(rows: Sequence[Mapping[str, object]]) -> str:
    return comma_separated([list(rows[0]), *(row.values() for row in rows)] if rows else [])


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
