"""``paretone compare``: speed and spectral difference of two settings, alternating on the same texts."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

from paretone.bench.report import table as table_lines
from paretone.checks.beforehand import cautions
from paretone.checks.faults import Checked, sentences, strict
from paretone.checks.faults import checked as checked_for_faults
from paretone.checks.speech import seams_of, speech_of
from paretone.commands import arguments
from paretone.commands.command import Result
from paretone.commands.output import folder
from paretone.commands.speak import figures, heard_line
from paretone.commands.technique_args import from_files, number, typed, typed_techniques, with_file, with_weights
from paretone.commands.terminal import Session, Terminal, ending
from paretone.errors import Cancelled, PlainError, SettingError, failure
from paretone.files import write_wav
from paretone.measure.estimates import tail_interval
from paretone.measure.evaluation.judges import JUDGES, Verdict, heard, judge_named
from paretone.measure.fidelity import with_difference
from paretone.measure.machine import describe
from paretone.measure.metrics import FAILED, METRICS, Metric, error_rate, metric
from paretone.measure.processor_time import busy_line
from paretone.measure.timing import Interval, PairedTimes, interval, paired_ratio
from paretone.models import catalogue
from paretone.models.base import SpeechModel, Synthesis
from paretone.observer import Passing
from paretone.setting.knobs import NO_VALUES, Values, checked
from paretone.setting.profile import Profile
from paretone.setting.setting import Artefact, Setting, checked_seed
from paretone.setting.take import Metrics
from paretone.speaking import synthesise
from paretone.studies.evaluation_sets import EvaluationSet, StudySentence, read_evaluation
from paretone.studies.paired import SIGN_NOTE, paired, worst
from paretone.techniques import compatibility_of, foreseen, resolve
from paretone.techniques.published import Comparison, comparisons, options_of
from paretone.wording import percent

NAME = "compare"
SUMMARY = "Compare two settings: print speed and fidelity, write the speech of both."
EPILOGUE = (
    "A side is a profile (FILE.json), 'baseline' (the other side without techniques), or options such as "
    "'steps=16,guidance=1.5', where technique=NAME:KNOB=VALUE;KNOB=VALUE uses a technique (repeatable) "
    "and table=FILE one that needs a strategy table; as=SETTING sets them as published. Figures are medians over the "
    "repeats of a text, then over the texts."
)
Item = TypeVar("Item")
SIDES = ("A", "B")
RELATIVE = tuple(one for one in METRICS if one.relative and one.of is not None)
"""Figures of B relative to A."""
Figures = dict[str, float | None]
"""By name; ``None``: not measured."""
Heard = dict[str, dict[str, Any]]
"""By metric: estimates of ``a``, ``b`` and ``reference`` or ``None``, the paired test, and the worst texts."""
SPREAD = ("real_time_factor", "backbone_time_factor", "cpu_time_factor", "first_audio_seconds", "seconds")
"""Figures of each side with an interval."""
COLUMNS = {
    "RTF (s/s)": "real_time_factor",
    "RTF in CPU time (s/s)": "cpu_time_factor",
    "backbone RTF (s/s)": "backbone_time_factor",
    "TTFA (s)": "first_audio_seconds",
    "TTFA P90 (s)": "first_audio_p90",
    "ops ratio (%)": "ops_ratio",
    "synthesis (s)": "seconds",
    "audio (s)": "audio_seconds",
}
RUNS_PER_REPEAT = 3
"""A, B, and A again: the difference of A from itself is what this machine reports for no difference."""


def declare(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOGUE
    parser.add_argument("a", metavar="A", help="the reference")
    parser.add_argument("b", metavar="B", help="the setting to compare with it")
    arguments.add_model(parser)
    arguments.add_published(parser)
    arguments.add_text(parser, sentences=True)
    group = parser.add_argument_group("evaluation set")
    group.add_argument(
        "--set",
        type=Path,
        metavar="FILE",
        help="texts, prompts and recordings of a list as published: LibriSpeech-PC, Seed-TTS, audio|text, or a CSV; "
        "instead of text and voice",
    )
    group.add_argument("--set-audio", type=Path, metavar="FOLDER", help="LibriSpeech's recordings, for its list")
    group.add_argument("--count", type=arguments.positive, metavar="N", help="the first N lines of the set")
    parser.add_argument("--out", metavar="FOLDER", help="folder for the speech: a.wav and b.wav, numbered by text")
    parser.add_argument(
        "--repeats",
        type=arguments.positive,
        default=3,
        help="measured runs of each side and text, in turn, after a warm-up (default: %(default)s)",
    )
    parser.add_argument(
        "--judge",
        action="append",
        default=[],
        choices=[one.name for one in JUDGES],
        help="judge both sides, and the reference speech if available; repeat for more judges",
    )
    arguments.add_strict(parser)


@dataclass(frozen=True)
class _Measured:
    """A text spoken by both sides."""

    spoken: StudySentence
    timing: PairedTimes
    runs: tuple[list[Figures], list[Figures]]
    """Of each repeat of A, and of B."""
    last: tuple[Synthesis, Synthesis]
    relative: Figures
    """Of B relative to A."""
    why_not: str
    """Why B could not be measured relative to A, or ``""``."""

    @cached_property
    def figures(self) -> tuple[Figures, Figures]:
        """Medians over the repeats, of A and of B."""
        first, second = map(_medians, self.runs)
        return first, second

    def to_json(self) -> dict[str, object]:
        return {
            "text": self.spoken.text,
            "a": self.figures[0],
            "b": self.figures[1],
            "speed_up": asdict(self.timing.speed_up["B"]),
            **self.relative,
        }


def run(options: argparse.Namespace, session: Session) -> Result:
    terminal = session.terminal
    place = None if options.out is None else folder(options.out)
    sides = sides_of(options)
    evaluation = _evaluation(options)
    texts = _spoken(options, sides) if evaluation is None else evaluation.rows[: options.count]
    loaded: dict[tuple[str, str], SpeechModel] = {}
    for side in sides:
        key = side.setting.model, side.variant
        if key not in loaded:
            loaded[key] = arguments.load(options, Session(terminal), *key)
        prepare(side, loaded[key])
        plan = resolve(loaded[key].info, side.setting, side.artefacts)
        for sentence in (each for one in texts for each in cautions(plan, loaded[key].info, one.voice)):
            terminal.caution(sentence)
    refuse_equal(sides)
    terminal.begin()
    terminal.status("Synthesising in turn")
    progress = _Runs(terminal, len(texts) * (len(SIDES) + options.repeats * RUNS_PER_REPEAT))
    measured, stopped = _until_ended(_measure(text, sides, options, progress) for text in texts)
    if stopped is not None and not measured:
        raise stopped
    heard: Heard = {}
    if stopped is None:
        judged, stopped = _until_ended(_heard(name, measured, options.device) for name in options.judge)
        heard = {name: sides for each in judged for name, sides in each.items()}
    faults: list[Checked] = []
    if stopped is None:
        takes = ((take, one.spoken) for one in measured for take in one.last)
        faults, stopped = _until_ended(_checked(take, spoken, terminal) for take, spoken in takes)
    unjudged = ("; not all judges were asked" if heard else "; nothing was judged") if options.judge else ""
    of = "it" if len(measured) == 1 else "these"
    done = f"after {len(measured)} of {len(texts)} texts: the figures are of {of}{unjudged}."
    problem, code = ending(stopped, done, "comparing")
    compared = _Compared(sides, measured, options.repeats, evaluation, heard, faults)
    if stopped is None:
        faulty = [f"{one.name} ({each.summary})" for one in compared.both for each in one.faults if each.findings]
        problem, code = strict(faulty, options.strict)
    written = [str(path) for path in _write(place, measured)] if place else []
    data = {**compared.to_json(), "files": written}
    if stopped is not None:
        data |= {**failure(problem, stopped), "exit_code": code}
    return Result(data, "\n".join([*compared.lines(), *(f"Wrote {path}" for path in written)]), problem, code)


@dataclass(frozen=True)
class _OfSide:
    """What was measured of a side, by text."""

    name: str
    side: Side
    runs: list[list[Figures]]
    by_text: list[Figures]
    """Medians over the repeats."""
    takes: list[Synthesis]
    faults: list[Checked]
    alone: bool
    """Whether there is a single text and repeat: no intervals then."""

    @cached_property
    def figures(self) -> Figures:
        """Medians over the texts."""
        waits = [run["first_audio_seconds"] or 0.0 for one in self.runs for run in one]
        tail = None if self.alone else tail_interval(waits)[0]
        return _medians(self.by_text) | {"first_audio_p90": tail}

    @cached_property
    def spreads(self) -> dict[str, Interval | None]:
        """Over the texts or, for a single text, over its repeats."""
        rows = self.by_text if len(self.runs) > 1 else self.runs[0]
        return {name: None if self.alone else one for name, one in _spreads(rows).items() if name in SPREAD}

    @cached_property
    def notes(self) -> list[str]:
        return list(dict.fromkeys(note for one in self.takes for note in one.notes))

    @cached_property
    def published(self) -> tuple[Comparison, ...]:
        return comparisons(self.side.setting)

    def to_json(self) -> dict[str, object]:
        about = {"published": [one.to_json() for one in self.published], "notes": self.notes}
        return {"side": self.name, **self.figures, "setting": self.side.setting.to_json(), **about}

    def cells(self, streamed: bool) -> dict[str, object]:
        """Row of the table; ``streamed``: with what streaming changes."""

        def cell(name: str) -> object:
            value, spread = self.figures[name], self.spreads.get(name)
            if name == "ops_ratio" and value is not None:
                return metric(name).spelt(value)
            bounds = "" if spread is None else f" ({spread.low:.3g}–{spread.high:.3g})"
            return f"{value:.4g}{bounds}" if bounds and value is not None else value

        whole = self.figures["streaming_difference"]
        changed = {"streamed to whole (dB)": "equal" if whole is None else f"{whole:.0f}"} if streamed else {}
        columns = {title: cell(name) for title, name in COLUMNS.items()}
        return {"side": self.name, "setting": self.side.title, **columns, **changed}

    @property
    def remarks(self) -> list[str]:
        parts = f"{parts_line(self.figures)} {heard_line(self.figures)}"
        return [parts, *self.notes, *(one.sentence for one in self.published)]


@dataclass(frozen=True)
class _Compared:
    sides: tuple[Side, Side]
    measured: list[_Measured]
    repeats: int
    evaluation: EvaluationSet | None
    heard: Heard
    faults: list[Checked]
    """Of A and B in turn, text after text."""

    @property
    def alone(self) -> bool:
        return len(self.measured) * self.repeats == 1

    @cached_property
    def both(self) -> list[_OfSide]:
        found = []
        for place, (name, side) in enumerate(zip(SIDES, self.sides, strict=True)):
            of_texts = [(one.runs[place], one.figures[place], one.last[place]) for one in self.measured]
            runs, by_text, takes = map(list, zip(*of_texts, strict=True))
            found.append(_OfSide(name, side, runs, by_text, takes, self.faults[place :: len(SIDES)], self.alone))
        return found

    @cached_property
    def speed_up(self) -> tuple[Interval, Interval]:
        """B's speed over A's, and A's over itself: over the repeats of a single text, otherwise over the texts. Repeats
        of one text are not independent, so with several texts each counts once."""
        timings = [one.timing for one in self.measured]
        if len(timings) == 1:
            return timings[0].speed_up["B"], timings[0].same
        return interval([one.speed_up["B"].median for one in timings]), interval([one.same.median for one in timings])

    @cached_property
    def relative(self) -> tuple[Figures, dict[str, Interval | None]]:
        """Medians and spreads over the texts."""
        rows = [one.relative for one in self.measured]
        return _medians(rows), _spreads(rows)

    def to_json(self) -> dict[str, Any]:
        evaluation, (speed_up, same), (relative, spreads) = self.evaluation, self.speed_up, self.relative
        by_side = {one.name.lower(): one for one in self.both}
        return {
            **{name: one.to_json() for name, one in by_side.items()},
            "intervals": {name: _json(one.spreads) for name, one in by_side.items()} | {"beside": _json(spreads)},
            "speed_up": asdict(speed_up),
            "same": asdict(same),
            "clock": self.measured[0].timing.clock,
            "repeats": self.repeats,
            **({} if evaluation is None else {"evaluation_set": evaluation.words, "sha256": evaluation.sha256}),
            **relative,
            "judged": self.heard,
            "faults": {
                name: [[each.to_json() for each in checks.findings] for checks in one.faults]
                for name, one in by_side.items()
            },
            "texts": [one.to_json() for one in self.measured],
            "differences": [asdict(one) for one in self.sides[0].setting.differences(self.sides[1].setting)],
            "machine": describe().line,
        }

    def lines(self) -> list[str]:
        streamed = any(one.figures["streaming_difference"] is not None for one in self.both)
        lines = [] if self.evaluation is None else [self.evaluation.words, ""]
        lines += [*_texts_table(self.measured), *table_lines([one.cells(streamed) for one in self.both]), ""]
        lines += [*self._speed_lines(), self._relative_line(), *self._busy_lines()]
        lines += [f"{one.name}: {said}" for one in self.both for said in one.remarks]
        lines += _heard_lines(self.heard)
        for one in self.both:
            for place, checks in enumerate(one.faults, start=1):
                of = f", text {place}" if len(one.faults) > 1 else ""
                lines += [f"{one.name}{of}: {line}" for line in sentences(checks)]
        return [*lines, *_differing(self.sides)]

    def _speed_lines(self) -> list[str]:
        speed_up, same = self.speed_up
        clock, texts = self.measured[0].timing.clock, len(self.measured)
        if self.alone:
            return [
                f"B is {speed_up.median:.2f} times as fast as A, A against itself {same.median:.2f} ({clock}), in a "
                "single run: without an interval, no difference in speed can be claimed; measure more repeats."
            ]
        over = f"{self.repeats} repeat{'' if self.repeats == 1 else 's'}" + (f" of {texts} texts" if texts > 1 else "")
        line = (
            f"B is {speed_up.median:.2f} times as fast as A (95 % interval {speed_up.low:.2f} to {speed_up.high:.2f}; "
            f"A against itself {same.low:.2f} to {same.high:.2f}; {clock}, {over})."
        )
        doubt = "The interval includes 1: no difference in speed can be claimed."
        return [line] if speed_up.excludes_one else [line, doubt]

    def _relative_line(self) -> str:
        """Sentence on the differences between the two sides' takes, or why there is none."""
        medians, spreads = self.relative
        said = []
        for one in RELATIVE:
            if (value := medians[one.name]) is not None:
                spread = spreads[one.name]
                bounds = "" if spread is None else _bounds(one, spread.low, spread.high)
                said.append(f"{one.title} {one.said(value)}{bounds}")
        return f"B against A: {', '.join(said)}." if said else self.measured[0].why_not

    def _busy_lines(self) -> list[str]:
        """Sentence on the load of other processes, if times are doubtful."""
        busy = [bool(run["busy"]) for one in self.both for runs in one.runs for run in runs]
        if not any(busy):
            return []
        first, second = (percent(one.figures["other_share"] or 0.0) for one in self.both)
        took = f"{first} of the cores during A and {second} during B (medians)"
        during = f"{sum(busy)} of {len(busy)} runs"
        return [f"{busy_line(took, during=during)} The ratio is in {self.measured[0].timing.clock}."]


def _checked(take: Synthesis, spoken: StudySentence, terminal: Terminal) -> Checked:
    terminal.wait("Checking for faults")
    return checked_for_faults(speech_of(take, spoken.text, spoken.voice))


# --- Measuring --------------------------------------------------------------------------------------------------------
class _Runs(Passing):
    def __init__(self, terminal: Terminal, total: int) -> None:
        super().__init__(terminal, "caution")
        self._terminal, self._total, self._done = terminal, total, 0

    def next(self) -> None:
        self._done += 1
        self._terminal.progress(self._done, self._total)


def _evaluation(options: argparse.Namespace) -> EvaluationSet | None:
    if options.set is None:
        if options.set_audio or options.count:
            raise SettingError("--set-audio and --count belong to an evaluation set; give it with --set.")
        return None
    if options.text or options.text_file or options.voice:
        raise SettingError("--set has its own texts and voices; leave out --text, --text-file and --voice.")
    return read_evaluation(options.set, options.set_audio)


def _spoken(options: argparse.Namespace, sides: tuple[Side, Side]) -> tuple[StudySentence, ...]:
    profile = next((side.profile for side in sides if side.profile), None)
    voice = arguments.voice(options, (profile or sides[0]).setting.model, profile)
    return tuple(StudySentence(text, voice) for text in arguments.texts(options))


def _until_ended(work: Iterable[Item]) -> tuple[list[Item], Exception | None]:
    """The results of ``work``, up to the error that ended it, if any: finished parts are kept. An interruption, which
    arises if no check comes in time, counts as cancellation."""
    found: list[Item] = []
    try:
        for one in work:
            found.append(one)
    except KeyboardInterrupt as interruption:
        cancelled = Cancelled()
        cancelled.__cause__ = interruption
        return found, cancelled
    except Exception as error:
        return found, error
    return found, None


def _measure(
    spoken: StudySentence, sides: tuple[Side, Side], options: argparse.Namespace, progress: _Runs
) -> _Measured:
    from paretone.device import choose

    runs: dict[str, list[Synthesis]] = {name: [] for name in SIDES}

    def run(name: str, side: Side) -> Callable[[], None]:
        model = side.model
        if model is None:
            raise ValueError("The side was not prepared.")

        def once() -> None:
            setting = spoken.instructed(side.setting)
            runs[name].append(synthesise(model, spoken.text, spoken.voice, setting, side.artefacts, progress))
            progress.next()

        return once

    variants = {name: run(name, side) for name, side in zip(SIDES, sides, strict=True)}
    timing = paired_ratio(variants, options.repeats, warm_up=1, device=choose(options.device).type)
    first, second = ([figures(one) for one in runs[name][1:]] for name in SIDES)  # The first is the warm-up.
    last, why_not = (runs["A"][-1], runs["B"][-1]), ""
    try:
        distance, metrics = with_difference(
            Metrics(), *((one.trace.mel, (one.samples, one.sample_rate)) for one in last)
        )
    except SettingError as error:
        distance, metrics, why_not = None, Metrics(), str(error)
    relative = {one.name: one.of(last[1].measurements, metrics, distance) for one in RELATIVE if one.of is not None}
    return _Measured(spoken, timing, (first, second), last, relative, why_not)


def _json(spreads: Mapping[str, Interval | None]) -> dict[str, dict[str, float] | None]:
    return {name: None if one is None else {"low": one.low, "high": one.high} for name, one in spreads.items()}


def _known(rows: list[Figures]) -> dict[str, list[float]]:
    return {name: [value for row in rows if (value := row[name]) is not None] for name in rows[0]}


def _medians(rows: list[Figures]) -> Figures:
    """Median of each figure over the ``rows`` that have it; whether the machine was busy in any of them."""
    found = {name: median(values) if values else None for name, values in _known(rows).items()}
    return found | ({"busy": any(row["busy"] for row in rows)} if "busy" in found else {})


def _spreads(rows: list[Figures]) -> dict[str, Interval | None]:
    """Spread of the median of each figure over the ``rows`` that have it; ``None`` if fewer than two have."""
    return {name: interval(values) if len(values) > 1 else None for name, values in _known(rows).items()}


# --- Judging ----------------------------------------------------------------------------------------------------------
def _heard(name: str, measured: list[_Measured], device: str) -> Heard:
    """Metrics of the judge ``name`` with intervals: by metric, then ``a``, ``b`` and ``reference`` speech."""
    # Imported on use: few comparisons are judged.
    from paretone.device import choose
    from paretone.measure.evaluation.judging import reference_speech
    from paretone.measure.metrics import JUDGED, estimate

    found: Heard = {}
    texts = [one.spoken for one in measured]
    judge = judge_named(name).ready([one.text for one in texts], str(choose(device)))
    sounds = {
        side: [(one.samples, one.sample_rate, seams_of(one)) for one in takes]
        for side, takes in zip("ab", zip(*(one.last for one in measured), strict=True), strict=True)
    }
    with contextlib.suppress(PlainError):
        sounds["reference"] = [(*reference_speech(one.text, one.voice, one.reference), ()) for one in texts]
    said = {
        side: [heard(judge, one.text, one.voice, *sound) for one, sound in zip(texts, recordings, strict=True)]
        for side, recordings in sounds.items()
    }
    for one in JUDGED:
        if one.judge != name or one.verdict is None:
            continue
        values: dict[str, dict[str, complex]] = {"a": {}, "b": {}, "reference": {}}
        for side, every in said.items():
            judged = {str(number): one.verdict(each.figures) for number, each in enumerate(every, start=1)}
            values[side] = {number: value for number, value in judged.items() if value is not None}
        found[one.name] = {
            side: asdict(estimate(one.name, [*each.values()])) if each else None for side, each in values.items()
        }
        test = paired(one.name, values["b"], values["a"])
        if test is not None:
            found[one.name]["paired"] = {**asdict(test), "words": test.words}
        if one.name.endswith(FAILED):
            found[one.name]["worst"] = {side: _worst(said[side]) for side in ("a", "b")}
    return found


def _worst(said: Sequence[Verdict]) -> list[dict[str, Any]]:
    """Texts with the most errors, by number, the worst first."""
    texts: list[dict[str, Any]] = [
        {"text": number, "error_rate": error_rate(each.figures), "heard": each.heard}
        for number, each in enumerate(said, start=1)
    ]
    return worst((one, one["error_rate"]) for one in texts)


def _heard_lines(heard: Heard) -> list[str]:
    lines = []
    for name, sides in heard.items():
        said = [
            f"{title} {metric(name).said(one['value'])}{_bounds(metric(name), one['low'], one['high'])}"
            for title, one in (("A", sides["a"]), ("B", sides["b"]), ("reference speech", sides["reference"]))
            if one is not None
        ]
        missing = "" if sides["reference"] else "; no reference speech to show the judge's floor"
        count = "" if sides["a"] is None else f"; n = {sides['a']['n']}"
        lines.append(f"{metric(name).title}: {', '.join(said)}{count}{missing}.")
        if sides.get("paired", {}).get("sentences", 0) > 1:
            lines.append(f"B against A on the same texts: {sides['paired']['words']}.")
        for side, wrong in sides.get("worst", {}).items():
            errors = (f"text {one['text']} {percent(one['error_rate'])}, heard as “{one['heard']}”" for one in wrong)
            lines += [f"Most errors of {side.upper()}: {'; '.join(errors)}."] if wrong else []
    return [*lines, f"{SIGN_NOTE}."] if any("on the same texts" in one for one in lines) else lines


def _bounds(one: Metric, *ends: float) -> str:
    low, high = map(one.spelt, ends)
    return "" if low == high else f" (95 % interval {low} to {high})"


# --- Showing ----------------------------------------------------------------------------------------------------------
def _texts_table(measured: list[_Measured]) -> list[str]:
    if len(measured) == 1:
        return []
    rows = [
        {
            "text": number,
            "RTF A (s/s)": one.figures[0]["real_time_factor"],
            "RTF B (s/s)": one.figures[1]["real_time_factor"],
            "B faster (times)": one.timing.speed_up["B"].median,
            "log-mel distance (nat. log)": one.relative["log_mel_distance"],
            "audio of A (s)": one.figures[0]["audio_seconds"],
        }
        for number, one in enumerate(measured, start=1)
    ]
    return [*table_lines(rows), "", "Medians over the texts:"]


def _write(place: Path, measured: list[_Measured]) -> list[Path]:
    written = []
    for place_in_list, one in enumerate(measured, start=1):
        for name, synthesis in zip(SIDES, one.last, strict=True):
            suffix = f"-{place_in_list:03d}" if len(measured) > 1 else ""
            written.append(place / f"{name.lower()}{suffix}.wav")
            write_wav(written[-1], synthesis.samples, synthesis.sample_rate)
    return written


def parts_line(row: Mapping[str, float | None]) -> str:
    flow, vocoder = row["flow_seconds"], row["vocoder_seconds"]
    split = "" if flow is None or vocoder is None else f" (flow {flow:.3f} s, vocoder {vocoder:.3f} s)"
    return (
        f"Front end {row['text_seconds']:.3f} s, backbone {row['backbone_seconds']:.3f} s, decoder "
        f"{row['decoder_seconds']:.3f} s{split}."
    )


# --- The two sides ----------------------------------------------------------------------------------------------------
@dataclass
class Side:
    title: str
    setting: Setting
    variant: str = ""
    files: tuple[tuple[str, str], ...] = ()
    knobs: Mapping[str, Values] = field(default_factory=dict)
    """Published knobs by technique, for artefacts from files."""
    named: str = ""
    """The setting of a paper that these are of."""
    profile: Profile | None = None
    model: SpeechModel | None = None
    artefacts: tuple[Artefact, ...] = ()


def sides_of(options: argparse.Namespace) -> tuple[Side, Side]:
    """The two sides of ``options``. Raises :class:`PlainError`."""
    given = [None if text == "baseline" else _side(text, options) for text in (options.a, options.b)]
    other = given[0] or given[1]
    if other is None:
        raise SettingError("Both sides are 'baseline'; give a profile or options for one of them.")
    baseline = replace(other, title="baseline", setting=other.setting.baseline, profile=None, files=())
    first, second = (one or baseline for one in given)
    if first.files == second.files:
        refuse_equal((first, second))
    return first, second


def refuse_equal(sides: tuple[Side, Side]) -> None:
    """Raise :class:`SettingError` if both sides have the same setting, weights and seed."""
    one, two = sides
    if (one.setting, one.variant) != (two.setting, two.variant):
        return
    if "baseline" not in (one.title, two.title):
        raise SettingError(f"{one.title!r} and {two.title!r} are the same setting with the same seed; change one.")
    given = two if one.title == "baseline" else one
    usual = catalogue.entry(given.setting.model).options_with()
    changed = [f"{name}={value}" for name, value in usual.items() if given.setting.options[name] != value]
    instead = f"write the other side out, such as {','.join(changed)!r}" if changed else "name a technique"
    raise SettingError(
        f"Both sides are the same setting: 'baseline' is the other side without techniques, and {given.title!r} names "
        f"none; {instead}."
    )


def _differing(sides: tuple[Side, Side]) -> list[str]:
    """Sentence on differences between the sides other than in techniques, if any."""
    one, two = sides
    if one.variant == two.variant and replace(one.setting, seed=two.setting.seed) == two.setting:
        return [
            f"Both sides are the same setting with different seeds ({one.setting.seed} and {two.setting.seed}): only "
            "their noise differs."
        ]
    differences = one.setting.differences(two.setting)
    others = ", ".join(f"{one.what} ({one.left} and {one.right})" for one in differences if not one.technique)
    if not others:
        return []
    if any(one.technique for one in differences):
        return [f"A and B differ in more than the technique: {others}."]
    return [f"A and B differ in {others}, and not in a technique."]


def _side(text: str, options: argparse.Namespace) -> Side:
    if not text.strip(" ,"):
        raise SettingError(
            "A side of the comparison is empty; give a profile (FILE.json), 'baseline', or options such as steps=16."
        )
    if Path(text).is_file() or (text.endswith(".json") and "=" not in text):
        profile = Profile.load(text)
        return Side(Path(text).name, profile.setting, options.variant or profile.named_variant, profile=profile)
    return typed_side(text, arguments.model(options), options.variant, options.as_published)


def typed_side(text: str, model: str, variant: str = "", as_published: str = "") -> Side:
    """Side from options such as ``steps=16,guidance=1.5,technique=NAME``, of ``model`` unless they name another, with
    its techniques ``as_published`` unless it names another setting. Raises :class:`PlainError`."""
    given: dict[str, str] = {}
    techniques: list[str] = []
    for part in filter(None, text.split(",")):
        name, found, value = part.partition("=")
        if not found:
            raise SettingError(
                f"{part!r} is not a side of a comparison; give a profile (FILE.json), 'baseline', or options such as "
                "steps=16."
            )
        name = name.strip()
        if name == "technique":
            techniques.append(value)
        elif name in given:
            raise SettingError(f"{name!r} is given twice; give each option of a side once.")
        else:
            given[name] = value.strip()
    model = given.pop("model", model)
    seed = checked_seed(number(given.pop("seed", "0"), "seed"))
    files = tuple((one.option, given.pop(one.option)) for _, one in from_files() if one.option in given)
    for option, path in files:
        if not path:
            raise SettingError(f"{option}= names no file; write its path, or leave {option} out.")
    filed = [one.name for one, file in from_files() if file.option in dict(files)]
    named = given.pop("as", as_published if techniques or files else "")
    published = arguments.published_settings(named, model, techniques, *filed)
    entry = catalogue.entry(model)
    known = {knob.name: knob for knob in entry.options}
    values = {name: typed(known[name], value) if name in known else value for name, value in given.items()}
    values = entry.options_with(**{**options_of(published), **values})
    setting = Setting(model, checked(entry.options, values, entry.title), seed=seed)
    for one in typed_techniques(techniques or [name for name in published if name not in filed], published):
        setting = setting.with_technique(one)
    foreseen(setting)
    return Side(text, setting, variant, files, {name: one.knobs for name, one in published.items()}, named)


def prepare(side: Side, model: SpeechModel) -> None:
    """Load a side's tables and weights for ``model``, checked against each other."""
    side.model = model
    if side.profile is not None:
        fixed = compatibility_of(model.info, side.setting) if side.profile.artefacts else None
        side.profile.check(model.info, fixed)
        side.artefacts = side.profile.artefacts
        return
    side.setting = with_weights(side.setting, model.info)
    for technique, file in from_files():
        if side.setting.technique(technique.name) is not None and file.option not in dict(side.files):
            named = side.named if technique.name in side.knobs else ""
            raise arguments.without_file(technique, file, model, f"{file.option}=FILE", named)
    for option, path in side.files:
        (name,) = (one.name for one, file in from_files() if file.option == option)
        side.setting, found = with_file(side.setting, model, option, path, side.knobs.get(name, NO_VALUES))
        side.artefacts = (*side.artefacts, *found)
