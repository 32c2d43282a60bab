"""Layout of a sequence of the bundled language model.

Text comes first: one phone per speech token to come, and an id that ends it. Then an id that begins speech, and the
speech tokens. Positions restart at the speech, so a speech token has the position of its phone: rotary positions give
the alignment, and a plain Llama need not learn it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

import torch
from torch import Tensor

from paretone.errors import CheckpointError
from paretone.front_end.phones import PhoneVocabulary
from paretone.models.files.config_file import ConfigFile


@dataclass(frozen=True)
class Layout:
    """The ids of a checkpoint, as its ``layout.json`` lists them."""

    vocabulary: PhoneVocabulary
    """Phones have the ids from 0 on, in this order."""
    end_of_text: int
    first_code: int
    codes: int
    start_of_speech: int
    end_of_speech: int

    @classmethod
    def read(cls, path: Path) -> Layout:
        """Read a ``layout.json``. Raises :class:`CheckpointError`."""
        file = ConfigFile.read(path)
        layout = cls(
            PhoneVocabulary.read(file.text("phones")),
            **{one.name: file.number(one.name, least=0) for one in fields(cls) if one.name != "vocabulary"},
        )
        if layout.first_code < len(layout.vocabulary.phones) or layout.codes < 1:
            raise CheckpointError(f"{path} has ids that overlap; restore the model folder.")
        return layout

    @property
    def ids(self) -> int:
        """Least number of ids."""
        return max(self.end_of_text, self.first_code + self.codes - 1, self.start_of_speech, self.end_of_speech) + 1

    @property
    def rows(self) -> Tensor:
        """Rows of the official tables that the local ids stand for, (codes + 1,): the codes, then the end of speech."""
        return torch.tensor([*range(self.first_code, self.first_code + self.codes), self.end_of_speech])


def positions(text: int, speech: int) -> Tensor:
    """Positions of ``text`` ids of text, including the end of text, then of the beginning of speech and ``speech``
    tokens."""
    return torch.cat([torch.arange(text), torch.arange(speech + 1)])
