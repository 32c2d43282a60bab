"""The text tokenizer: Qwen2's byte-pair encoding from ``CosyVoice-BlankEN``, with the tokens that CosyVoice 2 adds.

Built from ``vocab.json`` and ``merges.txt`` by the package ``tokenizers`` (optional extra ``cosyvoice``), of which no
version can change the ids: the added tokens follow the vocabulary in the official order (``tokenizer/tokenizer.py``).
Torch-free.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from paretone.errors import CheckpointError
from paretone.models.cosyvoice2.config import INSTALL
from paretone.models.files.checkpoints import require_part
from paretone.reading import first_line, read_json

if TYPE_CHECKING:
    from tokenizers import Tokenizer

VOCABULARY, MERGES = "vocab.json", "merges.txt"
END_OF_PROMPT = "<|endofprompt|>"
"""Ends an instruction in front of a text."""
ADDED = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    END_OF_PROMPT,
    "[breath]",
    "<strong>",
    "</strong>",
    "[noise]",
    "[laughter]",
    "[cough]",
    "[clucking]",
    "[accent]",
    "[quick_breath]",
    "<laughter>",
    "</laughter>",
    "[hissing]",
    "[sigh]",
    "[vocalized-noise]",
    "[lipsmack]",
    "[mn]",
)
"""Tokens after the vocabulary; the first three are Qwen2's own."""
WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""Pattern of the pieces in which Qwen2 merges bytes."""


class TextTokenizer:
    """Text to ids of the language model's text embedding."""

    def __init__(self, tokenizer: Tokenizer, where: str) -> None:
        self._tokenizer = tokenizer
        self.where = where

    @classmethod
    def load(cls, folder: Path) -> TextTokenizer:
        """From the files in ``CosyVoice-BlankEN``. Raises :class:`CheckpointError` that names what is missing."""
        try:
            from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
        except ImportError:
            raise CheckpointError(
                f"CosyVoice 2 reads text with the package tokenizers, which is not installed; {INSTALL}"
            ) from None
        paths = folder / VOCABULARY, folder / MERGES
        for path in paths:
            require_part(path, "download the official release again")
        try:
            read_json(paths[0])  # The package reads what is nested deeply until its stack is full.
            vocabulary, merges = models.BPE.read_file(*map(str, paths))
            tokenizer = Tokenizer(models.BPE(vocabulary, merges))
        except Exception as error:  # The package raises nothing more specific.
            raise CheckpointError(
                f"The tokenizer in {folder} cannot be read ({first_line(error)}); download it again."
            ) from None
        tokenizer.normalizer = normalizers.NFC()
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(Regex(WORDS), "isolated"),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        )
        tokenizer.decoder = decoders.ByteLevel()
        tokenizer.add_special_tokens(list(ADDED))
        return cls(tokenizer, str(folder))

    @property
    def size(self) -> int:
        """Ids in all, the added ones included."""
        return self._tokenizer.get_vocab_size()

    def encode(self, text: str) -> list[int]:
        """The ids of ``text``; nothing is added before or after."""
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def count(self, text: str) -> int:
        """Number of tokens of ``text``."""
        return len(self.encode(text))

    def joined(self, rows: int, marks: Sequence[str], speech: Sequence[str], stops: Sequence[str]) -> str:
        """The content of a ``tokenizer.json`` in which the tables of text, of which ``rows`` are, of marks and of
        speech are one vocabulary; ``speech`` can be decoded, ``marks`` and ``stops`` cannot."""
        from tokenizers import AddedToken, Tokenizer

        self.require_rows(rows, "the table of text")
        whole = Tokenizer.from_str(self._tokenizer.to_str())
        whole.add_special_tokens([f"<|unused_{number}|>" for number in range(self.size, rows)])
        whole.add_special_tokens(list(marks))
        whole.add_tokens([AddedToken(one, normalized=False) for one in speech])
        whole.add_special_tokens(list(stops))
        return whole.to_str()

    def require_rows(self, rows: int, table: str) -> None:
        """Raise :class:`CheckpointError` unless a table of ``rows`` has one for every id."""
        if self.size > rows:
            raise CheckpointError(
                f"The tokenizer in {self.where} has {self.size} tokens, but {table} only {rows} rows: they do not "
                "belong together. Download the official release again."
            )
