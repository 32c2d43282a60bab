"""Each model's options, voice, techniques with knobs and weights, and folder; saved as JSON between sessions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from paretone.errors import SettingError
from paretone.models.base import Voice
from paretone.models.declaration import Model
from paretone.models.voices import shown_name, without_folder
from paretone.reading import shown
from paretone.setting.knobs import Knob, Values, checked, defaults
from paretone.setting.setting import Artefact
from paretone.techniques import find, techniques


@dataclass
class ModelSelection:
    """The selection of one model; defaults as for ``paretone speak``."""

    options: Values
    voice: Voice | None = None
    used: dict[str, bool] = field(default_factory=lambda: {one.name: i == 0 for i, one in enumerate(techniques())})
    knobs: dict[str, Values] = field(default_factory=lambda: {one.name: defaults(one.knobs) for one in techniques()})
    weights: dict[str, str] = field(default_factory=dict)
    """By technique: fingerprint of the trained weights chosen among the fitting ones."""
    folder: str = ""
    """Folder it was last loaded from; ``""`` for the default one."""
    variant: str = ""
    artefacts: Mapping[str, Artefact] = field(default_factory=dict)
    """Artefacts in use when another model was chosen, until this one is loaded again."""

    def remembered(self) -> RememberedModel:
        knobs = {name: dict(values) for name, values in self.knobs.items()}
        voice = self.voice.id if self.voice else ""
        return RememberedModel(self.folder, self.variant, voice, dict(self.options), knobs, self.used, self.weights)

    def recall(self, saved: RememberedModel, entry: Model, voices: Iterable[Voice]) -> list[str]:
        """Restore ``saved`` for the model ``entry``; returns phrases about what no longer exists."""
        gone: list[str] = []
        self.folder, self.variant = saved.folder, saved.variant
        self.options = _permitted(entry.options, self.options, saved.options, entry.title, gone)
        if saved.voice:
            self.voice = next((one for one in voices if one.id == saved.voice), self.voice)
            if self.voice is None or self.voice.id != saved.voice:
                gone.append(f"the voice {shown_name(saved.voice)} is not there any more")
        for one in techniques():
            values, fingerprint = saved.knobs.get(one.name), saved.weights.get(one.name)
            if isinstance(values, dict):
                self.knobs[one.name] = _permitted(one.knobs, self.knobs[one.name], values, one.title, gone)
            if isinstance(fingerprint, str):
                self.weights[one.name] = fingerprint
            self.used[one.name] = bool(saved.used.get(one.name, self.used[one.name]))
        unknown = [name for name, used in saved.used.items() if used and find(name) is None]
        return [*gone, *(f"there is no technique {name} any more" for name in unknown)]


@dataclass(frozen=True)
class RememberedModel:
    folder: str = ""
    """Folder of its files; ``""`` for the default one."""
    variant: str = ""
    voice: str = ""
    options: Mapping[str, object] = field(default_factory=dict)
    knobs: Mapping[str, object] = field(default_factory=dict)
    """By technique: values by knob."""
    used: Mapping[str, object] = field(default_factory=dict)
    weights: Mapping[str, object] = field(default_factory=dict)
    """By technique: fingerprint of its trained weights."""

    def to_json(self) -> dict[str, object]:
        return {name: dict(value) if isinstance(value, Mapping) else value for name, value in vars(self).items()}

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> RememberedModel:
        return cls(
            _text(data.get("folder")),
            _text(data.get("variant")),
            without_folder(_text(data.get("voice"))),
            *(_mapping(data.get(name)) for name in ("options", "knobs", "used", "weights")),
        )


@dataclass(frozen=True)
class Remembered:
    """Saved selection; its contents may no longer exist."""

    text: str = ""
    own_voices: tuple[Voice, ...] = ()
    seed: int | None = None
    seed_locked: bool = True
    model: str = ""
    device: str = ""
    models: Mapping[str, RememberedModel] = field(default_factory=dict)
    voice: str = ""
    """Voice id in files of earlier versions, with one selection for all models."""
    has_common_options: bool = False
    """Whether an earlier version saved options and techniques without their model."""
    vocoders: Mapping[str, str] = field(default_factory=dict)
    """By model: folder of its vocoder, unless the default one."""

    def to_json(self) -> str:
        return json.dumps(
            {
                "text": self.text,
                "own_voices": [[one.id, one.title, one.audio, one.transcript] for one in self.own_voices],
                "seed": self.seed,
                "seed_locked": self.seed_locked,
                "model": self.model,
                "device": self.device,
                "models": {name: one.to_json() for name, one in self.models.items()},
                "vocoders": dict(self.vocoders),
            }
        )

    @classmethod
    def from_json(cls, data: str) -> Remembered | None:
        """Read the output of :meth:`to_json`; ``None`` if ``data`` is anything else."""
        try:
            saved = json.loads(data)
        except ValueError:
            return None
        if not isinstance(saved, dict):
            return None
        listed = saved.get("own_voices")
        whole = [one for one in listed if isinstance(one, list) and len(one) == 4] if isinstance(listed, list) else []
        voices = (
            Voice(without_folder(str(id_)), str(title), str(audio), str(transcript))
            for id_, title, audio, transcript in whole
        )
        seed, models = saved.get("seed"), _mapping(saved.get("models"))
        return cls(
            _text(saved.get("text")),
            tuple(voices),
            seed if isinstance(seed, int) else None,
            bool(saved.get("seed_locked", True)),
            _text(saved.get("model")),
            _text(saved.get("device")),
            {name: RememberedModel.from_json(one) for name, one in models.items() if isinstance(one, dict)},
            without_folder(_text(saved.get("voice"))),
            any(_mapping(saved.get(name)) for name in ("options", "knobs", "used", "engaged")),
            {name: _text(folder) for name, folder in _mapping(saved.get("vocoders")).items()},
        )


def _permitted(
    knobs: Iterable[Knob], usual: Values, saved: Mapping[str, object], owner: str, gone: list[str]
) -> Values:
    """``usual`` updated with the valid values in ``saved``; phrases about invalid ones are added to ``gone``."""
    found: dict[str, object] = {**usual}
    for knob in knobs:
        if knob.name not in saved:
            continue
        try:
            found[knob.name] = knob.check(saved[knob.name])
        except (SettingError, TypeError, ValueError):
            gone.append(f"{owner} does not take {knob.title} {shown(saved[knob.name])} any more")
    return checked(knobs, found, owner)


def _text(data: object) -> str:
    return data if isinstance(data, str) else ""


def _mapping(data: object) -> Mapping[str, object]:
    return data if isinstance(data, dict) else {}
