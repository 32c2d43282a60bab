"""Ceilings of graphics cards as their makers state them, for a roofline on paper. Torch-free.

Ours are in ``resources/roofline/cards.toml``; a file of the same form, ``cards.toml`` in the user's data folder, adds
cards or replaces ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paretone.by_name import by_name
from paretone.errors import PlainError, SettingError
from paretone.fields import exact
from paretone.measure.roofline.ceilings import Ceilings
from paretone.paths import data_folder, resource
from paretone.reading import parsed_toml, read_text

FILE = "cards.toml"
CLOCK = "seconds of the device"
LAUNCH_SECONDS = 11e-6
"""Seconds per launch unless a card states its own: the roofline post's, 0.67 ms per layer over 61 kernels in eager
bfloat16."""
_FIELDS = {"name": str, "title": str, "source": str, "bytes": float | int, "operations": dict}
_LATER = {"launch_seconds": float | int, "graph_launch_seconds": float | int}


def cards() -> Mapping[str, Ceilings]:
    """Ceilings by name of card. Raises :class:`SettingError` that names the faulty field of the user's file."""
    own = data_folder() / FILE
    return {**_read(resource("roofline", FILE)), **(_read(own) if own.exists() else {})}


def card(name: str) -> Ceilings:
    """Ceilings of the card ``name``. Raises :class:`SettingError` with the known names."""
    return by_name(name, cards(), "card", "cards")


def _read(path: Path) -> dict[str, Ceilings]:
    try:
        data = exact(parsed_toml(read_text(path)), str(path), {"card": list}, SettingError)
        return dict(_ceilings(one, f"{path}: card[{number}]") for number, one in enumerate(data["card"]))
    except PlainError:
        raise
    except (OSError, ValueError, TypeError) as error:
        raise SettingError(f"{path} cannot be used: {error}; correct it, or remove it.") from error


def _ceilings(data: object, where: str) -> tuple[str, Ceilings]:
    found: dict[str, Any] = exact(data, where, {**_FIELDS, **_LATER}, SettingError, optional=_LATER)
    speeds = dict.fromkeys(found["operations"], found["bytes"])
    return found["name"], Ceilings.from_json(
        {
            "device": found["title"],
            "clock": CLOCK,
            "operations": found["operations"],
            "bytes": speeds,
            "launch_seconds": found.get("launch_seconds", LAUNCH_SECONDS),
            "graph_launch_seconds": found.get("graph_launch_seconds"),
            "stated": found["source"],
        }
    )
