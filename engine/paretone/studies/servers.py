"""Servers in studies: each ``[[server]]`` of a study's file under each load is a setting, and its replies are takes.

Such a setting has the server's name as its model; its options are the address, the load, and the fields of each
request, those within others by their whole names (``extra_params.seed``). In a closed loop all clients ask from the
first to the last reply that counts. A recording to clone is an option by its fingerprint. Torch-free.
"""

from __future__ import annotations

import math
import os
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any

from paretone.errors import SettingError, StudyError
from paretone.extras import require_serving
from paretone.fields import Fields, is_of
from paretone.measure.evaluation.judges import Judge, heard, judge_named
from paretone.measure.machine import describe
from paretone.models.base import Voice
from paretone.models.voices import is_own, own_voice
from paretone.observer import Observer
from paretone.reading import shown
from paretone.serving.records import FORMS, MOST_LOAD, TYPICAL, Level, Order, Target, address, request_fields
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting
from paretone.studies.evaluation_sets import StudySentence
from paretone.studies.space import study_fields
from paretone.studies.study import SERVER, Candidate, Cell, Failed, Made, Speak, Study, seeded, take_id
from paretone.wording import grouped, listed, plain

if TYPE_CHECKING:
    from paretone.serving.load import Reply

TOKEN = "PARETONE_SERVER_TOKEN"
"""Environment variable with the token of servers that need one: studies are passed on, tokens are not."""
_URL, _CLIENTS, _RATE, _TOKEN, _SEEDED = _OWN = ("url", "clients", "rate", "token", "seeded")
"""Options that are not fields of the request."""
_LOADS: Mapping[str, tuple[type | UnionType, str]] = {
    _CLIENTS: (int, f"whole numbers from 1 to {grouped(MOST_LOAD)}"),
    _RATE: (int | float, f"requests a second, above 0 and at most {grouped(MOST_LOAD)}"),
}
CLONED = "ref_audio"
"""Field of the request with a recording to clone: in a study its file, or ``true`` for those of the study's voices."""


def servers_of(fields: Fields, root: Path) -> list[Candidate]:
    """The settings of all ``[[server]]`` in a study's ``fields``. Raises :class:`StudyError`."""
    found: dict[str, Candidate] = {}
    for index, given in enumerate(fields.list("server")):
        for one in _settings(study_fields(given, f"server[{index}]."), root, f"server[{index}]"):
            if one.key in found:
                raise StudyError(f"two servers are asked for the same: {one.name}; delete one.")
            found[one.key] = one
    return list(found.values())


def _settings(fields: Fields, root: Path, where: str) -> Iterator[Candidate]:
    """One setting per load and combination of varied fields."""
    try:
        url = address(fields.text("url"))
    except SettingError as error:
        raise StudyError(f"{where}.url: {error}") from error
    name = fields.text("name") or url.partition("://")[2].partition("/")[0]
    loads = list(_loads(fields, where)) or [Level(clients=TYPICAL)]
    recordings = list(_recordings(fields.get(CLONED), root, f"{where}.{CLONED}"))
    named = {one: fields.text(one) for one in ("model", "voice") if one in fields}
    given = dict(_flat(fields.table("fields")))
    file = fields.text("request")
    request = dict(_flat(request_fields(root / file))) if file else {}
    request |= given | named
    varied: dict[str, list[object]] = {}
    for one, values in _flat(fields.table("vary")):
        if not isinstance(values, list) or not values:
            raise StudyError(f"{where}.vary.{one} must be a list of values, not {shown(values)}.")
        varied[one] = values
    own = {_URL: url, _TOKEN: fields.flag("token"), _SEEDED: fields.flag("seeded") or "seeded" not in fields}
    fields.require_known()
    # An export's request names a seed; the study's is sent in its place.
    reserved = {"input", "seed", "extra_params.seed"} if own[_SEEDED] else {"input"}
    if taken := reserved & {*given, *varied}:
        raise StudyError(f"the server {name} gets {shown(min(taken))} from the study; leave that field out.")
    for load, (cloned, voice), chosen in product(loads, recordings, product(*varied.values())):
        asked = {**request, **dict(zip(varied, chosen, strict=True))}
        for one, value in asked.items():
            if one in _OWN or (one == CLONED and not str(value).startswith(("http", "data:", "file:"))):
                raise StudyError(f"{one} is the server's own ([[server]]), not a field of its requests.")
            if not isinstance(value, bool | int | float | str):
                raise StudyError(f"the field {shown(one)} for {name} must be a number, a text, or true or false.")
        if outer := next((one for one in asked if any(other.startswith(f"{one}.") for other in asked)), ""):
            raise StudyError(f"the field {shown(outer)} for {name} has a value, and fields within it.")
        if (form := asked.get("response_format", FORMS[0])) not in FORMS:
            raise StudyError(f"response_format for {name} must be {listed(FORMS, 'or')}, not {shown(form)}.")
        words = [f"at {load}", *([voice.title] if voice is not None and len(recordings) > 1 else [])]
        words += [f"{one} {plain(value)}" for one, value in zip(varied, chosen, strict=True)]
        setting = Setting(f"server {name}", Values({**asked, **cloned, **own, **load.option}))
        yield Candidate(setting, SERVER, f"{name}, {', '.join(words)}", voice)


def _loads(fields: Fields, where: str) -> Iterator[Level]:
    for name, (kind, words) in _LOADS.items():
        values = found if isinstance(found := fields.get(name, []), list) else [found]
        if name in fields and not values:
            raise StudyError(f"{where}.{name} must be {words}, at least one of them.")
        for one in values:
            if not is_of(one, kind) or not 0 < one <= MOST_LOAD:
                raise StudyError(f"{where}.{name} must be {words}, not {shown(one)}.")
            yield Level(clients=one) if name == _CLIENTS else Level(rate=float(one))


def _recordings(given: object, root: Path, where: str) -> Iterator[tuple[dict[str, object], Voice | None]]:
    """Option and voice of each recording to clone; ``true``: each voice of the study, ``false``: none is sent."""
    for one in given if isinstance(given, list) and given else [given or False]:
        if isinstance(one, bool):
            yield {CLONED: True} if one else {}, None
        elif not isinstance(one, str) or not (root / one).is_file():
            raise StudyError(
                f"{where} must be a recording, a list of them, or true for those of the study's voices; there is no "
                f"recording {shown(one)}."
            )
        else:
            voice = own_voice(root / one)
            yield {CLONED: voice.id}, voice


def _flat(fields: Mapping[str, object], before: str = "") -> Iterator[tuple[str, object]]:
    """Fields with those within them by their whole names, such as an OmniVoice export's ``extra_params.seed``."""
    for name, value in fields.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def _nested(fields: Mapping[str, object]) -> dict[str, object]:
    """The contrary of :func:`_flat`."""
    made: dict[str, object] = {}
    for name, value in fields.items():
        *outer, last = name.split(".")
        within: Any = made
        for one in outer:
            within = within.setdefault(one, {})
        within[last] = value
    return made


def target_of(candidate: Candidate, voice: Voice) -> Target:
    """Server of ``candidate``, asked for its own voice, ``voice`` or what it clones. Raises :class:`PlainError`."""
    from paretone.serving.load import recorded

    options = candidate.setting.options
    asked = {name: value for name, value in options.items() if name not in _OWN}
    token = os.environ.get(TOKEN, "").strip() if options[_TOKEN] else ""
    if options[_TOKEN] and not token:
        raise StudyError(f"{options[_URL]} needs a token: set the environment variable {TOKEN}.")
    cloned = voice if asked.get(CLONED) is True else candidate.cloned
    if cloned is not None:
        if not cloned.audio:
            raise StudyError(f"The voice {cloned.title} has no recording that {candidate.name} could clone.")
        transcript = {"ref_text": cloned.transcript} if cloned.transcript else {}
        asked = {**transcript, **asked, CLONED: recorded(cloned.audio)}
    form = str(asked.pop("response_format", FORMS[0]))
    spoken = str(asked.pop("voice", "" if cloned is not None or is_own(voice.id) else voice.id))
    return Target(options[_URL], str(asked.pop("model", "")), spoken, token, form, _nested(asked))


class Asking:
    def __init__(self, study: Study, observer: Observer, answered: Callable[[int], None]) -> None:
        """``answered`` gets the number of answered cells of a candidate, while it is asked."""
        require_serving()
        self._study, self._observer, self._answered = study, observer, answered
        self._judges: Sequence[Judge] | None = None
        self._machine = describe().line

    def replies(self, candidate: Candidate, missing: set[Cell]) -> Iterator[Made | Failed]:
        """Replies of a server under its load, for all voices and rounds with a ``missing`` cell. Raises
        :class:`PlainError` if it cannot be reached, and :class:`paretone.errors.Cancelled`."""
        spoken: dict[str, list[StudySentence]] = defaultdict(list)
        for one in self._study.utterances:
            spoken[one.voice.id].append(one)
        done = 0
        for turn in range(self._study.rounds):
            for sentences in spoken.values():
                cells = [
                    (Cell(candidate.key, one.key, seed, turn), one) for seed in self._study.seeds for one in sentences
                ]
                if any(cell in missing for cell, _ in cells):
                    yield from self._asked(candidate, cells, missing, done)
                done += len(cells)

    def _asked(
        self, candidate: Candidate, cells: Sequence[tuple[Cell, StudySentence]], missing: set[Cell], done: int
    ) -> Iterator[Made | Failed]:
        from paretone.serving.load import measure

        options, seeds = candidate.setting.options, self._study.seeds
        level = Level(options.get(_CLIENTS, 0), options.get(_RATE, 0.0))
        order = Order(
            target_of(candidate, cells[0][1].voice),
            tuple(one.text for _, one in cells[: len(cells) // len(seeds)]),
            seeds=seeds if options[_SEEDED] else (None,) * len(seeds),
            # As many requests more as clients, so that all of them ask until the last that counts was answered.
            requests=len(cells) + max(level.clients - 1, 0),
        )
        most = len(cells)
        found = measure(order, level, self._observer.check, lambda now: self._answered(done + min(int(now), most)))
        there: dict[tuple[str, int | None], deque[Reply]] = defaultdict(deque)
        for reply in found.replies:
            there[reply.text, reply.seed].append(reply)
        for cell, one in cells:
            self._observer.check()
            reply = there[one.text, cell.seed if options[_SEEDED] else None].popleft()
            if cell in missing:
                yield self._kept(candidate, cell, one, reply)

    def _kept(self, candidate: Candidate, cell: Cell, spoken: StudySentence, reply: Reply) -> Made | Failed:
        task = Speak(cell, seeded(candidate, cell.seed), spoken)
        if reply.failure:
            # In whole seconds: those until a date differ from reply to reply.
            wanted = f"It asked for a wait of {math.ceil(reply.retry_after)} s." if reply.retry_after else ""
            words = " ".join(filter(None, (f"{candidate.name}: {reply.failure}.", reply.detail, wanted)))
            return Failed(task, words, reply.seconds)
        began = time.perf_counter()
        voice = candidate.cloned or spoken.voice
        take = reply.take(task.setting, voice.id, self._machine, take_id(cell))
        if cell.round:
            return Made(task, replace(take, samples=take.samples[:0]), reply.seconds, "", reply.seconds)
        if self._judges is None:
            self._judges = [judge_named(name).ready(self._study.equipment(()).texts) for name in self._study.judges]
        given = spoken.text, voice, take.samples, take.sample_rate
        verdicts = tuple(heard(one, *given) for one in self._judges)
        return Made(task, take, reply.seconds, "", reply.seconds + time.perf_counter() - began, verdicts)
