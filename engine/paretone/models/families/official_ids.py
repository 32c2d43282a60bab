"""A language model's ids and prompts as programs without Paretone count them: in one vocabulary of text and speech."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class OfficialIds:
    """What the ids of a vocabulary are."""

    size: int
    """Number of ids: rows of the table of embeddings."""
    first_code: int
    """Id of speech token 0; the others follow."""
    codes: int
    """Number of speech tokens."""
    stops: tuple[int, ...]
    """The ids that end speech, the one that does in training first."""

    @property
    def spoken(self) -> tuple[int, ...]:
        """All ids that may come after a prompt, (codes + stops,), in the order of local ids."""
        return (*range(self.first_code, self.first_code + self.codes), *self.stops)


@dataclass(frozen=True)
class OfficialPrompt:
    """What a model continues to speak one passage."""

    text: str
    """The passage."""
    ids: tuple[int, ...] = field(repr=False)
    """Voice and passage, (n,)."""
    minimum: int
    """Number of speech tokens before which speech cannot end."""
    maximum: int
    """Number of speech tokens after which decoding ends anyway."""
    positions: tuple[int, ...] | None = field(default=None, repr=False)
    """(n,), of the ids, where they are not counted from 0 through; later tokens continue from the last."""
