"""The selection as it is remembered from one session to the next: JSON, of which what cannot be read is passed over."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from engine.models.base import Voice
from engine.models.own_voices import without_folder


@dataclass(frozen=True)
class Remembered:
    """What was selected. Nothing in it needs to exist any more."""

    text: str = ""
    voice: str = ""
    """Id of the voice."""
    own_voices: tuple[Voice, ...] = ()
    seed: int | None = None
    seed_locked: bool = True
    options: Mapping[str, object] | None = None
    knobs: Mapping[str, object] | None = None
    """By technique, its values by knob."""
    used: Mapping[str, object] | None = None
    """By technique, whether it is used."""

    def to_json(self) -> str:
        """As text; :meth:`from_json` reads it back."""
        return json.dumps(
            {
                "text": self.text,
                "voice": self.voice,
                "own_voices": [[one.id, one.title, one.audio, one.transcript] for one in self.own_voices],
                "seed": self.seed,
                "seed_locked": self.seed_locked,
                "options": self.options,
                "knobs": self.knobs,
                "used": self.used,
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
        seed = saved.get("seed")
        return cls(
            str(saved.get("text") or ""),
            without_folder(str(saved.get("voice") or "")),
            tuple(voices),
            seed if isinstance(seed, int) else None,
            bool(saved.get("seed_locked", True)),
            _mapping(saved.get("options")),
            _mapping(saved.get("knobs")),
            _mapping(saved.get("used") or saved.get("engaged")),  # The second is the first edition's name of it.
        )


def _mapping(data: object) -> Mapping[str, object] | None:
    return data if isinstance(data, dict) else None


def _lists(data: object, length: int) -> Iterable[list]:
    return [one for one in data if isinstance(one, list) and len(one) == length] if isinstance(data, list) else []
