"""``paretone search-grid``: search times for a few evaluations, on one or several sentences."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from paretone.bench.report import table as table_lines
from paretone.commands import arguments
from paretone.commands.command import Result
from paretone.commands.output import apart, writable, write_json
from paretone.commands.technique_args import with_weights
from paretone.commands.terminal import JOB, Session, Terminal
from paretone.errors import ProfileError, SettingError
from paretone.models.base import SpeechModel, Utterance, flow_model
from paretone.sampling.grid_search import Trial
from paretone.session.commands import Prepare
from paretone.session.events import Event, PreparationReport
from paretone.setting.knobs import Values, checked
from paretone.setting.profile import Profile, artefact_in
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques import searched_grid
from paretone.techniques.searched_grid import DISTANCE, TECHNIQUE, PlacedGrid, Searched, SearchRequest, figure_of


def with_grid(
    setting: Setting, model: SpeechModel, path: str, knobs: Mapping[str, object]
) -> tuple[Setting, tuple[PlacedGrid, ...]]:
    """``setting`` with the grid in ``path``, and that grid. Its compatibility is checked with the whole setting.
    ``knobs`` are those given by the user. Raises :class:`ProfileError` for a file that is no placed grid, or has
    another number of evaluations."""
    grid: PlacedGrid = artefact_in(path, TECHNIQUE)
    said = knobs.get("evaluations", grid.steps)
    if said != grid.steps:
        raise ProfileError(f"{path} has {grid.steps} evaluations, not {said}; omit that number.")
    values = checked(TECHNIQUE.knobs, {**knobs, "evaluations": grid.steps}, TECHNIQUE.title)
    return setting.with_technique(UsedTechnique(TECHNIQUE.name, values, grid.fingerprint)), (grid,)


NAME = "search-grid"
NAME_OF = TECHNIQUE.name
SUMMARY = "Search the times of a few evaluations for a flow model and write them."
SENTENCES = 2


def declare(parser: argparse.ArgumentParser) -> None:
    arguments.add_model(parser)
    arguments.add_sampler(parser)
    arguments.add_techniques(parser.add_argument_group(f"techniques besides {TECHNIQUE.title}"))
    group = parser.add_argument_group("search")
    group.add_argument(
        "--evaluations",
        type=int,
        nargs="+",
        default=[int(TECHNIQUE.knobs[0].default)],
        metavar="N",
        help="numbers of evaluations, 2 to 12; of several, each file has its number in its name: grid-4.json "
        "(default: %(default)s)",
    )
    arguments.add_knobs(group, TECHNIQUE.knobs[1:])
    group.add_argument("--restart", action="store_true", help="do not go on with an interrupted search of the same")
    arguments.add_utterances(parser, f"{SENTENCES} sample sentences", "the model's first")
    parser.epilog = "Several sentences and voices take turns: the first sentence in the first voice, and so on."
    written = parser.add_argument_group("output, at least one")
    written.add_argument("--grid", metavar="FILE", help="placed grid, for --grid of other commands")
    written.add_argument("--profile", metavar="FILE", help="profile: setting and grid")


_Search = tuple[Values, dict[str, Path]]


def run(options: argparse.Namespace, session: Session) -> Result:
    searches = _planned(options)
    model_id = arguments.model(options)
    utterances = arguments.several_utterances(options, model_id, SENTENCES)
    plain = arguments.setting(options, model_id)
    model = flow_model(arguments.load(options, session, model_id, options.variant), "Searching a grid")
    plain = with_weights(plain, model.info)
    found = []
    for knobs, places in searches:
        session.terminal.status(f"Searching times for {knobs['evaluations']} evaluations")
        setting = plain.with_technique(UsedTechnique(NAME_OF, knobs))
        request = SearchRequest(tuple(utterances), setting, not options.restart)
        heard = _Trials(session.terminal, str(knobs["objective"]))
        searched: Searched = session.carry_out(Prepare(JOB, NAME_OF, request), heard).result
        setting = setting.with_technique(UsedTechnique(NAME_OF, knobs, searched.grid.fingerprint))
        if "grid" in places:
            write_json(places["grid"], searched.grid.to_json())
        if "profile" in places:
            Profile.of(setting, model.info, (searched.grid,)).save(places["profile"])
        found.append(_figures(knobs, places, searched, setting, utterances))
    return Result({"searches": found, "machine": session.machine}, _shown(searches, found))


def _planned(options: argparse.Namespace) -> list[_Search]:
    names = {kind: getattr(options, kind) for kind in ("grid", "profile") if getattr(options, kind) is not None}
    if not names:
        raise SettingError("No output: give --grid or --profile.")
    arguments.refuse_from_files(options, NAME_OF)
    apart({f"--{kind}": name for kind, name in names.items()}, {"--text-file": options.text_file})
    counts: Sequence[int] = options.evaluations
    if len(set(counts)) < len(counts):
        raise SettingError("--evaluations has a number twice; give each of them once.")
    paths = {kind: Path(name) for kind, name in names.items()}
    given = arguments.given(argparse.Namespace(**{**vars(options), "evaluations": counts[0]}), TECHNIQUE.knobs)
    return [
        (
            checked(TECHNIQUE.knobs, {**given, "evaluations": count}, TECHNIQUE.title),
            {
                kind: writable(path.with_name(f"{path.stem}-{count}{path.suffix}") if len(counts) > 1 else path)
                for kind, path in paths.items()
            },
        )
        for count in counts
    ]


class _Trials:
    def __init__(self, terminal: Terminal, objective: str) -> None:
        self._terminal, self._objective = terminal, objective

    def __call__(self, event: Event) -> None:
        if not isinstance(event, PreparationReport):
            self._terminal.hear(event)
        elif isinstance(event.report, Trial) and event.report.best:
            best = searched_grid.figure_text(figure_of(event.report.value, self._objective), self._objective)
            self._terminal.remark = f"best so far {best}"


def _figures(
    knobs: Values, places: Mapping[str, Path], searched: Searched, setting: Setting, utterances: Sequence[Utterance]
) -> dict[str, Any]:
    objective = str(knobs["objective"])
    return {
        **{kind: str(path) for kind, path in places.items()},
        "evaluations": knobs["evaluations"],
        "search": knobs["search"],
        "objective": objective,
        "unit": searched.unit,
        "times": list(searched.grid.times),
        "fingerprint": searched.grid.fingerprint,
        "value": _known(figure_of(searched.best.value, objective)),
        "starts": [
            {
                "title": start.title,
                "times": list(start.trial.times),
                "value": _known(figure_of(start.trial.value, objective)),
            }
            for start in searched.starts
        ],
        "trials": searched.trials,
        "sentences": [{"text": each.text, "voice": each.voice.id} for each in utterances],
        "seconds": searched.seconds,
        "setting": setting.to_json(),
    }


def _known(value: float) -> float | None:
    """``value``, or ``None`` if it could not be measured, such as the pitch of noise."""
    return value if math.isfinite(value) else None


def _shown(searches: Sequence[_Search], found: Sequence[dict[str, Any]]) -> str:
    rows = [
        {
            "evaluations": one["evaluations"],
            "searched": searched_grid.figure_text(one["value"], one["objective"]),
            **{
                each["title"].split()[0]: searched_grid.figure_text(each["value"], one["objective"])
                for each in one["starts"]
            },
            "grids tried": one["trials"],
            "search (s)": one["seconds"],
            "times": " ".join(f"{time:.3f}" for time in one["times"]),
        }
        for one in found
    ]
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [
        *table_lines([{name: row.get(name, "–") for name in names} for row in rows]),
        "",
        f"Figures: {found[0]['unit']}"
        + ("; lower is nearer." if found[0]["objective"] == DISTANCE else ", on the sentences that were searched on."),
    ]
    lines += [f"Wrote the {kind} to {path}." for _, places in searches for kind, path in places.items()]
    return "\n".join(lines)
