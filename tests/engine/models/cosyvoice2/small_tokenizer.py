"""A tokenizer in the layout of ``CosyVoice-BlankEN``: single bytes and a few merges."""

from __future__ import annotations

import json
from pathlib import Path

MERGES = ("t h", "Ġ th", "Ġth e", "h e", "l l", "he ll", "hell o")
SIZE = 256 + len(MERGES)


def write_tokenizer(folder: Path) -> None:
    """``vocab.json``, ``merges.txt`` and ``tokenizer_config.json``."""
    from tokenizers.pre_tokenizers import ByteLevel

    folder.mkdir(parents=True, exist_ok=True)
    entries = [*sorted(ByteLevel.alphabet()), *(merge.replace(" ", "") for merge in MERGES)]
    vocabulary = {entry: number for number, entry in enumerate(entries)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False), encoding="utf-8")
    (folder / "merges.txt").write_text("\n".join(("#version: 0.2", *MERGES, "")), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "Qwen2Tokenizer"}), encoding="utf-8")
