"""Qwen2's byte-pair encoding, from ``vocab.json`` and ``merges.txt``: the tokenizer of several models' texts.

Built by the package ``tokenizers`` from the files themselves, so that its version cannot change the ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from paretone.errors import CheckpointError
from paretone.extras import needing
from paretone.models.files.checkpoints import require_part
from paretone.reading import read_json, readable

if TYPE_CHECKING:
    from tokenizers import Tokenizer


VOCABULARY, MERGES = "vocab.json", "merges.txt"
WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""Pattern of the pieces in which Qwen2 merges bytes."""


def byte_pairs(folder: Path, title: str, install: str, added: Sequence[str]) -> Tokenizer:
    """The tokenizer of the model called ``title``; the ``added`` tokens follow the vocabulary in their order.
    ``install`` says how to get the package. Raises :class:`CheckpointError` that names what is missing."""
    with needing(CheckpointError, f"{title} reads text with the package tokenizers", install):
        from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
    paths = folder / VOCABULARY, folder / MERGES
    for path in paths:
        require_part(path, "download the official release again")
    with readable(CheckpointError, f"The tokenizer in {folder} cannot be read", "download it again", Exception):
        read_json(paths[0])  # Rejects deep nesting, which would overflow the package's stack.
        vocabulary, merges = models.BPE.read_file(*map(str, paths))
        tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(WORDS), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(added))
    return tokenizer
