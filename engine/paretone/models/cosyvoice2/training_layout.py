"""CosyVoice 2's language model as it is trained: the tensors of ``llm.pt``, and a sentence as a sequence.

``prepare_lm_input_target`` of ``llm/llm.py``. Upstream also lays out some sentences with text and speech in turns, for
texts that are spoken while they are typed; nothing here speaks so, and such sequences are not made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from paretone.models.cosyvoice2.language_model import (
    BIAS,
    END,
    HEAD,
    LAYERS,
    MARKS,
    SPEECH,
    START,
    TASK,
    TEXT,
    TEXT_HEAD,
    TRANSFORMER,
)
from paretone.models.families.training_layout import IGNORED, Parts, TrainingRow


@dataclass(frozen=True)
class CosyNames:
    """Names as in ``llm.pt``. The vocabulary is that of text, then the two marks, then that of speech."""

    text: int
    """Number of rows of the text table."""
    marks: int
    layers: str = LAYERS
    head: str = HEAD

    def parts(self, tensors: Mapping[str, Tensor]) -> Parts:
        """As :class:`paretone.models.families.training_layout.TensorNames` says."""
        body = {
            name.removeprefix(TRANSFORMER): value
            for name, value in tensors.items()
            if name.startswith(TRANSFORMER) and name != TEXT
        }
        embedding = torch.cat([tensors[TEXT], tensors[MARKS], tensors[SPEECH]])
        return Parts(body, embedding, tensors[HEAD], tensors[BIAS])

    def tensors(self, parts: Parts) -> dict[str, Tensor]:
        """As :class:`paretone.models.families.training_layout.TensorNames` says, the tied head of text left out, which
        nothing here reads."""
        text, marks, speech = parts.embedding.split(
            [self.text, self.marks, len(parts.embedding) - self.text - self.marks]
        )
        named = {TRANSFORMER + name: value for name, value in parts.transformer.items()}
        return named | {TEXT: text, MARKS: marks, SPEECH: speech, HEAD: parts.head, BIAS: parts.bias}

    def spoken(self, head: Tensor) -> Tensor:
        """All rows can be."""
        return head

    def row(self, text: Sequence[int], speech: Sequence[int], codes: int) -> TrainingRow:
        """All of the ``text``, then all of the ``speech``, of ``codes`` possible ones."""
        first = self.text + self.marks
        ids = (self.text + START, *text, self.text + TASK, *(first + code for code in speech))
        return TrainingRow(ids, (IGNORED,) * (1 + len(text)) + (*speech, codes + END))


def with_text_head(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """``tensors`` with the head of text, which is the table of text and which the official class asks for."""
    return {**tensors, TEXT_HEAD: tensors[TEXT]}
