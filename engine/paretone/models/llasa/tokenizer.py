"""LLaSA's tokenizer: Llama's, with the marks of text and speech and one token for every code of XCodec2."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from paretone.errors import CheckpointError
from paretone.models.files.shards import read_tokenizer
from paretone.models.llasa.config import INSTALL
from paretone.models.llasa.prompt import SPEECH_END, SPEECH_START, TEXT_END, TEXT_START

if TYPE_CHECKING:
    from tokenizers import Tokenizer


@dataclass(frozen=True)
class LlasaTokenizer:
    """Texts to ids of the model's vocabulary."""

    tokenizer: Tokenizer
    first_code: int
    """Id of code 0; the others follow."""
    codes: int
    """Number of codes in the vocabulary."""
    end: int
    """Id of the token that ends speech."""

    @classmethod
    def read(cls, folder: Path) -> LlasaTokenizer:
        """Read ``tokenizer.json``. Raises :class:`paretone.errors.CheckpointError` if package, file or tokens are
        missing."""
        marks = (TEXT_START, TEXT_END, SPEECH_START, SPEECH_END, code_token(0))
        tokenizer = read_tokenizer(folder, "LLaSA", INSTALL, marks)
        first, end = tokenizer.token_to_id(code_token(0)), tokenizer.token_to_id(SPEECH_END)
        if first is None or end is None:
            raise CheckpointError(f"The tokenizer in {folder} lacks the tokens of speech; download it again.")
        codes = 1
        while tokenizer.token_to_id(code_token(codes)) == first + codes:
            codes += 1
        return cls(tokenizer, first, codes, end)

    @property
    def vocabulary(self) -> int:
        """Least number of ids: codes are the last."""
        return self.first_code + self.codes

    def ids(self, prompt: str) -> list[int]:
        """The ids of a prompt, which brings its own beginning of text."""
        return self.tokenizer.encode(prompt, add_special_tokens=False).ids


def code_token(code: int) -> str:
    """Name of a code of XCodec2 in the vocabulary."""
    return f"<|s_{code}|>"
