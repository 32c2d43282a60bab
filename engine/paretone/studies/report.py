"""A study's report: a self-contained HTML page, and its tables as CSV and LaTeX. Torch-free.

Audio is embedded as 16-bit FLAC, inaudibly different and playable in browsers; if a study has too many takes for a
page, the page has those of the first sentences and says where the others are.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath
from shlex import quote

import numpy as np

from paretone import files
from paretone.database import AUDIO
from paretone.errors import StudyError
from paretone.figures import svg
from paretone.figures.glyphs import FILLED, HOLLOW, SERIES_ON_ANY, Glyphs
from paretone.figures.scatter import Dimension, Scatter
from paretone.figures.svg import escape
from paretone.listening.results import ListeningScore, agreement_page
from paretone.measure.estimates import Estimate
from paretone.measure.loudness import headroom
from paretone.measure.metrics import JUDGED, METRICS, Metric, metric
from paretone.models.voices import shown_name
from paretone.setting.compatibility import checkpoint_text
from paretone.studies import wording
from paretone.studies.curves import curves_page, curves_sheet
from paretone.studies.definition import written
from paretone.studies.hooks import hooks
from paretone.studies.results import PlayableTake, Results, SettingResult, value_of
from paretone.studies.search import answer
from paretone.studies.space import Search
from paretone.studies.store import Store, read_audio
from paretone.studies.study import BASELINE, SERVER, duration
from paretone.techniques.registry import in_order, technique_mark
from paretone.wording import comma_separated

AUDIO_BYTES = 30 * 2**20
"""Maximum FLAC size in a page."""
WORST_BYTES = 10 * 2**20
"""Likewise of the takes with the most errors."""
SPEEDS = ("speed_up", "real_time_factor")
"""Metrics for the x axis; the first measured one is used."""
QUALITIES = (*(one.name for one in JUDGED), "log_mel_distance")
"""Metrics for the y axis, one plot per measured metric."""
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color-scheme: light
dark; } table { border-collapse: collapse; font-size: 13px; } td, th { padding: .25rem .6rem; border-bottom: 1px solid
#8884; text-align: right; white-space: nowrap; } td:nth-child(2), th:nth-child(2) { text-align: left; white-space:
normal; } .wide { overflow-x: auto; } .best { font-weight: 600; } small { opacity: .75; } audio { height: 2rem; width:
15rem; } pre { overflow-x: auto; background: #8882; padding: .6rem; font-size: 12px; } svg { max-width: 100%; height:
auto; } .small { display: flex; flex-wrap: wrap; gap: .5rem; }
"""


def to_html(results: Results, listened: Sequence[ListeningScore] = ()) -> str:
    """The whole page; ``listened``: results of listening tests by setting."""
    search = wording.search_in(results)
    notes = wording.note_lines(results) + [f"Failed: {sentence}" for sentence in results.failures]
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
        f"<title>{escape(results.title)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{escape(results.title)}</h1>",
        f"<p>{escape(_summary(results))}</p>",
        *(_answer(search, results) if search else []),
        *_figures(results),
        *curves_page(results),
        "<h2>Settings</h2>",
        _table(results),
        _files(results),
        *(f"<p>{escape(line)}</p>" for line in notes),
        *_tests(results),
        *agreement_page(results, listened),
        *_players(results),
        *_worst(results),
        "<h2>Every setting in full</h2>",
        *(_definition(number, one) for number, one in enumerate(results.settings, start=1)),
        *_origin(results),
        "</body></html>",
        "",
    ]
    return "\n".join(parts)


def _summary(results: Results) -> str:
    takes = [one.finished for one in results.settings if one.finished]
    weights = f" (weights {checkpoint_text(results.checkpoint)})" if results.checkpoint else ""
    return (
        f"{len(takes)} settings of {results.model}{weights}, {sum(takes)} takes, begun "
        f"{results.created[:10]}; {duration(results.busy_seconds)} of computing."
    )


def _answer(search: Search, results: Results) -> list[str]:
    told = answer(search, results.trials)
    rows = [f"<li>{escape(wording.answer_words(one, search, results))}</li>" for one in told.trials]
    found = f"<ul>{''.join(rows)}</ul>" if rows else "<p>No trial meets the constraints.</p>"
    return ["<h2>Answer</h2>", f"<p>{escape(search.words)}</p>", found, f"<p>{escape(told.words)}</p>"]


def _figures(results: Results) -> list[str]:
    served = any(one.origin == SERVER and one.finished for one in results.settings)
    # Servers have no baseline; baselines have only themselves, and would all lie at 1.
    alone = served or all(one.origin == BASELINE for one in results.settings)
    speeds = SPEEDS[1:] if alone else SPEEDS
    speed = next((name for name in speeds if any(name in one.figures for one in results.settings)), None)
    if speed is None:
        return []
    parts = []
    for name in QUALITIES:
        shown = scatter(results, speed, name)
        if len(shown.glyphs) > 1:
            across, down = metric(speed), metric(name)
            parts += [f"<h2>{escape(down.title)} against {escape(across.title)}</h2>", svg.draw(shown)]
            parts += [
                "<p><small>Filled, along the dashed line: no other setting is better in both. Two colours: two "
                f"techniques. Lines: 95 % intervals. Numbers: rows of the table. {escape(down.definition)}</small></p>"
            ]
    return parts


def scatter(results: Results, x: str, y: str) -> Scatter:
    """Every setting with both figures; those on the front are numbered."""
    best, across, up = results.front((x, y)), metric(x), metric(y)
    shown = [
        (number, one) for number, one in enumerate(results.settings, start=1) if x in one.figures and y in one.figures
    ]
    names = [in_order(each.technique for each in one.setting.techniques) for _, one in shown]
    glyphs = Glyphs(technique_mark, SERIES_ON_ANY, "currentColor")
    on_front = [one.key in best for _, one in shown]
    techniques = in_order({name for each in names for name in each})
    plain = any(not own and one.origin != SERVER for own, (_, one) in zip(names, shown, strict=True))
    legend = [*([()] if plain else []), *((name,) for name in techniques)]
    server = [(glyphs.server(), "Server")] if any(one.origin == SERVER for _, one in shown) else []
    along_x, along_y = (np.array([one.figures[name].ends for _, one in shown]).reshape(-1, 3) for name in (x, y))
    front = sorted((index for index, is_on in enumerate(on_front) if is_on), key=lambda one: along_x[one, 0])
    return Scatter(
        Dimension.of(across),
        Dimension.of(up),
        along_x,
        along_y,
        tuple(
            (glyphs.server if one.origin == SERVER else partial(glyphs.glyph, own))(FILLED if is_on else HOLLOW)
            for own, is_on, (_, one) in zip(names, on_front, shown, strict=True)
        ),
        tuple(str(number) if is_on else "" for (number, _), is_on in zip(shown, on_front, strict=True)),
        tuple(
            f"{wording.setting_title(one)}: {across.title} {across.said(one.figures[x].value)}, "
            f"{up.title} {up.said(one.figures[y].value)}"
            for _, one in shown
        ),
        tuple(front),
        doubtful=tuple(
            place for place, (_, one) in enumerate(shown) if one.busy and (across.wall_time or up.wall_time)
        ),
        legend=(
            *((glyphs.glyph(own), wording.short_title(own[0]) if own else "No technique") for own in legend),
            *server,
        ),
    )


def _table(results: Results) -> str:
    shown = results.metrics
    best = results.front([name for name in (*SPEEDS[:1], *QUALITIES) if any(name == one.name for one in shown)])
    heads = "".join(f'<th title="{escape(one.definition)}">{escape(one.label)}</th>' for one in shown)
    rows = [f"<tr><th>#</th><th>Setting</th>{heads}<th>Takes</th></tr>"]
    for number, one in enumerate(results.settings, start=1):
        cells = "".join(f"<td>{_figure(each, one.figures.get(each.name))}</td>" for each in shown)
        title = escape(wording.setting_title(one)) + (
            f"<br><small>{escape(one.problem)}</small>" if one.problem else ""
        )
        look = ' class="best"' if one.key in best else ""
        rows.append(f"<tr{look}><td>{number}</td><td>{title}</td>{cells}<td>{wording.takes_text(one)}</td></tr>")
    if results.references:
        cells = "".join(f"<td>{_figure(each, results.references.get(each.name))}</td>" for each in shown)
        rows.append(f"<tr><td></td><td>{wording.REFERENCE}</td>{cells}<td></td></tr>")
    note = (
        "<p><small>In brackets: 95 % intervals by bootstrap over the sentences. Bold: no other setting is better in "
        "speed and all measures of quality at once. Point at a column title for its definition.</small></p>"
    )
    return f'<div class="wide"><table>{"".join(rows)}</table></div>{note}'


def _files(results: Results) -> str:
    links = " and ".join(
        f'<a download="{name}" href="data:{kind};base64,{base64.b64encode(text.encode()).decode()}">{title}</a>'
        for name, kind, title, text in (
            ("results.csv", "text/csv", "CSV", to_csv(results)),
            ("results.tex", "application/x-tex", "LaTeX", to_latex(results)),
        )
    )
    return f"<p>This table as {links}.</p>"


def _figure(one: Metric, figure: Estimate | None) -> str:
    value, _, spread = wording.figure_text(one, figure).partition(" ")
    return f"{value} <small>{spread}</small>" if spread else value


def _tests(results: Results) -> list[str]:
    *lines, note = wording.paired_lines(results, len(results.settings)) or [""]
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return [f"<h2>Against the baseline</h2><ul>{items}</ul><p><small>{escape(note)}</small></p>"] if lines else []


def _players(results: Results) -> list[str]:
    sentences: dict[tuple[str, str, int], list[tuple[int, str, PlayableTake]]] = {}
    for number, one in enumerate(results.settings, start=1):
        for heard in results.heard.get(one.key, ()):
            place = sentences.setdefault((heard.text, heard.voice, heard.seed), [])
            place.append((number, wording.setting_title(one), heard))
    parts, spent, shown = ["<h2>Listen</h2>"], 0, 0
    for (text, voice, seed), takes in sentences.items():
        encoded = [_flac(heard.path) for _, _, heard in takes]
        size = sum(map(len, encoded))
        if shown and spent + size > AUDIO_BYTES:
            break
        spent, shown = spent + size, shown + 1
        rows = "".join(map(_player, takes, encoded))
        parts.append(
            f"<h3>“{escape(text)}” <small>({escape(shown_name(voice))}, seed {seed})</small></h3><table>{rows}</table>"
        )
    if shown < len(sentences):
        folder = escape(f"{results.folder.name}/{AUDIO}")
        told = f"{shown} of {len(sentences)} utterances; the others are in <code>{folder}</code>, named in takes.csv."
        parts.append(f"<p>{told}</p>")
    return parts


def _worst(results: Results) -> list[str]:
    """Players of the takes with the most errors in each setting, for as many settings as the page can hold."""
    parts: list[str] = []
    spent = 0
    for number, one in enumerate(results.settings, start=1):
        encoded = [(heard, _flac(heard.path)) for heard in results.worst(one.key)]
        spent += sum(len(data) for _, data in encoded)
        if not encoded or (parts and spent > WORST_BYTES):
            continue
        rows = "".join(
            _player((number, wording.worst_words(heard), replace(heard, understood="")), data)
            for heard, data in encoded
        )
        parts.append(f"<h3>{escape(wording.setting_title(one))}</h3><table>{rows}</table>")
    return ["<h2>Most errors</h2>", *parts] if parts else []


def _player(take: tuple[int, str, PlayableTake], data: str) -> str:
    number, title, heard = take
    understood = f"<br><small>heard: {escape(heard.understood)}</small>" if heard.understood else ""
    player = f'<audio controls preload="none" src="data:audio/flac;base64,{data}"></audio>'
    return f"<tr><td>{number}</td><td>{escape(title)}{understood}</td><td>{player}</td></tr>"


def _flac(path: Path) -> str:
    """A recording as base64 of 16-bit FLAC, scaled down as a whole if it exceeds full scale."""
    import soundfile

    samples, rate = read_audio(path)
    content = io.BytesIO()
    soundfile.write(content, samples * headroom(samples), rate, format="FLAC", subtype="PCM_16")
    return base64.b64encode(content.getvalue()).decode()


def _definition(number: int, one: SettingResult) -> str:
    return (
        f"<details><summary>{number}. {escape(wording.setting_title(one))} <small>({one.key})</small></summary>"
        f"<pre>{escape(json.dumps(one.setting.to_json(), indent=1, ensure_ascii=False))}</pre></details>"
    )


def _origin(results: Results) -> list[str]:
    file = Path(results.file).name if results.file else "study.toml"
    definition = written(results.definition, file)
    return [
        "<h2>Machine</h2>",
        *(f"<p>{escape(machine)}</p>" for machine in results.machines),
        *(f"<p>Speed-ups are measured by {escape(clock)}.</p>" for clock in results.clocks),
        "<h2>To repeat it</h2>",
        f"<pre>paretone study run {escape(quote(file))}\nparetone study export {escape(quote(file))}</pre>",
        f"<p>with {escape(file)}:</p>",
        f"<pre>{escape(definition)}</pre>",
    ]


# --- Tables -----------------------------------------------------------------------------------------------------------
# CSV for programs, LaTeX for papers.
def to_csv(results: Results) -> str:
    """One row per setting: each metric with its interval and number of takes."""
    rows = rows_of_settings(results)
    for row, one in zip(rows, results.settings, strict=True):
        row["definition"] = json.dumps(one.setting.to_json(), sort_keys=True)
    if results.references:
        reference = {"setting": wording.REFERENCE, "origin": "reference"} | _cells(results, results.references)
        rows.append(dict.fromkeys(rows[0] if rows else reference, "") | reference)
    return _with_head(rows)


def rows_of_settings(results: Results) -> list[dict[str, object]]:
    """One row per setting: each metric with its interval and number of takes; ``None`` if not measured."""
    return [
        {
            "setting": wording.setting_title(one),
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
    own = {one.name: one for one in METRICS if one.of is not None and not one.of_runs}
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
    """Table for papers, with the package booktabs."""
    # A judge's constant is a result, other constant columns are not.
    shown = [
        one
        for one in results.metrics
        if one.better != "neither"
        and (one.judge or len({setting.value(one.name) for setting in results.settings} - {None}) > 1)
    ]
    arrows = {"lower": " $\\downarrow$", "higher": " $\\uparrow$"}
    lines = [
        "% Needs \\usepackage{booktabs}. Values with 95 \\% bootstrap intervals over the sentences.",
        f"\\begin{{tabular}}{{l{'r' * len(shown)}}}",
        "\\toprule",
        " & ".join(["Setting", *(_tex(one.label) + arrows[one.better] for one in shown)]) + " \\\\",
        "\\midrule",
    ]
    for one in results.settings:
        if one.finished:
            cells = (_tex_figure(each, one.figures.get(each.name)) for each in shown)
            lines.append(" & ".join([_tex(wording.setting_title(one)), *cells]) + " \\\\")
    if any(each.name in results.references for each in shown):
        cells = (_tex_figure(each, results.references.get(each.name)) for each in shown)
        lines += ["\\midrule", " & ".join([wording.REFERENCE, *cells]) + " \\\\"]
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", ""])


def _tex_figure(one: Metric, figure: Estimate | None) -> str:
    if figure is None:
        return "--"
    value, low, high = map(one.spelt, figure.ends)
    return f"{value} {{\\scriptsize [{low}, {high}]}}" if figure.spreads else value


_TEX: dict[str, str | int | None] = {letter: f"\\{letter}" for letter in "&%$#_{}"}
_TEX |= {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "–": "--"}
_TEX |= {"δ": "$\\delta$", "β": "$\\beta$", "τ": "$\\tau$", "ε": "$\\varepsilon$", "θ": "$\\theta$"}
_TEX |= {"α": "$\\alpha$", "γ": "$\\gamma$"}


def _tex(text: str) -> str:
    return text.translate(str.maketrans(_TEX))


# --- Removing local folders -------------------------------------------------------------------------------------------
# Results as a report shows them: file names without this machine's folders.
_FILES = ("folder", "manifest", "manifest_audio", "sentences", "audio")
"""Fields of a study's file that may name files or folders."""


def shared(results: Results) -> Results:
    """``results`` for other readers. Relative paths stay: they are valid next to the study's file."""
    # Folders of this machine that may occur in sentences, longest first.
    found = {results.folder.absolute(), Path.home(), Path.cwd()}
    if results.file:
        found.add(Path(results.file).absolute().parent)
    found |= {Path(path).absolute().parent for path in _paths(results.definition)}
    folders = sorted((str(one) for one in found if one != one.parent), key=len, reverse=True)
    return replace(
        results,
        definition=_without_folders(results.definition),
        settings=tuple(replace(one, problem=_cut(one.problem, folders)) for one in results.settings),
        failed=tuple(replace(one, sentence=_cut(one.sentence, folders)) for one in results.failed),
        no_reference=_cut(results.no_reference, folders),
    )


def _without_folders(values: Mapping[str, object]) -> dict[str, object]:
    def cut(name: str, value: object) -> object:
        if isinstance(value, Mapping):
            return _without_folders(value)
        if isinstance(value, list):
            return [_without_folders(one) if isinstance(one, Mapping) else one for one in value]
        return _name(value) if name in _FILES and isinstance(value, str) else value

    return {name: cut(name, value) for name, value in values.items()}


def _name(path: str) -> str:
    kinds = PureWindowsPath, PurePosixPath
    return next((kind(path).name for kind in kinds if kind(path).is_absolute()), path)


def _paths(values: Mapping[str, object]) -> list[str]:
    found = [value for name, value in values.items() if name in _FILES and isinstance(value, str) and value]
    for value in values.values():
        for one in value if isinstance(value, list) else [value]:
            found += _paths(one) if isinstance(one, Mapping) else []
    return found


def _cut(sentence: str, folders: list[str]) -> str:
    for folder in folders:
        for separator in "/\\":
            sentence = sentence.replace(f"{folder}{separator}", "")
    return sentence


# --- Writing the report -----------------------------------------------------------------------------------------------
def write_report(results: Results, place: Path, listened: Sequence[ListeningScore] = ()) -> tuple[Path, ...]:
    """Write ``report.html``, ``results.csv``, ``takes.csv`` and ``results.tex`` into the folder ``place``; returns
    their paths. ``curves.svg`` is added if settings differ in one knob only. Techniques may add files, such as the
    importance of layers from a study that skips them. ``listened``: results of listening tests by setting.

    Raises :class:`StudyError` if no take is finished, or writing fails.
    """
    if not any(one.finished for one in results.settings):
        raise StudyError(f"The study in {results.folder} has no finished take yet; run it first.")
    results = shared(results)
    made = {
        "report.html": to_html(results, listened),
        "results.csv": to_csv(results),
        "takes.csv": _with_head(rows_of_takes(results)),
        "results.tex": to_latex(results),
    }
    if sheet := curves_sheet(results):
        made["curves.svg"] = sheet
    with Store(results.folder, read_only=True) as store:
        for _, more in hooks("files"):
            made |= more(store)
    require_no_links(results.folder, place)
    # Within a study nothing is written through links; other folders are the user's responsibility.
    write = files.write_atomically if results.folder in (place, *place.parents) else files.write_through
    for name, text in made.items():
        with files.explained(StudyError, f"{place / name} could not be written", place / name):
            write(place / name, text.encode())
    return tuple(place / name for name in made)


def require_no_links(study: Path, place: Path) -> None:
    """Raise :class:`StudyError` if a report at ``place`` would be written through a symbolic link inside ``study``."""
    for one in (place, *place.parents):
        if study in one.parents and one.is_symlink():
            raise StudyError(
                f"{one} is a symbolic link, and nothing is written through one within a study's folder; delete the "
                "link, or choose another folder for the report."
            )
