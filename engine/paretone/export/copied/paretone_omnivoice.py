# Copyright 2026 The Paretone authors. Licensed under the Apache License, Version 2.0:
# https://www.apache.org/licenses/LICENSE-2.0
"""Speaks with a Paretone profile in the official ``omnivoice`` package.

    from omnivoice import OmniVoice
    import paretone_omnivoice

    model = OmniVoice.from_pretrained("k2-fsa/OmniVoice", **paretone_omnivoice.loading("the folder of this file"))
    paretone_omnivoice.apply(model, "the folder of this file")
    audio = model.generate("A text.", ref_audio="voice.wav", ref_text="What is said in it.")
    paretone_omnivoice.remove(model)

Only ``generate`` of this one object changes: what the caller does not give, the profile gives, and torch's generator is
seeded before every call, so that equal calls give equal speech. Needs torch and omnivoice (tested with 0.2.1).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

FILE = "omnivoice.json"
KIND = "paretone profile for omnivoice"
SCHEMA = 1


class ProfileMismatch(ValueError):
    """The profile cannot be used with this model or this module."""


def apply(model: Any, profile: str | Path | dict[str, Any]) -> None:
    """Make ``model`` (an ``omnivoice.OmniVoice``) speak with ``profile``: the exported folder, its ``omnivoice.json``,
    or the content of that file. Raises :class:`ProfileMismatch` without changing anything."""
    given = read(profile)
    if "generate" in vars(model):
        raise ProfileMismatch("A profile is applied to this model already; remove it first.")
    if not callable(getattr(type(model), "generate", None)):
        raise ProfileMismatch("The model is not an OmniVoice of the official package.")

    def generate(text: Any, *positional: Any, **options: Any) -> Any:
        if given["seed"] is not None:
            torch.manual_seed(given["seed"])
        return type(model).generate(model, text, *positional, **{**given["generate"], **options})

    # Bypass the module's __setattr__, which registers values.
    vars(model)["generate"] = generate


def remove(model: Any) -> None:
    """Restore the official behaviour of ``model``. No-op without a profile."""
    vars(model).pop("generate", None)


def loading(profile: str | Path | dict[str, Any]) -> dict[str, Any]:
    """Arguments for ``OmniVoice.from_pretrained``: the profile's precision, if it has one."""
    precision = read(profile)["precision"]
    return {} if precision is None else {"dtype": getattr(torch, precision)}


def read(profile: str | Path | dict[str, Any]) -> dict[str, Any]:
    """Read and check the profile from a folder, a file or its content. Raises :class:`ProfileMismatch`."""
    if not isinstance(profile, dict):
        path = Path(profile)
        path = path / FILE if path.is_dir() else path
        try:
            profile = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ProfileMismatch(f"{path} cannot be read: {error}") from None
    if not isinstance(profile, dict) or profile.get("kind") != KIND:
        raise ProfileMismatch(
            "This is not a profile for omnivoice; export one with: paretone export --target omnivoice"
        )
    if profile.get("schema") != SCHEMA:
        raise ProfileMismatch(f"The profile's schema is {profile.get('schema')!r}, but this module reads {SCHEMA}.")
    if not isinstance(profile.get("generate"), dict) or profile.get("precision") not in (
        *(None, "float32", "float16", "bfloat16"),
    ):
        raise ProfileMismatch("The profile is damaged: its arguments or its precision are missing or unknown.")
    return profile
