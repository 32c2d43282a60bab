"""The selection as it is remembered from one session to the next: JSON, of which what cannot be read is passed over."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from paretone.models.base import Voice
from paretone.models.own_voices import without_folder


@dataclass(frozen=True)
class RememberedModel:
    """What was selected of one model. Nothing in it needs to exist any more."""

    folder: str = ""
    """Folder of its files; ``""`` for its usual one."""
    variant: str = ""
    voice: str = ""
    """Id of the voice."""
    options: Mapping[str, object] = field(default_factory=dict)
    knobs: Mapping[str, object] = field(default_factory=dict)
    """By technique, its values by knob."""
    used: Mapping[str, object] = field(default_factory=dict)
    """By technique, whether it is used."""
    weights: Mapping[str, object] = field(default_factory=dict)
    """By technique, the fingerprint of its trained weights."""

    def to_json(self) -> dict[str, object]:
        """As values of JSON; :meth:`from_json` reads them back."""
        return {name: dict(value) if isinstance(value, Mapping) else value for name, value in vars(self).items()}

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> RememberedModel:
        """What :meth:`to_json` wrote."""
        return cls(
            _text(data.get("folder")),
            _text(data.get("variant")),
            without_folder(_text(data.get("voice"))),
            *(_mapping(data.get(name)) for name in ("options", "knobs", "used", "weights")),
        )


@dataclass(frozen=True)
class Remembered:
    """What was selected. Nothing in it needs to exist any more."""

    text: str = ""
    own_voices: tuple[Voice, ...] = ()
    seed: int | None = None
    seed_locked: bool = True
    model: str = ""
    """Id of the chosen model."""
    device: str = ""
    models: Mapping[str, RememberedModel] = field(default_factory=dict)
    """By model, what was selected of it."""
    voice: str = ""
    """Id of the voice in files of earlier versions, which kept one selection for all models."""
    has_common_options: bool = False
    """Whether an earlier version wrote options and techniques without their model."""
    vocoders: Mapping[str, str] = field(default_factory=dict)
    """By model, the folder of its vocoder, if that is not the usual one."""

    def to_json(self) -> str:
        """As text; :meth:`from_json` reads it back."""
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
        """What :meth:`to_json` wrote; ``None`` if this is something else."""
        try:
            saved = json.loads(data)
        except ValueError:
            return None
        if not isinstance(saved, dict):
            return None
        voices = (
            Voice(without_folder(str(id_)), str(title), str(audio), str(transcript))
            for id_, title, audio, transcript in _lists(saved.get("own_voices"), 4)
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


def _text(data: object) -> str:
    return data if isinstance(data, str) else ""


def _mapping(data: object) -> Mapping[str, object]:
    return data if isinstance(data, dict) else {}


def _lists(data: object, length: int) -> Iterable[list]:
    return [one for one in data if isinstance(one, list) and len(one) == length] if isinstance(data, list) else []
