"""``paretone load``: what a speech server does under load, by its address."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from paretone import files
from paretone.bench.report import table
from paretone.commands import arguments, output
from paretone.commands.command import Result
from paretone.commands.judge import COLUMNS
from paretone.commands.terminal import Session, ending
from paretone.errors import Cancelled, PlainError, SettingError
from paretone.extras import require_serving
from paretone.measure.evaluation.judging import reply_figures
from paretone.measure.metrics import metric
from paretone.models import catalogue
from paretone.models.voices import own_voice
from paretone.observer import Passing
from paretone.paths import data_folder
from paretone.reading import shown
from paretone.serving import records
from paretone.serving.records import FORMS, Level, Order, Target
from paretone.wording import listed

NAME = "load"
SUMMARY = "Measure a speech server under load: first audio, gaps, throughput."
_TEXTS = "texts.txt"
_COLUMNS = {name: name for name in ("load", "requests", "failed")} | {
    "first_audio_p50": "first audio p50 (s)",
    "first_audio_p95": "p95",
    "latency_p50": "latency p50 (s)",
    "latency_p95": "p95 ",
    "real_time_factor_p50": "RTF (wall over audio)",
    "underrun_seconds_0_ms": "underruns (s)",
    "underrun_seconds_300_ms": "with 0.3 s of buffer",
    "requests_per_second": "requests/s",
    "audio_seconds_per_second": "audio s/s",
}


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("url", metavar="URL", help="address of the server, such as http://127.0.0.1:8880")
    group = parser.add_argument_group("requests")
    group.add_argument("--model", default="", help="model to ask for (default: none is named)")
    group.add_argument("--voice", default="", help="voice to ask for (default: none is named)")
    group.add_argument("--token", default="", help="token to send, as Authorization: Bearer TOKEN")
    group.add_argument("--format", choices=FORMS, help="format of the audio (default: the request's, else pcm)")
    further = "further field of each request, its value as JSON or text; repeat for more"
    group.add_argument("--field", action="append", default=[], metavar="NAME=VALUE", help=further)
    group.add_argument("--request", metavar="FILE", help="JSON file with fields of each request, such as an export's")
    cloned = "recording of the voice, sent as vLLM-Omni's ref_audio (not tested with a real one)"
    group.add_argument("--reference", metavar="RECORDING", help=cloned)
    group.add_argument("--transcript", default="", help="what is said in the recording, sent as ref_text")
    group.add_argument("--text-file", metavar="FILE", help="texts, one per line (default: 20 Harvard sentences)")
    seeds = "seeds, in turn; none: send no seed (default: 0 1 2)"
    group.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2], help=seeds)
    group = parser.add_argument_group("load")
    loop = "closed loop: clients that each ask again once answered (default: 1 2 4)"
    group.add_argument("--clients", type=arguments.at_least(1), nargs="+", default=[], metavar="N", help=loop)
    loop = "open loop: requests a second at random times (Poisson arrivals)"
    group.add_argument("--rate", type=arguments.above_zero, nargs="+", default=[], metavar="R", help=loop)
    count = "requests at each load (default: %(default)s)"
    group.add_argument("--requests", type=arguments.at_least(1), default=20, help=count)
    group.add_argument("--seconds", type=arguments.above_zero, help="seconds of requests at each load, instead")
    count = "uncounted requests before (default: %(default)s)"
    group.add_argument("--warm-up", type=arguments.at_least(0), default=2, help=count)
    group = parser.add_argument_group("what becomes of it")
    group.add_argument("--keep", metavar="FOLDER", help="folder for every reply as a WAV file, and figures as JSON")
    judged = "judge the replies of each load: words, naturalness, pitch range; with --reference, similarity to it"
    group.add_argument("--judge", action="store_true", help=judged)
    kept = f"keep the figures under this title, and up to {records.KEPT} replies to each load as takes"
    group.add_argument("--record", metavar="TITLE", help=kept)


def run(options: argparse.Namespace, session: Session) -> Result:
    require_serving()
    from paretone.serving.load import Measurement

    url, file, terminal = records.address(options.url), options.text_file, session.terminal
    texts = catalogue.harvard_sentences()[:20] if file is None else arguments.typed_lines(file)
    keep = None if options.keep is None else output.folder(options.keep)
    fields = _fields(options)
    form = options.format or str(fields.get("response_format", FORMS[0]))
    if form not in FORMS:
        raise SettingError(f"Answers can be measured as {listed(FORMS, 'or')}, not {shown(form)}; give --format.")
    like = None if options.reference is None else own_voice(options.reference)
    target = Target(url, options.model, options.voice, options.token, form, fields, like)
    levels = [Level(clients=one) for one in options.clients] + [Level(rate=one) for one in options.rate]
    loads = tuple(levels or [Level(clients=one) for one in (1, 2, 4)])
    order = Order(
        target,
        tuple(texts),
        title=options.record or url,
        loads=loads,
        seeds=tuple(options.seeds) or (None,),
        requests=options.requests,
        seconds=options.seconds or 0.0,
        warm_up=options.warm_up,
        judges=options.judge,
        kept=sys.maxsize if options.judge or keep is not None else 0 if options.record is None else records.KEPT,
    )
    measured, observer = Measurement(order, reply_figures), Passing(terminal, "status", "progress")
    judged: dict[str, dict[str, float]] = {}
    stopped: Cancelled | PlainError | None = None
    try:
        terminal.begin()
        for _, figures in measured.run(observer):
            judged |= figures
    except (Cancelled, PlainError) as error:
        if not measured.takes:
            raise
        stopped = error
    rows: list[dict[str, Any]] = [dict(one) for one in measured.record.loads]
    problem, code = ending(stopped, f"after {rows[-1]['load']}.", "measuring a server")
    if not problem and (silent := [one["load"] for one in rows if one["failed"] == one["requests"]]):
        problem, code = f"No request was answered at {listed(silent)}.", PlainError.exit_code
    for row in rows:
        row["takes"] = row["takes"][: records.KEPT] if options.record is not None else []
    data = {"url": target.endpoint, "texts": len(texts), "texts_sha256": records.hash_of(texts), "loads": rows}
    if keep is not None:
        written: dict[str, str] = {}
        for load, reply in ((row["load"], one) for row, some in zip(rows, measured.takes, strict=True) for one in some):
            # Numbered first: in the order of their texts in any shell, as judge takes them.
            name = f"{len(written) + 1:05} {load}.wav".replace("/", " a ").replace(" ", "-")
            files.write_wav(keep / name, reply.samples, reply.sample_rate)
            written[name] = reply.text
        files.write(keep / _TEXTS, "".join(f"{text}\n" for text in written.values()).encode())
        whole = json.dumps(data | {"replies": written}, ensure_ascii=False, indent=1)
        files.write(keep / "load.json", whole.encode())
    record = None
    if options.record is not None:
        from paretone.setting.library import Library

        with Library(data_folder() / "takes") as library:
            for one in (take for some in measured.takes for take in some[: records.KEPT]):
                library.add(replace(one, metrics=replace(one.metrics, **judged.get(one.id, {}))))
        record = records.write(replace(measured.record, loads=tuple(rows)))
    marks = records.marks(rows)
    for place, words in marks.items():
        rows[place]["marks"] = words
    figures = [{title: row[name] for name, title in _COLUMNS.items() if name in row} for row in rows]
    figure = lambda one: "{} {} ({} to {})".format(COLUMNS[one[0]], *map(metric(one[0]).spelt, one[1]))  # noqa: E731
    few = "means of one reply have no interval; ask for two or more"
    with_takes = ", with replies as takes" * any(row["takes"] for row in rows)
    worst = max(one["client_milliseconds"] for one in rows)
    said = [
        *table(figures),
        "",
        f"{len(texts)} texts, SHA-256 {str(data['texts_sha256'])[:12]}; this client took {worst:.2f} ms of "
        "processor time a request. Intervals and more percentiles: --json.",
        *filter(None, map(_failures, rows)),
        *(f"{words[:1].upper()}{words[1:]} at {rows[place]['load']}." for place, words in marks.items()),
        *filter(None, map(records.inverse, rows[:1])),
        *(f"{one['load']}: {'; '.join(map(figure, one['judged'].items())) or few}." for one in rows if "judged" in one),
        *([] if record is None else [f"Kept as {record}{with_takes}; the window shows it."]),
        *([] if keep is None else [f"The replies are in {keep}, and what they say in its {_TEXTS}."]),
    ]
    return Result(data, "\n".join(said), problem, code)


def _fields(options: argparse.Namespace) -> dict[str, object]:
    """Further fields of each request. Raises :class:`PlainError`."""
    from paretone.serving.load import recorded

    found: dict[str, object] = {}
    if options.request is not None:
        found |= records.request_fields(options.request)
    if options.reference is not None:
        found["ref_audio"] = recorded(options.reference)
    if options.transcript:
        found["ref_text"] = options.transcript
    for one in options.field:
        name, there, value = one.partition("=")
        if not there or not name:
            raise SettingError(f"--field takes NAME=VALUE, not {one!r}.")
        if name == "input" or (name == "seed" and options.seeds):
            given = "--text-file, one per line" if name == "input" else "--seeds, or an empty --seeds with this --field"
            raise SettingError(f"The field {name} differs from request to request; give it by {given}.")
        found[name] = records.field_value(value)
    return found


def _failures(row: Mapping[str, Any]) -> str:
    """A sentence on the failures of a load, with the first one's words, or ``""``."""
    kinds = ", ".join(f"{kind} ({number})" for kind, number in row["failures"].items())
    waited = row["retry_after_seconds"]
    said = f"For Retry-After, clients waited {waited:.1f} s in all." if waited else ""
    return f"Failed at {row['load']}: {kinds}. {row['first_failure']} {said}".rstrip() if kinds else ""
