"""Files of the text front end: ``resources/lexicon/natural``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from paretone.errors import CheckpointError
from paretone.paths import resource
from paretone.reading import parsed_json, require_regular

if TYPE_CHECKING:
    from torch import Tensor


def bundled(name: str) -> Path:
    """A file that is bundled."""
    return resource("lexicon", "natural", name)


def unreadable(path: Path, error: Exception) -> CheckpointError:
    """A sentence for a file that cannot be read."""
    return CheckpointError(
        f"The file {path} of the text front end cannot be read ({type(error).__name__}: {error}); "
        "install Paretone again."
    )


def read_network(path: Path, *lists: str) -> tuple[dict[str, Tensor], list[list[str]]]:
    """The weights in ``path`` as they are stored, and ``lists`` of symbols from its header. Raises
    :class:`CheckpointError`."""
    # On use: most texts need no network, and torch takes its time.
    from safetensors import SafetensorError, safe_open

    try:
        require_regular(path)
        with safe_open(path, "pt") as stored:
            symbols = [parsed_json(stored.metadata()[name]) for name in lists]
            return {name: stored.get_tensor(name) for name in stored.keys()}, symbols  # noqa: SIM118
    except (OSError, KeyError, TypeError, ValueError, SafetensorError) as error:
        raise unreadable(path, error) from error
