"""Reading ``tokenizer.json`` of a Hugging Face folder with the package ``tokenizers``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from paretone.errors import CheckpointError
from paretone.models.files.checkpoints import require_part
from paretone.reading import first_line, read_json

if TYPE_CHECKING:
    from tokenizers import Tokenizer

FILE = "tokenizer.json"


def read_tokenizer(folder: Path, title: str, install: str, marks: Sequence[str]) -> Tokenizer:
    """The tokenizer in ``folder`` of the model called ``title``, which must have the tokens ``marks``; ``install`` says
    how to get the package. Raises :class:`CheckpointError` if package, file or tokens are missing."""
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise CheckpointError(
            f"{title} reads text with the package tokenizers, which is not installed; {install}"
        ) from None
    path = folder / FILE
    require_part(path, f"it belongs in the folder of {title}'s weights")
    try:
        read_json(path)  # The package reads what is nested deeply until its stack is full.
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # The package raises nothing more special.
        raise CheckpointError(
            f"{path} cannot be read as a tokenizer ({first_line(error)}); download it again."
        ) from None
    missing = [mark for mark in marks if tokenizer.token_to_id(mark) is None]
    if missing:
        raise CheckpointError(f"{path} lacks {', '.join(missing)}; it is not the tokenizer of {title}.")
    return tokenizer
