"""What CosyVoice 2's language model is trained on: whole sentences, or text and speech in turns.

``prepare_lm_input_target`` of ``llm/llm.py``, which draws for every sentence that is long enough whether it is laid out
in turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from engine.models.cosyvoice2.bistream import SPEECH_PART, TEXT_PART
from engine.models.cosyvoice2.language_model import END, FILL, START, TASK, LanguageModel

IGNORED = -1
"""Target of what is not predicted, and the value of embeddings behind the end of a row."""


@dataclass(frozen=True)
class TrainingRow:
    """One sentence: ``embedded`` (n, hidden), and the id that should follow each element, (n,) int64."""

    embedded: Tensor
    targets: Tensor


def whole_row(model: LanguageModel, text: Sequence[int], speech: Sequence[int]) -> TrainingRow:
    """All of the text, then all of the speech."""
    embedded = torch.cat(
        [
            model.marks[START : START + 1],
            model.embed_text(text),
            model.marks[TASK : TASK + 1],
            model.embed_speech(speech),
        ]
    )
    return TrainingRow(embedded, _targets([IGNORED] * (1 + len(text)) + [*speech, model.codes + END], embedded))


def can_take_turns(text: Sequence[int], speech: Sequence[int]) -> bool:
    """Whether there is speech enough for :func:`row_in_turns`."""
    return len(speech) * TEXT_PART > len(text) * SPEECH_PART


def row_in_turns(model: LanguageModel, text: Sequence[int], speech: Sequence[int]) -> TrainingRow:
    """Five of text, fifteen of speech, and so on; what is left of the text comes with all that is left of the speech.
    :func:`can_take_turns` must hold."""
    parts, targets = [model.marks[START : START + 1]], [IGNORED]
    turns = len(text) // TEXT_PART
    for turn in range(turns):
        said = speech[turn * SPEECH_PART : (turn + 1) * SPEECH_PART]
        parts += [model.embed_text(text[turn * TEXT_PART : (turn + 1) * TEXT_PART]), model.embed_speech(said)]
        targets += [IGNORED] * (TEXT_PART - 1) + [*said, model.codes + FILL]
    text, speech = text[turns * TEXT_PART :], speech[turns * SPEECH_PART :]
    parts += [model.embed_text(text), model.marks[TASK : TASK + 1], model.embed_speech(speech)]
    targets += [IGNORED] * len(text) + [*speech, model.codes + END]
    embedded = torch.cat(parts)
    return TrainingRow(embedded, _targets(targets, embedded))


def batch(rows: Sequence[TrainingRow]) -> tuple[Tensor, Tensor]:
    """``rows`` filled up to the longest: embeddings (rows, n, hidden) and targets (rows, n)."""
    embedded = pad_sequence([row.embedded for row in rows], batch_first=True, padding_value=IGNORED)
    return embedded, pad_sequence([row.targets for row in rows], batch_first=True, padding_value=IGNORED)


def _targets(ids: Sequence[int], like: Tensor) -> Tensor:
    return torch.tensor(ids, dtype=torch.long, device=like.device)
