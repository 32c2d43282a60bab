"""Profiles: one setting with its artefacts and its evidence, in one portable JSON file. Torch-free.

An artefact, such as a strategy table, is read, checked and written by its technique, in a field named by the technique.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from paretone import files
from paretone.errors import AudioError, PlainError, ProfileError, placed
from paretone.fields import exact, is_of, require_usual_numbers, typed
from paretone.models import catalogue, load_model
from paretone.models.base import ModelInfo, Synthesis, Voice
from paretone.models.voices import is_own, shown_name, without_folder
from paretone.observer import Observer
from paretone.reading import first_line, legible, parsed_json, read_bytes, require_regular, shown
from paretone.setting.compatibility import Compatibility, checkpoint_text
from paretone.setting.knobs import NO_VALUES, Knob, Values, checked
from paretone.setting.plan import flow_of
from paretone.setting.setting import Artefact, Setting, UsedTechnique, checked_seed
from paretone.setting.take import AnyTake, repeated
from paretone.techniques import conflict, foreseen, resolve, technique
from paretone.techniques.base import ArtefactType, Technique
from paretone.techniques.registry import plug_in, techniques
from paretone.techniques.resolving import known


def encoded(data: Mapping[str, object]) -> bytes:
    """File content with ``data``, JSON values; each row of a table is on one line, for readability."""
    lines: list[str] = []
    row: list[str] | None = None
    for line in json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False).splitlines():
        stripped = line.strip()
        if row is None and stripped in ('"NONE",', '"TS",', '"BS",', '"NONE"', '"TS"', '"BS"'):
            row = [lines.pop()]
        if row is None:
            lines.append(line)
        elif stripped.startswith("]"):
            lines.append(row[0] + " ".join(row[1:]) + stripped)
            row = None
        else:
            row.append(stripped)
    return ("\n".join(lines) + "\n").encode()


def decoded(content: bytes) -> object:
    """JSON values of a file. Raises :class:`ProfileError` for duplicate fields and for unusable numbers, and
    :class:`ValueError` for invalid JSON."""
    data = parsed_json(content, object_pairs_hook=_unique)
    require_usual_numbers(data, ProfileError)
    return data


def read_artefact(path: str | Path, noun: str) -> object:
    """JSON values of an artefact's file, a ``noun``. Raises :class:`ProfileError`."""
    with legible(ProfileError, noun, path):
        content = read_bytes(path)
    try:
        return decoded(content)
    except ProfileError as error:
        raise ProfileError(f"{path}: {error}") from None
    except ValueError as error:
        raise ProfileError(f"{path} is not a {noun}: it is not JSON ({first_line(error)}).") from error


def artefact_in(path: str | Path, technique: Technique) -> Any:
    """Read an artefact of ``technique`` from the file ``path``. Raises :class:`ProfileError`."""
    assert technique.artefact is not None and technique.artefact_file is not None
    return technique.artefact.read(read_artefact(path, technique.artefact_file.noun), str(path))


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """A JSON object without duplicate fields."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ProfileError(f"the field {shown(twice)} is given twice.")
    return found


@dataclass(frozen=True)
class Evidence:
    """Measurements of a profile's setting, and their device.

    ``metrics`` are named numbers: ``real_time_factor``, ``cpu_time_factor``, ``other_share`` (of the cores, taken by
    other processes), ``first_audio_seconds``, ``ops_ratio``, ``speed_up`` (over the baseline, by real-time factor),
    ``log_mel_distance`` (to the baseline), ``streaming_difference`` (decibels; of decoders that do not stream exactly),
    and those of :class:`paretone.setting.take.Metrics`.
    """

    metrics: Values = NO_VALUES
    machine: str = ""
    seed: int = 0
    date: str = ""
    """UTC, ISO 8601."""
    text: str = ""
    voice: str = ""

    @classmethod
    def of(cls, take: AnyTake, baseline: AnyTake | None = None) -> Evidence:
        """Figures of ``take``, relative to its ``baseline`` if given."""
        measured, speed_up = take.measurements, None
        if baseline is not None and measured.real_time_factor > 0:
            speed_up = baseline.measurements.real_time_factor / measured.real_time_factor
        metrics = {
            "real_time_factor": measured.real_time_factor,
            "first_audio_seconds": measured.first_audio_seconds,
            "ops_ratio": measured.ops_ratio,
            "speed_up": speed_up,
            "cpu_time_factor": measured.cpu_time_factor,
            "other_share": measured.other_share,
            "log_mel_distance": take.log_mel_distance,
            "streaming_difference": measured.streaming_difference,
            **asdict(take.metrics),
        }
        known = Values({name: value for name, value in metrics.items() if value is not None})
        return cls(known, take.machine, take.setting.seed, take.created, take.text, take.voice)

    def to_json(self) -> dict[str, object]:
        return vars(self) | {"metrics": dict(self.metrics)}

    @classmethod
    def from_json(cls, data: object) -> Evidence:
        """Inverse of :meth:`to_json`. Raises :class:`ProfileError` with the field at fault."""
        fields = {"metrics": dict[str, float], "machine": str, "seed": int, "date": str, "text": str, "voice": str}
        found = exact(data, "evidence", fields, ProfileError)
        try:
            if found["date"]:
                datetime.fromisoformat(found["date"])
        except ValueError:
            raise ProfileError(f"evidence.date must be an ISO 8601 date, not {shown(found['date'])}.") from None
        checked_seed(found["seed"], "evidence.seed")
        return cls(**{**found, "metrics": Values(found["metrics"]), "voice": without_folder(found["voice"])})


SCHEMA = 1
"""Schema version written, and the newest one readable."""
ALWAYS = "table"
"""Artefact field present in every profile, ``null`` if empty: the same in files of all versions."""
SUFFIX = ".paretone.json"
"""Suffix of profile files, by which a desktop recognises them; files with any other are read as well."""
_KIND = "paretone profile"
_LARGEST_BYTES = 16 * 2**20


class _Warning(Observer):
    def caution(self, sentence: str) -> None:
        warnings.warn(sentence, stacklevel=2)


@typed
@dataclass(frozen=True)
class Profile:
    """An exported setting, with its weights, its artefacts and its measured effect. ``checkpoint`` is the SHA-256 of
    the weights, hexadecimal; ``variant`` the architecture. Construction checks that all parts belong together; raises
    :class:`ProfileError` with the field at fault."""

    setting: Setting
    checkpoint: str
    variant: str
    artefacts: tuple[Artefact, ...] = ()
    evidence: Evidence = field(default_factory=Evidence)
    schema: int = SCHEMA

    def __post_init__(self) -> None:
        for index, one in enumerate(self.setting.techniques):
            declared = technique(one.technique)
            if declared.weights is not None and declared.weights.required and not _is_fingerprint(one.artefact):
                raise ProfileError(
                    f"setting.techniques[{index}].artefact must be the SHA-256 of the {declared.title} weights, 64 "
                    f"hexadecimal digits, not {shown(one.artefact)}."
                )
        for owner, kind in _artefact_types():
            used, found = self.setting.technique(owner.name), self.artefact(kind.key)
            if used is None and found is None:
                continue
            if used is None:
                raise ProfileError(f"{kind.key} is there, but setting.techniques does not use {owner.name}.")
            if found is None:
                raise ProfileError(f"{kind.key} is missing, though setting.techniques uses {owner.name}.")
            if used.artefact != found.fingerprint:
                raise ProfileError(
                    f"{kind.key} is another one than setting.techniques names: its fingerprint is "
                    f"{shown(found.fingerprint)}, not {shown(used.artefact)}."
                )
            # Without the owner, which would refuse some of the compared values.
            without = foreseen(self.setting.without(owner.name), self._info)
            kind.check(found, used, (flow_of(without) if owner.of_mel_flow else without).compatibility)
        if reason := conflict(self.setting):
            raise ProfileError(f"setting.techniques cannot be used together with setting.options: {reason}")

    def artefact(self, key: str) -> Any:
        """Artefact in the file's field ``key``, or ``None``."""
        kind = next((one for _, one in _artefact_types() if one.key == key), None)
        return next((one for one in self.artefacts if kind is not None and isinstance(one, kind.type)), None)

    @property
    def compatibility(self) -> Compatibility:
        """Compatibility required of its artefacts."""
        return foreseen(self.setting, self._info).compatibility

    @property
    def weights(self) -> str:
        """SHA-256 of weights that replace the checkpoint's own, or ``""``."""
        found = self.compatibility.fingerprint
        return "" if found == self.checkpoint else found

    @property
    def _info(self) -> ModelInfo:
        return replace(known(self.setting.model), fingerprint=self.checkpoint, variant=self.variant)

    @classmethod
    def of(
        cls, setting: Setting, info: ModelInfo, artefacts: Sequence[Artefact] = (), evidence: Evidence | None = None
    ) -> Profile:
        """Profile of ``setting`` on the loaded model ``info``, with all values explicit. Raises :class:`ProfileError`
        if they do not belong together, :class:`SettingError` for values out of range."""
        if setting.model != info.id:
            raise ProfileError(f"The setting is for the model {shown(setting.model)}, but {shown(info.id)} is loaded.")
        entries = tuple(_written_out(one, info, setting, artefacts) for one in setting.techniques)
        whole = replace(setting, options=checked(info.knobs, setting.options, info.title), techniques=entries)
        return cls(whole, info.fingerprint, info.variant, tuple(artefacts), evidence or Evidence(seed=setting.seed))

    @property
    def named_variant(self) -> str:
        """Variant for loading the model: the profile's if it is a released architecture, otherwise ``""``: a sidecar
        next to the weights describes any other."""
        return self.variant if self.variant in catalogue.entry(self.setting.model).architectures else ""

    @property
    def baseline(self) -> Profile:
        return replace(self, setting=self.setting.baseline, artefacts=(), evidence=Evidence())

    def check(self, info: ModelInfo, compatibility: Compatibility | None = None) -> Any:
        """The plan on the loaded model ``info``. Raises :class:`ProfileError` if the profile cannot run there.
        ``compatibility``: that of the setting to run, by default the profile's own."""
        for name, mine, theirs in (
            ("model", self.setting.model, info.id),
            ("checkpoint", self.checkpoint, info.fingerprint),
            ("architecture variant", self.variant, info.variant),
        ):
            if mine != theirs:
                shown = tuple(map(checkpoint_text if name == "checkpoint" else repr, (mine, theirs)))
                raise ProfileError(
                    f"The profile cannot be used here: it is for {name} {shown[0]}, but {shown[1]} is loaded. "
                    "Load what it was made for, or calibrate again."
                )
        try:
            plan = resolve(info, self.setting, self.artefacts)
        except ProfileError:
            raise  # Of an artefact: it says what cannot be used here.
        except PlainError as error:
            raise ProfileError(f"The profile cannot be used here: {error}") from error
        mismatch = self.compatibility.mismatch(compatibility) if compatibility is not None else None
        if mismatch:
            raise ProfileError(f"The profile cannot be used here: {mismatch}. Use its own setting, or calibrate again.")
        return plan

    def synthesise(
        self, text: str, voice: Voice | str | None = None, device: str = "auto", folder: str = "", repeat: int = 0
    ) -> Synthesis:
        """Load the model and speak ``text``: the same samples as in the application under this setting.

        ``voice``: a voice, the name of a bundled voice, or ``None`` for the profile's. ``folder``: the checkpoint's, if
        not the catalogue's. ``repeat``: number of further runs for timing; the times are then medians. Problems of the
        voice, such as a transcript that its recording does not match, are warnings before speaking. Raises
        :class:`paretone.errors.PlainError`; :func:`paretone.finished_part` gives what was finished before.
        """
        if not isinstance(voice, Voice):
            voice = catalogue.voice(voice, self.setting.model, folder) if voice else self.voice(folder)
        model = load_model(self.setting.model, folder=folder, variant=self.named_variant, device=device)
        plan = self.check(model.info)
        observer = _Warning()
        model.make_ready(plan, observer, voice)

        def spoken() -> Synthesis:
            return model.speak(model.script(text, voice, plan, observer), observer)

        first = spoken()
        return repeated(first, [spoken().measurements for _ in range(repeat)]) if repeat else first

    def voice(self, folder: str = "") -> Voice:
        """The profile's voice, or the model's first if it names none. ``folder``: the model's, if not the catalogue's.
        Raises :class:`AudioError` for a user's own recording: a profile contains neither audio nor transcript."""
        shipped = {one.id: one for one in catalogue.voices(self.setting.model, folder)}
        name = self.evidence.voice
        if not name:
            return catalogue.voice("", self.setting.model, folder)
        if name not in shipped:
            named = f"the recording {shown_name(name)}" if is_own(name) else f"the voice {shown(name)}"
            others = f", or one that the model comes with ({', '.join(shipped)})" if shipped else ""
            raise AudioError(
                f"The profile was measured with {named}, which is not part of it; give a voice: that recording and its "
                f"transcript{others}."
            )
        return shipped[name]

    def encoded(self) -> bytes:
        return encoded(self.to_json())

    def save(self, path: str | Path) -> None:
        """Write the profile like :func:`paretone.files.write_through`. Raises :class:`ProfileError` if that fails."""
        with files.explained(ProfileError, f"The profile {path} could not be written", Path(path)):
            # A Path is passed on unchanged: standard output's is recognised by identity.
            files.write_through(path if isinstance(path, Path) else Path(path), self.encoded())

    @classmethod
    def load(cls, path: str | Path) -> Profile:
        """Read a profile. Raises :class:`ProfileError` with the file and the field at fault."""
        with legible(ProfileError, "profile", path):
            require_regular(str(path))
            with Path(str(path)).open("rb") as file:
                content = file.read(_LARGEST_BYTES + 1)
        if len(content) > _LARGEST_BYTES:
            raise ProfileError(f"{path} is larger than any profile; choose the file that was exported.")
        try:
            data = decoded(content)
        except ProfileError as error:
            raise ProfileError(f"{path}: {error}") from None
        except ValueError as error:
            raise ProfileError(f"{path} is not a profile: it is not JSON ({first_line(error)}).") from error
        return cls.from_json(data, str(path))

    def to_json(self) -> dict:
        fields: dict[str, object] = {}
        for _, kind in _artefact_types():
            found = self.artefact(kind.key)
            if found is not None or kind.key == ALWAYS:
                fields[kind.key] = None if found is None else kind.write(found)
        return {
            "kind": _KIND,
            "schema": self.schema,
            "checkpoint": self.checkpoint,
            "variant": self.variant,
            "setting": self.setting.to_json(),
            **fields,
            "evidence": self.evidence.to_json(),
        }

    @classmethod
    def from_json(cls, data: object, where: str = "profile") -> Profile:
        """Inverse of :meth:`to_json`. Raises :class:`ProfileError` with ``where`` and the field at fault."""
        with placed(ProfileError, where):
            if not isinstance(data, dict) or data.get("kind") != _KIND:
                raise ProfileError("this is not a profile; choose a file that Paretone exported.")
            schema = data.get("schema")
            if not is_of(schema, int):
                raise ProfileError(f"schema must be a whole number, not {shown(schema)}.")
            if schema > SCHEMA:
                raise ProfileError(
                    f"schema is {schema}, but this Paretone reads up to {SCHEMA}; the profile comes from a newer "
                    "version: update Paretone to use it."
                )
            if schema < 1:
                raise ProfileError(f"schema must be at least 1, not {schema}.")
            # The setting first: its message on an absent technique is more helpful than one on an unknown field.
            setting = _checked_setting(Setting.from_json(data["setting"])) if "setting" in data else None
            kinds = {kind.key: kind for _, kind in _artefact_types()}
            fields = {"kind": str, "schema": int, "checkpoint": str, "variant": str, "setting": dict}
            fields |= dict.fromkeys(("evidence", ALWAYS, *kinds), object)
            exact(data, "profile", fields, ProfileError, kinds.keys() - {ALWAYS})
            checkpoint = data["checkpoint"]
            if not _is_fingerprint(checkpoint):
                raise ProfileError("checkpoint must be a SHA-256 of 64 hexadecimal digits.")
            artefacts = tuple(kind.read(data[key], key) for key, kind in kinds.items() if data.get(key) is not None)
            assert setting is not None
            return cls(setting, checkpoint, data["variant"], artefacts, Evidence.from_json(data["evidence"]), schema)


def _is_fingerprint(text: str) -> bool:
    return len(text) == 64 and not set(text) - set("0123456789abcdef")


def _artefact_types() -> list[tuple[Technique, ArtefactType]]:
    return [(one, one.artefact) for one in techniques() if one.artefact is not None]


def _written_out(
    entry: UsedTechnique, info: ModelInfo, setting: Setting, artefacts: Sequence[Artefact]
) -> UsedTechnique:
    """``entry`` with all its knobs, also those fixed by its artefact, and the fingerprint of artefact or weights."""
    declared = technique(entry.technique)
    knobs = checked(declared.knobs, entry.knobs, declared.title)
    if declared.artefact is not None:
        found = next((one for one in artefacts if one.fingerprint == entry.artefact), None)
        return replace(entry, knobs=knobs if found is None else declared.artefact.knobs(found, knobs))
    if declared.weights is None or entry.artefact:
        return replace(entry, knobs=knobs)
    chosen = declared.weights.of(resolve(info, setting, artefacts))
    return replace(entry, knobs=knobs, artefact=chosen.fingerprint if chosen else "")


def _checked_setting(setting: Setting) -> Setting:
    """``setting`` with every value in its knob's type. Raises for an unknown knob or a value out of range."""
    entry = catalogue.entry(setting.model)
    options = _all_checked(entry.options, setting.options, "setting.options", catalogue.plug_in(entry.id))
    techniques = []
    for index, one in enumerate(setting.techniques):
        where = f"setting.techniques[{index}]"
        with placed(ProfileError, f"{where}.technique"):
            declared = technique(one.technique)
        knobs = _all_checked(declared.knobs, one.knobs, f"{where}.knobs", plug_in(declared.name))
        techniques.append(replace(one, knobs=knobs))
    if len({one.technique for one in techniques}) < len(techniques):
        raise ProfileError("setting.techniques names a technique twice.")
    seed = checked_seed(setting.seed, "setting.seed")
    return replace(setting, options=options, techniques=tuple(techniques), seed=seed)


def _all_checked(knobs: tuple[Knob, ...], values: Mapping[str, object], where: str, owner: str) -> Values:
    """Like :func:`checked`, but only knobs newer than profiles may be missing: defaults might change. ``owner``: the
    plug-in that declares them, or ``""``."""
    known = {knob.name: knob for knob in knobs}
    wrong = [f"lacks the field {shown(one)}" for one, knob in known.items() if one not in values and not knob.later]
    wrong += [f"has an unknown field {shown(one)}" for one in values if one not in known]
    if wrong:
        other = f" It may come from another version of {owner}: install that, or edit the profile." if owner else ""
        raise ProfileError(f"{where} {wrong[0]}.{other}")
    for name, value in values.items():
        with placed(ProfileError, f"{where}.{name}"):
            known[name].check(value)
    return checked(knobs, values, where)
