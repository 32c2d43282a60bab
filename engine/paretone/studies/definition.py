"""Reading and checking a study's TOML or JSON file. Torch-free.

Format: ``resources/docs/studies.md``.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

from paretone.by_name import by_name
from paretone.errors import StudyError, placed
from paretone.fields import Fields, is_of, require_usual_numbers
from paretone.measure.evaluation.judges import judge_named
from paretone.measure.metrics import metric
from paretone.models import catalogue
from paretone.models.base import Utterance, Voice
from paretone.models.voices import own_voice
from paretone.reading import decoded, legible, parsed_json, parsed_toml, read_bytes, read_text, shown
from paretone.setting.knobs import Values, checked
from paretone.setting.setting import Setting
from paretone.studies.evaluation_sets import EvaluationSet, StudySentence, read_evaluation
from paretone.studies.gains import published_rows
from paretone.studies.hooks import hooks
from paretone.studies.servers import servers_of
from paretone.studies.space import Search, VariedKnob, axes_of, search_of, study_fields
from paretone.studies.store import pronunciations_in
from paretone.studies.study import BASELINE, GRID, LISTED, Candidate, Study, assembled, duration
from paretone.techniques import conflict, require_family, technique
from paretone.techniques.published import chosen, options_of
from paretone.techniques.trained import used_technique
from paretone.wording import grouped

LIMIT = 20_000
"""Default limit of a study's takes, unless the study sets ``limit``."""
SENTENCES = {"harvard": catalogue.harvard_sentences, "unseen": catalogue.unseen_sentences, "demo": catalogue.sentences}
"""Sentences that a study can name."""
PAPER_SEEDS = (42, 3407, 666, 3954, 3962)
"""Five seeds used in published evaluations, ``seeds = "paper"``."""
_LARGEST_BYTES = 4 * 2**20
_HASH = "manifest_sha256"
_ONE_NAME = (
    "A table holds a name only once; several tables of one name are headed [[name]]; if an option and a technique "
    'share one, quote the technique\'s knob: "steps.steps" = [5, 7] and steps = [8, 16].'
)


def read(path: str | Path, results: Path | None = None) -> Study:
    """Study in the file ``path``: JSON if the name ends in ``.json``, otherwise TOML. In begun ``results``, words
    without a pronunciation in the file keep those of that time. Raises :class:`StudyError` with file and mistake."""
    path = Path(path)
    return parse(values(path), str(path), path.parent, None if results is None else pronunciations_in(results))


def values(path: Path) -> object:
    """Unchecked values of a study's file. Raises :class:`StudyError` if it cannot be read."""
    with legible(StudyError, "study", path):
        content = read_bytes(path)
    if len(content) > _LARGEST_BYTES:
        raise StudyError(
            f"{path} is larger than any study ({grouped(len(content))} bytes); choose the file that describes it."
        )
    try:
        text = decoded(content, "utf-8-sig")
        return parsed_json(text, object_pairs_hook=_once) if path.suffix == ".json" else parsed_toml(text)
    except ValueError as error:
        kind = "JSON" if path.suffix == ".json" else "TOML"
        # tomllib's several wordings for duplicate names.
        hint = f" {_ONE_NAME}" if str(error).startswith("Cannot ") else ""
        raise StudyError(f"{path} is not a study: it is not valid {kind} ({error}).{hint}") from error


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """One table of a JSON file; raises :class:`ValueError` for a duplicate name, as TOML does."""
    made = dict(pairs)
    if len(made) < len(pairs):
        twice = next(name for name in made if sum(name == other for other, _ in pairs) > 1)
        raise ValueError(f"Cannot have {shown(twice)} twice in one table")
    return made


def parse(data: object, where: str = "study", root: Path = Path(), pronunciations: str | None = None) -> Study:
    """Study from the values of its file; paths are relative to ``root``; ``pronunciations``: in place of the user's
    lexicon. Raises :class:`StudyError` that begins with ``where``."""
    with placed(StudyError, where):
        require_usual_numbers(data, StudyError)
        return _Reader(study_fields(data), root, pronunciations).study()


class _Reader:
    def __init__(self, fields: Fields, root: Path, pronunciations: str | None) -> None:
        self._fields, self._root = fields, root
        self._folder = fields.text("folder")
        self._model = fields.text("model", catalogue.id_of(self._folder) or catalogue.models()[0].id)
        self._entry = catalogue.entry(self._model)
        self._begun = {} if pronunciations is None or not self._entry.bundled else {"pronunciations": pronunciations}
        self._options = self._checked_options(fields.table("options"))
        self._ruled_out: list[tuple[str, str]] = []

    def study(self) -> Study:
        fields, vocoder = self._fields, self._fields.text("vocoder")
        self._entry.require_vocoder(vocoder)
        seeds, rounds = self._seeds(), fields.whole("rounds", 1, minimum=1)
        evaluation = self._evaluation()
        utterances = self._utterances(evaluation)
        # By default not those of the evaluation.
        calibration = fields.texts("calibration") or (catalogue.sentences()[0],)
        if published := fields.text("published"):
            published_rows(published)
        given = fields.get("grid", [])
        tables = given if isinstance(given, list) else [given]
        grids = [axes_of(study_fields(one, "grid").values, self._entry) for one in tables]
        search = search_of(fields.table("search"), self._entry) if "search" in fields else None
        batch = self._batch(rounds, seeds, search)
        listed = self._listed()
        servers = servers_of(fields, self._root)
        if not (listed or grids or search or servers):
            raise StudyError("there is nothing to compare: give [[setting]], [grid], [search] or [[server]].")
        # Counted before building: a product of ten axes would exceed memory.
        combinations = sum(math.prod(len(axis.values) for axis in axes) for axes in grids)
        settings = len(listed) + combinations + len(servers) + (search.trials if search else 0)
        _require_possible((settings, len(utterances), len(seeds), rounds), fields.whole("limit", LIMIT, minimum=1))
        candidates = self._with_baselines([*listed, *(one for axes in grids for one in self._grid(axes))], search)
        if search is not None:
            self._require_baselines(search, candidates)
        study = Study(
            title=fields.text("title", "Study"),
            model=self._model,
            options=self._options,
            candidates=(*candidates, *servers),
            utterances=utterances,
            seeds=seeds,
            rounds=rounds,
            batch=batch,
            judges=tuple(dict.fromkeys(judge_named(name).name for name in fields.texts("judges"))),
            calibration=tuple(Utterance(text, utterances[0].voice) for text in calibration),
            search=search,
            folder=self._folder,
            variant=fields.text("variant"),
            vocoder=vocoder,
            device=fields.text("device", "auto"),
            ruled_out=tuple(self._ruled_out),
            evaluation=evaluation,
            definition=fields.values if evaluation is None else {**fields.values, _HASH: evaluation.sha256},
        )
        fields.require_known()
        return study

    def _batch(self, rounds: int, seeds: Sequence[int], search: Search | None) -> int:
        """Takes spoken at once. Raises :class:`StudyError` also for a search that asks for what is not measured."""
        batch = self._fields.whole("batch", 1, minimum=1, maximum=64)
        if batch > 1 and rounds > 1:
            raise StudyError("rounds repeat takes to time them, and with batch nothing is timed; leave one out.")
        for one in map(metric, search.metrics if search else ()):
            if batch > 1 and one.is_timed:
                raise StudyError(f"the search asks for {one.title}, and with batch nothing is timed; leave batch out.")
            if one.across_seeds is not None and len(seeds) < 2:
                raise StudyError(
                    f"the search asks for {one.title}, which compares takes of different seeds; give two seeds or more."
                )
        return batch

    # --- Sentences and voices -----------------------------------------------------------------------------------------
    def _seeds(self) -> tuple[int, ...]:
        if isinstance(named := self._fields.get("seeds"), str):
            return by_name(named, {"paper": PAPER_SEEDS}, "list of seeds", "lists")
        seeds = self._fields.wholes("seeds", (0,))
        if len(set(seeds)) < len(seeds):
            raise StudyError(f"seeds names {max(seeds, key=seeds.count)} twice; leave one out.")
        return seeds

    def _evaluation(self) -> EvaluationSet | None:
        fields = self._fields
        if "manifest" not in fields:
            return None
        if "sentences" in fields or "voices" in fields:
            raise StudyError("manifest has its own sentences and voices; omit 'sentences' and 'voices'.")
        file, audio = self._path(fields.text("manifest")), fields.text("manifest_audio")
        return read_evaluation(file, self._path(audio) if audio else None, fields.text(_HASH))

    def _utterances(self, evaluation: EvaluationSet | None) -> tuple[StudySentence, ...]:
        """Sentences × voices, or the pairs of a published list."""
        if evaluation is not None:
            found = [*evaluation.rows[: self._fields.whole("count", len(evaluation.rows), 1)]]
        else:
            found = [StudySentence(text, voice) for voice in self._voices() for text in self._sentences()]
        if len(once := {one.key: one for one in found}) < len(found):
            twice = next(one for one in found if once[one.key] is not one)
            voice = twice.voice.title
            raise StudyError(f"{shown(twice.text)} occurs twice for {voice}; list both once, and use more seeds.")
        return tuple(found)

    def _sentences(self) -> tuple[str, ...]:
        given = self._fields.get("sentences", "harvard")
        if isinstance(given, str) and given in SENTENCES:
            texts = SENTENCES[given]()
        elif isinstance(given, str):
            path = self._path(given)
            try:
                lines = read_text(path, "utf-8-sig").splitlines()
            except (OSError, UnicodeDecodeError) as error:
                why = (isinstance(error, OSError) and error.strerror) or "it is not UTF-8 text"
                raise StudyError(
                    f"sentences: {path} is no text file ({why}); give a list, a file, or one of {', '.join(SENTENCES)}."
                ) from error
            texts = tuple(line.strip() for line in lines if line.strip())
        else:
            texts = self._fields.texts("sentences")
        texts = texts[: self._fields.whole("count", len(texts) or 1, minimum=1)]
        if not texts or not all(text.strip() for text in texts):
            raise StudyError("sentences is empty or has an empty one; write at least one.")
        return texts

    def _voices(self) -> tuple[Voice, ...]:
        first = self._fields.get("voices")
        if is_of(first, int):
            known = catalogue.voices(self._model, self._folder)
            if not 0 < first <= len(known):
                raise StudyError(f"voices must be a list, or a number from 1 to {len(known)}, not {first}.")
            return known[:first]
        given = self._fields.list("voices") or [catalogue.voice("", self._model, self._folder).id]
        return tuple(self._voice(one) for one in given)

    def _voice(self, given: object) -> Voice:
        if isinstance(given, str):
            return catalogue.voice(given, self._model, self._folder)
        fields = study_fields(given, "voices.")
        audio, transcript = self._path(fields.text("audio")), fields.text("transcript")
        fields.require_known()
        if not audio.is_file():
            raise StudyError(f"there is no recording {audio} for a voice; check the path.")
        if problem := catalogue.voice_problem(audio, self._model, self._folder, transcript):
            raise StudyError(problem)
        return own_voice(audio, transcript)

    def _path(self, name: str) -> Path:
        return self._root / name if name else Path()

    # --- Settings -----------------------------------------------------------------------------------------------------
    def _checked_options(self, given: Mapping[str, object]) -> Values:
        return checked(self._entry.options, self._entry.options_with(**{**self._begun, **given}), self._entry.title)

    def _listed(self) -> list[Candidate]:
        found: list[Candidate] = []
        for index, given in enumerate(self._fields.list("setting")):
            fields = study_fields(given, f"setting[{index}].")
            used, named = fields.table("techniques"), fields.text("as")
            published = chosen(self._model, named, used) if named else {}
            own = {**options_of(published), **fields.table("options")}
            setting = Setting(self._model, self._checked_options({**self._fields.table("options"), **own}))
            for name in dict.fromkeys((*published, *used)):
                knobs = study_fields(used.get(name, {}), f"setting[{index}].techniques.{name}.")
                fixed = published[name].knobs if name in published else {}
                setting = setting.with_technique(used_technique(technique(name), {**fixed, **knobs.all()}))
            name = fields.text("name") or named
            if reason := self._problem(setting):
                raise StudyError(f"{shown(name) if name else f'setting[{index}]'} cannot be used: {reason}")
            fields.require_known()
            if setting.fingerprint in (keys := [one.key for one in found]):
                twin = keys.index(setting.fingerprint)
                raise StudyError(f"setting[{index}] has the values of setting[{twin}]; change or delete one.")
            found.append(Candidate(setting, LISTED, name))
        for _, settings in hooks("settings"):
            for setting, name in settings(self._fields, self._model, self._options):
                require_family(self._entry, setting)
                found.append(Candidate(setting, LISTED, name))
        return found

    def _grid(self, axes: Sequence[VariedKnob]) -> list[Candidate]:
        found: dict[str, Candidate] = {}
        for values in product(*(axis.values for axis in axes)):
            setting = assembled(self._model, self._options, dict(zip(axes, values, strict=True)))
            if reason := self._problem(setting):
                self._ruled_out.append((setting.fingerprint, reason))
            else:
                # With a technique off, its other axes have no effect.
                found.setdefault(setting.fingerprint, Candidate(setting, GRID))
        if not found:
            raise StudyError(f"no combination of the grid can be used; the first because: {self._ruled_out[0][1]}")
        return list(found.values())

    def _with_baselines(self, candidates: Sequence[Candidate], search: Search | None) -> tuple[Candidate, ...]:
        """``candidates`` without duplicates, after all their baselines."""
        settings = [one.setting.baseline for one in candidates]
        if search is not None:
            settings.append(Setting(self._model, self._options))
        named = {one.key: one.name for one in candidates if one.name}
        baselines = {
            one.fingerprint: Candidate(one, BASELINE, named.get(one.fingerprint, "baseline")) for one in settings
        }
        others = {one.key: one for one in candidates if one.key not in baselines}
        return (*baselines.values(), *others.values())

    def _require_baselines(self, search: Search, candidates: Sequence[Candidate]) -> None:
        """Raise :class:`StudyError` for a search that compares with baselines under options that are not spoken."""
        asked = [one for one in map(metric, search.metrics) if one.relative]
        asked += [metric(one.metric) for one in search.constraints if one.relative]
        options = [axis for axis in search.axes if not axis.technique]
        spoken, listed = {one.key for one in candidates}, [axis for axis in options if isinstance(axis, VariedKnob)]
        chosen = (dict(zip(listed, values, strict=True)) for values in product(*(axis.values for axis in listed)))
        if not asked or (
            listed == options
            and all(assembled(self._model, self._options, one).fingerprint in spoken for one in chosen)
        ):
            return
        raise StudyError(
            f"the search asks for {asked[0].title} against the baseline, which is spoken under the study's options, "
            f"and varies {options[0].knob}; try every combination of that ([grid]), or ask for a figure that needs no "
            f"baseline, such as {metric('real_time_factor').title}."
        )

    def _problem(self, setting: Setting) -> str | None:
        require_family(self._entry, setting)
        return conflict(setting)


def _require_possible(counts: tuple[int, int, int, int], limit: int) -> None:
    """Raise :class:`StudyError` for more takes than ``limit``."""
    if (takes := math.prod(counts)) <= limit:
        return
    parts = [
        f"{grouped(count)} {name}{'' if count == 1 else 's'}"
        for count, name in zip(counts, ("setting", "utterance", "seed", "round"), strict=True)
        if count > 1 or name in ("setting", "utterance")
    ]
    raise StudyError(
        f"this would be {grouped(takes)} takes ({' × '.join(parts)}); at a second each they take {duration(takes)}, "
        f"and more than {grouped(limit)} are refused. Omit values or use a search; limit in the file allows more."
    )


# --- Writing ----------------------------------------------------------------------------------------------------------
# Writing a study's definition as readable TOML, or as JSON.
#
# Source: TOML v1.0.0, https://toml.io/en/v1.0.0: basic strings escape as JSON's do, and so does DEL; keys of letters,
# digits, ``-`` and ``_`` are bare; a table's own values precede its tables.
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_FOLDER = re.compile(r"""^([ \t]*folder[ \t]*=[ \t]*)(?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*')""", re.MULTILINE)


def written(definition: Mapping[str, object], file: str) -> str:
    """Text of a study's file: JSON if the name ends in ``.json``, otherwise TOML."""
    if file.endswith(".json"):
        return json.dumps(dict(definition), indent=1, ensure_ascii=False)
    return to_toml(definition)


def with_folder(text: str, file: str, folder: str) -> str:
    """The file's ``text`` with another checkpoint ``folder``; comments stay in TOML."""
    if file.endswith(".json"):
        return written({**parsed_json(text), "folder": folder}, file)
    wanted = {**parsed_toml(text), "folder": folder}
    changed = _FOLDER.sub(lambda found: f"{found[1]}{_text(folder)}", text, count=1)
    try:
        if parsed_toml(changed) == wanted:
            return changed
    except ValueError:
        pass
    return to_toml(wanted)


def to_toml(definition: Mapping[str, object]) -> str:
    """``definition`` as TOML that reads back equal. Raises :class:`TypeError` for values without a TOML form."""
    return "\n".join(_table(definition, "")) + "\n"


def _table(values: Mapping[str, object], path: str) -> Iterator[str]:
    """Lines of one table: its own values, then its tables with headings."""
    headed, listed = {}, {}
    for name, value in values.items():
        if (
            isinstance(value, Mapping)
            and not _is_range(value)
            and (not path or any(isinstance(one, Mapping) and not _is_range(one) for one in value.values()))
        ):
            headed[name] = value  # At the top level, or with tables in it; others become dotted lines.
        elif isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
            listed[name] = value
        else:
            yield from _lines(_key(name), value)
    for name, value in headed.items():
        yield from ("", f"[{path}{_key(name)}]")
        yield from _table(value, f"{path}{_key(name)}.")
    for name, tables in listed.items():
        for one in tables:
            yield from ("", f"[[{path}{_key(name)}]]")
            yield from _table(one, f"{path}{_key(name)}.")


def _is_range(value: Mapping[str, object]) -> bool:
    """Whether a table is a single value: the range of a search."""
    return bool({"low", "high"} & set(value))


def _lines(key: str, value: object) -> Iterator[str]:
    if isinstance(value, Mapping) and value and not _is_range(value):
        for name, inner in value.items():
            yield from _lines(f"{key}.{_key(name)}", inner)
    else:
        yield f"{key} = {_value(value)}"


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _value(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            return _text(value)
        case Mapping():
            inner = ", ".join(f"{_key(name)} = {_value(one)}" for name, one in value.items())
            return f"{{ {inner} }}" if inner else "{}"
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
    raise TypeError(f"TOML has no form of {value!r}")


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
