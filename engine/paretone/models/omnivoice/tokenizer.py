"""OmniVoice's tokenizer: Qwen3's, with marks of language, description and text, and tags that stand for sounds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from paretone.models.files.shards import read_tokenizer
from paretone.models.omnivoice.config import INSTALL
from paretone.models.omnivoice.text import segments

if TYPE_CHECKING:
    from tokenizers import Tokenizer

DENOISE = "<|denoise|>"
LANGUAGE = "<|lang_start|>", "<|lang_end|>"
INSTRUCT = "<|instruct_start|>", "<|instruct_end|>"
TEXT = "<|text_start|>", "<|text_end|>"
NOT_TOLD = "None"


@dataclass(frozen=True)
class OmniVoiceTokenizer:
    """Texts to ids of the model's vocabulary."""

    tokenizer: Tokenizer

    @classmethod
    def read(cls, folder: Path) -> OmniVoiceTokenizer:
        """Read ``tokenizer.json``. Raises :class:`paretone.errors.CheckpointError` if package, file or tokens are
        missing."""
        return cls(read_tokenizer(folder, "OmniVoice", INSTALL, (DENOISE, *LANGUAGE, *INSTRUCT, *TEXT)))

    @property
    def vocabulary(self) -> int:
        """Number of ids."""
        return self.tokenizer.get_vocab_size(with_added_tokens=True)

    def prompt(self, text: str, language: str | None, instruct: str | None, *, denoise: bool) -> list[int]:
        """The ids in front of a canvas that says ``text`` (with what the reference says in front of it)."""
        style = (
            f"{DENOISE if denoise else ''}{LANGUAGE[0]}{language or NOT_TOLD}{LANGUAGE[1]}"
            f"{INSTRUCT[0]}{instruct or NOT_TOLD}{INSTRUCT[1]}"
        )
        ids = self._ids(style)
        for segment in segments(f"{TEXT[0]}{text}{TEXT[1]}"):
            ids.extend(self._ids(segment))
        return ids

    def _ids(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False).ids
