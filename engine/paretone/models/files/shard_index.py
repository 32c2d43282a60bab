"""The list of a Hugging Face folder whose weights lie in several files. Torch-free."""

from __future__ import annotations

from pathlib import Path

from paretone.reading import parsed_json

INDEX = "model.safetensors.index.json"


def shard_of_each(content: bytes) -> dict[str, str]:
    """The file of each weight, from the contents of an :data:`INDEX`. Raises :class:`ValueError` for anything else."""
    try:
        listed = dict(parsed_json(content)["weight_map"])
        # A shard lies next to its index: a name with a folder in it would lead elsewhere.
        sound = bool(listed) and all(Path(name).name == name for name in listed.values())
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(str(error)) from None
    if not sound:
        raise ValueError("it names no files next to it")
    return listed
