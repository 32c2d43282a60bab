"""Titles of a study's settings, and sentences on its search. Torch-free."""

from __future__ import annotations

from functools import partial

from paretone.measure.estimates import Estimate
from paretone.measure.metrics import JUDGED, Metric, metric
from paretone.measure.processor_time import busy_line
from paretone.models import catalogue
from paretone.models.voices import shown_name
from paretone.serving.records import MARKS
from paretone.setting.knobs import Choice, Knob, Number
from paretone.setting.setting import Setting, UsedTechnique
from paretone.studies.gains import published_rows
from paretone.studies.paired import SIGN_NOTE, caution
from paretone.studies.results import PlayableTake, Results, SettingResult
from paretone.studies.search import answer
from paretone.studies.space import Search, search_of
from paretone.studies.store import StoredTrial
from paretone.studies.study import BASELINE, duration
from paretone.techniques import changed_options, find
from paretone.wording import counted, grouped, percent, plain

_SHOWN = (
    *("real_time_factor", "backbone_time_factor", "first_audio_p90", "speed_up", "ops_ratio"),
    *("log_mel_distance", "mel_cepstral_distortion", "pitch_error"),
)
"""Metrics in short tables, in addition to the judges'."""
_FAULTY = "faulty_takes"
REFERENCE = "Reference speech"
"""Title of the row with the judges' scores of the reference speech."""


def shown(results: Results) -> tuple[Metric, ...]:
    """Measured metrics of short tables: speed, fidelity and judges' scores."""
    wanted = (*map(metric, _SHOWN), *JUDGED)
    return tuple(one for one in wanted if any(one.name in found.figures for found in results.settings))


def figure_text(one: Metric, figure: Estimate | None) -> str:
    """A figure of ``one`` without unit, with its interval, if any, in brackets; a rate without one: with its words."""
    if figure is None:
        return "–"
    value, low, high = map(one.spelt, figure.ends)
    if not figure.spreads:
        return f"{value} ({figure.over})" if figure.over else value
    return f"{value} ({low}–{high})"


def search_in(results: Results) -> Search | None:
    """Search of a study, read from its definition; ``None`` without one."""
    if "search" not in results.definition:
        return None
    return search_of(results.definition["search"], catalogue.entry(results.model))


def answer_lines(search: Search, results: Results) -> list[str]:
    """Goal, trials, answer and time of a search, in sentences."""
    found = answer(search, results.trials)
    lines = [search.words, found.words]
    lines += [f"Trial {one.number}: {answer_words(one, search, results)}." for one in found.trials]
    if not found.trials and found.complete:
        lines.append("No trial meets the constraints: widen the space, loosen a bound, or allow more trials.")
    return [*lines, f"It took {duration(results.busy_seconds)} of computing."]


def lost_lines(results: Results) -> list[str]:
    count = len(results.lost)
    if not count:
        return []
    takes, their, them = ("1 take", "its", "it") if count == 1 else (f"{grouped(count)} takes", "their", "them")
    return [f"The audio of {takes} is lost or damaged; {their} figures are kept. Run the study to make {them} again."]


def faulty_takes(results: Results) -> tuple[int, int]:
    """Takes in which a check found a fault, and checked ones."""
    figures = [one.figures[_FAULTY] for one in results.settings if _FAULTY in one.figures]
    return sum(round(one.value * one.n) for one in figures), sum(one.n for one in figures)


def fault_lines(results: Results) -> list[str]:
    """Sentence on faulty takes, with the setting that has most; none for studies that were not checked."""
    faulty, takes = faulty_takes(results)
    if not takes:
        return []
    if not faulty:
        return [f"No faults were found in {counted(takes, 'checked take', 'checked takes')}."]
    most = max((one for one in results.settings if _FAULTY in one.figures), key=lambda one: one.figures[_FAULTY].value)
    share, of = percent(most.figures[_FAULTY].value), f"{grouped(faulty)} of {grouped(takes)} takes"
    return [f"Faults were found in {of}; most in {setting_title(most)}: {share}."]


def doubt_lines(results: Results) -> list[str]:
    """All reasons to doubt a study's takes: lost audio, faults, a busy machine, techniques that skipped nothing."""
    lines = [*lost_lines(results), *fault_lines(results)]
    busy, takes = (sum(getattr(one, name) for one in results.settings) for name in ("busy", "finished"))
    lines += [busy_line(during=f"{grouped(busy)} of {grouped(takes)} takes")] if busy else []
    return [*lines, *(f"{setting_title(one)}: {note}" for one in results.settings for note in one.idle)]


MOST_TESTED = 12
"""Settings whose paired tests are written out; all are in the report and in JSON."""


def paired_lines(results: Results, most: int = MOST_TESTED) -> list[str]:
    """Sentences on the judged figures of each setting against its baseline on the same sentences."""
    tested = [(one, tests) for one in results.settings if (tests := results.paired(one.key))]
    lines = [
        f"{setting_title(one)} against its baseline: {'; '.join(test.words for test in tests)}."
        for one, tests in tested[:most]
    ]
    left = len(tested) - most
    lines += [f"{grouped(left)} more settings are tested in the report and with --json."] if left > 0 else []
    every = [test for _, tests in tested for test in tests]
    return [*lines, f"{SIGN_NOTE}. {caution(every)}".strip()] if every else []


def worst_lines(results: Results) -> list[str]:
    """Sentences on the utterances of each setting with the most errors, with their audio."""
    return [
        f"Most errors of {setting_title(one)}: {'; '.join(map(worst_words, found))}."
        for one in results.settings[:MOST_TESTED]
        if (found := results.worst(one.key))
    ]


def worst_words(take: PlayableTake) -> str:
    said = f"“{take.text}” ({shown_name(take.voice)}, seed {take.seed})"
    return f"{percent(take.error_rate or 0.0)}: {said} heard as “{take.understood}”, audio/{take.path.name}"


def takes_text(one: SettingResult) -> str:
    """Number of takes of a setting, and of those with doubtful times."""
    return f"{grouped(one.finished)} ({grouped(one.busy)} busy)" if one.busy else grouped(one.finished)


def reference_lines(results: Results) -> list[str]:
    """Sentences on the judges' scores of the reference speech, or on why it is missing."""
    lines = [
        f"{metric(name).title} of the same judge on the reference speech: {_rate(figure, name)}; beyond that, "
        "settings cannot be told apart."
        for name, figure in results.references.items()
    ]
    if results.no_reference:
        lines.append(f"No reference speech for the judges' own errors: {results.no_reference}")
    return lines


def published_lines(results: Results) -> list[str]:
    """Rows of the paper's table that the study repeats, each with what was measured here."""
    series = results.definition.get("published")
    rows = published_rows(series) if isinstance(series, str) and series else ()
    lines = []
    for row in rows:
        one = next((one for one in results.settings if one.name == row.label), None)
        figures = [] if one is None else [(metric(name), one.figures.get(name)) for name in row.figures]
        measured = [f"{each.label} {figure_text(each, figure)}" for each, figure in figures if figure is not None]
        lines.append(f"{row.label}: published {row.as_published}; here {', '.join(measured) or 'not measured'}.")
    if rows:
        lines.insert(0, f"{rows[0].source}: {rows[0].model} on {rows[0].hardware}; {rows[0].data}.")
    return lines


def note_lines(results: Results) -> list[str]:
    """Sentences on the reference speech, published figures, marks of servers' loads, and reasons to doubt."""
    marked = [f"{MARKS}."] if any(one.mark for one in results.settings) else []
    return [*reference_lines(results), *published_lines(results), *marked, *doubt_lines(results)]


def _rate(figure: Estimate, name: str) -> str:
    shown = metric(name).said
    interval = f"{shown(figure.low)}–{shown(figure.high)}, " if figure.spreads else ""
    over = f", {figure.over}" if figure.over else ""
    return f"{shown(figure.value)} ({interval}{figure.n} recording{'' if figure.n == 1 else 's'}{over})"


def answer_words(trial: StoredTrial, search: Search, results: Results) -> str:
    """A trial's setting with its values of the objectives."""
    figures = ", ".join(
        f"{metric(name).title} {metric(name).said(value)}"
        for name, value in zip(search.objectives, trial.outcome["values"], strict=True)
    )
    one = results.setting(trial.setting)
    return f"{trial.setting if one is None else setting_title(one)}: {figures}"


def setting_title(one: SettingResult) -> str:
    """Name in the study, with the mark of a server's load; without: techniques and differences from the defaults."""
    name = one.name if one.name not in ("", BASELINE) else described(one.setting)
    return f"{name} ({one.mark})" if one.mark else name


def described(setting: Setting) -> str:
    """Description such as ``Step pruning 7, guidance 1``; all options by name if the model is no longer there."""
    entry, changed = catalogue.find(setting.model), changed_options(setting)
    names = [knob.name for knob in entry.options] if entry else setting.options
    options = [option_words(setting, one) for one in names if one in changed]
    return ", ".join([*([_technique(one) for one in setting.techniques] or ["baseline"]), *options])


def option_words(setting: Setting, name: str, owner: str = "") -> str:
    """Value of an option, or of a knob of the technique ``owner``, such as ``guidance 1``."""
    used = setting.technique(owner) if owner else None
    values = setting.options if used is None else used.knobs
    model, declared = catalogue.find(setting.model), find(owner)
    knobs = (model.options if model else ()) if used is None else declared.knobs if declared else ()
    title = next((knob.title.lower() for knob in knobs if knob.name == name), name)
    return f"{title} {_plain(values[name])}"


def short_title(name: str) -> str:
    """Title of the technique ``name`` without its bracketed part; its name if it is no longer there."""
    declared = find(name)
    return declared.title.partition(" (")[0] if declared else name


def _technique(one: UsedTechnique) -> str:
    """A technique with its first knob, and all others that differ from their defaults; all if it is no longer there."""
    declared = find(one.technique)
    parts = [
        _knob(knob, one.knobs[knob.name], first=index == 0)
        for index, knob in enumerate(declared.knobs if declared else ())
        if knob.name in one.knobs and (index == 0 or one.knobs[knob.name] != knob.default)
    ] or [f"{name} {_plain(value)}" for name, value in one.knobs.items() if declared is None]
    return " ".join([short_title(one.technique), *parts])


def _knob(knob: Knob, value: object, first: bool) -> str:
    if first and isinstance(knob, Number) and (words := knob.in_words(value)):
        return words
    if knob.symbol:
        return f"{knob.symbol} = {_plain(value)}"
    return _plain(value) if first or isinstance(knob, Choice) else f"{knob.title.lower()} {_plain(value)}"


_plain = partial(plain, digits=4)
