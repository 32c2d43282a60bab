"""The official way of reading: characters and pinyin for ids, UTF-8 bytes for the duration."""

from __future__ import annotations

import torch

from paretone.models.f5.chunks import maximum_bytes, split, split_for_streaming
from paretone.models.f5.duration import sampled_frames, total_frames
from paretone.models.f5.passages import Passage, Passages, Prompt
from paretone.models.f5.text import (
    Vocabulary,
    encode,
    finished_transcript,
    require_readable,
    require_speakable,
    spaced_transcript,
)


class CharacterFrontEnd:
    """Reads as the official package does. ``vocabulary`` is ``None`` for the byte tokenizer."""

    def __init__(self, vocabulary: Vocabulary | None, tokenizer: str) -> None:
        self._vocabulary = vocabulary
        self._tokenizer = tokenizer

    def passages(self, text: str, prompt: Prompt, speed: float, quick_start: bool, seed: int | None = None) -> Passages:
        """Cut and encode ``text`` as the official package does; for a ``quick_start`` with a shorter first passage, and
        with clauses broken that are too long for one passage."""
        whole = encode(text, self._vocabulary, self._tokenizer)
        require_speakable(text, whole)
        finished = finished_transcript(prompt.voice.transcript)
        transcript = spaced_transcript(finished)
        require_readable(finished, encode(finished, self._vocabulary, self._tokenizer))
        budget = maximum_bytes(finished, prompt.seconds, speed)
        pieces = split_for_streaming(text, budget, break_long=True) if quick_start else split(text, budget)
        passages = []
        for piece in pieces:
            ids = encode(transcript + piece, self._vocabulary, self._tokenizer).ids
            requested = total_frames(prompt.frames, transcript, piece, speed)
            frames = sampled_frames(requested, prompt.mel.shape[1], len(ids))
            passages.append(Passage(piece, torch.tensor([ids]), frames))
        return Passages(tuple(passages), (whole.note,) if whole.note else ())
