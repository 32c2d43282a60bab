"""Servers in studies: each ``[[server]]`` of a study's file under each load is a setting, and its replies are takes.

Such a setting has the server's name as its model; its options are the address, the number of clients, and the fields of
each request, those within others by their whole names (``extra_params.seed``). All clients ask in a closed loop from
the first to the last reply that counts. Torch-free.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paretone.errors import SettingError, StudyError
from paretone.extras import require_serving
from paretone.fields import Fields, is_of
from paretone.measure.evaluation.judges import Judge, heard, judge_named
from paretone.measure.machine import describe
from paretone.models.voices import is_own
from paretone.observer import Observer
from paretone.reading import shown
from paretone.serving.records import FORMS, request_fields
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting
from paretone.studies.evaluation_sets import StudySentence
from paretone.studies.space import study_fields
from paretone.studies.study import SERVER, Candidate, Cell, Failed, Made, Speak, Study, seeded, take_id
from paretone.wording import listed, plain

if TYPE_CHECKING:
    from paretone.serving.load import Reply, Target

TOKEN = "PARETONE_SERVER_TOKEN"
"""Environment variable with the token of servers that need one: studies are passed on, tokens are not."""
USUAL_CLIENTS = 8
_URL, _CLIENTS, _TOKEN, _SEEDED = _OWN = ("url", "clients", "token", "seeded")
"""Options that are not fields of the request."""


def servers_of(fields: Fields, root: Path) -> list[Candidate]:
    """The settings of all ``[[server]]`` in a study's ``fields``. Raises :class:`StudyError`."""
    found: dict[str, Candidate] = {}
    for index, given in enumerate(fields.list("server")):
        for one in _settings(study_fields(given, f"server[{index}]."), root, f"server[{index}]"):
            if one.key in found:
                raise StudyError(f"server[{index}] asks for the same as another one: {one.name}; delete one.")
            found[one.key] = one
    return list(found.values())


def _settings(fields: Fields, root: Path, where: str) -> Iterator[Candidate]:
    """One setting per load and combination of varied fields."""
    url = fields.text("url")
    if not url.startswith(("http://", "https://")):
        raise StudyError(f"{where}.url must be an address such as http://127.0.0.1:8880, not {shown(url)}.")
    name = fields.text("name") or url.partition("://")[2].partition("/")[0]
    loads = [fields.get("clients")] if is_of(fields.get("clients"), int) else fields.wholes("clients", (USUAL_CLIENTS,))
    if (wrong := next((one for one in loads if not 0 < one <= 1000), None)) is not None:
        raise StudyError(f"{where}.clients must be from 1 to 1,000, not {wrong}.")
    named = {one: fields.text(one) for one in ("model", "voice") if one in fields}
    given = dict(_flat(fields.table("fields")))
    file = fields.text("request")
    request = dict(_flat(_request(root / file, where))) if file else {}
    request |= given | named
    varied: dict[str, list[object]] = {}
    for one, values in _flat(fields.table("vary")):
        if not isinstance(values, list) or not values:
            raise StudyError(f"{where}.vary.{one} must be a list of values, not {shown(values)}.")
        varied[one] = values
    own = {_URL: url, _TOKEN: fields.flag("token"), _SEEDED: bool(fields.get("seeded", True))}
    fields.require_known()
    # An export's request names a seed; the study's is sent in its place.
    reserved = {"input", "seed", "extra_params.seed"} if own[_SEEDED] else {"input"}
    if taken := reserved & {*given, *varied}:
        raise StudyError(f"{where}: the field {shown(min(taken))} of a request is the study's; leave it out.")
    for clients, chosen in product(loads, product(*varied.values())):
        asked = {**request, **dict(zip(varied, chosen, strict=True))}
        if own_one := next((one for one in asked if one in _OWN), ""):
            raise StudyError(f"{where}: {own_one} is not a field of a request; give it as {where}.{own_one}.")
        if strange := next(
            (one for one, value in asked.items() if not isinstance(value, bool | int | float | str)), ""
        ):
            raise StudyError(
                f"{where}: the field {shown(strange)} of a request must be a number, a text, or true or false."
            )
        if outer := next((one for one in asked if any(other.startswith(f"{one}.") for other in asked)), ""):
            raise StudyError(f"{where}: the field {shown(outer)} of a request has a value, and fields within it.")
        if (form := asked.get("response_format", FORMS[0])) not in FORMS:
            raise StudyError(f"{where}: response_format must be {listed(FORMS, 'or')}, not {shown(form)}.")
        words = [f"at {clients} client{'s' * (clients != 1)}"]
        words += [f"{one} {plain(value)}" for one, value in zip(varied, chosen, strict=True)]
        setting = Setting(f"server {name}", Values({**asked, **own, _CLIENTS: clients}))
        yield Candidate(setting, SERVER, f"{name}, {', '.join(words)}")


def _request(file: Path, where: str) -> Mapping[str, object]:
    try:
        return request_fields(file)
    except SettingError as error:
        raise StudyError(f"{where}.request: {error}") from error


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


def target_of(setting: Setting, voice: str) -> Target:
    """The server of ``setting``, asked for ``voice`` unless its own fields name one. Raises :class:`StudyError`."""
    from paretone.serving.load import Target

    asked = {name: value for name, value in setting.options.items() if name not in _OWN}
    token = os.environ.get(TOKEN, "") if setting.options[_TOKEN] else ""
    if setting.options[_TOKEN] and not token:
        raise StudyError(f"{setting.options[_URL]} needs a token: set the environment variable {TOKEN}.")
    form = str(asked.pop("response_format", FORMS[0]))
    spoken = str(asked.pop("voice", "" if is_own(voice) else voice))
    return Target(setting.options[_URL], str(asked.pop("model", "")), spoken, token, form, _nested(asked))


class Asking:
    """Asks the servers of ``study``."""

    def __init__(self, study: Study, observer: Observer) -> None:
        require_serving()
        self._study, self._observer = study, observer
        self._judges: Sequence[Judge] | None = None
        self._machine = describe().line

    def replies(self, candidate: Candidate, missing: set[Cell]) -> Iterator[Made | Failed]:
        """Replies of a server under its load, for all voices and rounds with a ``missing`` cell. Raises
        :class:`PlainError` if it cannot be reached, and :class:`paretone.errors.Cancelled`."""
        spoken: dict[str, list[StudySentence]] = defaultdict(list)
        for one in self._study.utterances:
            spoken[one.voice.id].append(one)
        for turn in range(self._study.rounds):
            for sentences in spoken.values():
                cells = [
                    (Cell(candidate.key, one.key, seed, turn), one) for seed in self._study.seeds for one in sentences
                ]
                if any(cell in missing for cell, _ in cells):
                    yield from self._asked(candidate, cells)

    def _asked(self, candidate: Candidate, cells: Sequence[tuple[Cell, StudySentence]]) -> Iterator[Made | Failed]:
        from paretone.serving.load import Level, Load

        options, seeds = candidate.setting.options, self._study.seeds
        clients, sent = options[_CLIENTS], seeds if options[_SEEDED] else (None,) * len(seeds)
        # As many requests more as clients, so that all of them ask until the last that counts was answered.
        load = Load(
            target_of(candidate.setting, cells[0][1].voice.id),
            [one.text for _, one in cells[: len(cells) // len(seeds)]],
            seeds=sent,
            requests=len(cells) + clients - 1,
            check=self._observer.check,
        )
        (found,) = load.run([Level(clients=clients)])
        there: dict[tuple[str, int | None], deque[Reply]] = defaultdict(deque)
        for reply in found.replies:
            there[reply.text, reply.seed].append(reply)
        for cell, one in cells:
            self._observer.check()
            yield self._kept(candidate, cell, one, there[one.text, cell.seed if options[_SEEDED] else None].popleft())

    def _kept(self, candidate: Candidate, cell: Cell, spoken: StudySentence, reply: Reply) -> Made | Failed:
        task = Speak(cell, seeded(candidate, cell.seed), spoken)
        if reply.failure:
            return Failed(task, f"{candidate.name}: {reply.failure}. {reply.detail}".strip(), reply.seconds)
        began = time.perf_counter()
        take = reply.take(task.setting, spoken.voice.id, self._machine, take_id(cell))
        if cell.round:
            return Made(task, replace(take, samples=take.samples[:0]), reply.seconds, "", reply.seconds)
        if self._judges is None:
            self._judges = [judge_named(name).ready(self._study.equipment(()).texts) for name in self._study.judges]
        given = spoken.text, spoken.voice, take.samples, take.sample_rate
        verdicts = tuple(heard(one, *given) for one in self._judges)
        return Made(task, take, reply.seconds, "", reply.seconds + time.perf_counter() - began, verdicts)
