"""Speech tokens for a text that is still being written: five of text, then fifteen of speech, and so on.

``inference_bistream`` of ``llm/llm.py``. Between two parts the model itself calls for more text, at the latest where
training has put the call.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Sequence

import torch
from torch import Tensor

from engine.errors import TextError
from engine.models.cosyvoice2.language_model import END, FILL, START, TASK, LanguageModel, PromptIds
from engine.sampling.tokens import TokenSampler, draw

TEXT_PART, SPEECH_PART = 5, 15
LONGEST = 8192
"""Places of text and speech together."""


def bistream(
    model: LanguageModel,
    prompt: PromptIds,
    text: Iterable[Sequence[int]],
    sampler: TokenSampler,
    uniforms: Callable[[], float],
    check: Callable[[], None] = lambda: None,
) -> Generator[int, None, None]:
    """Codes for ``text``, whose tokens come in parts of any length; each part is asked for when it is needed.

    Raises :class:`TextError` behind :data:`LONGEST` places, and what ``check`` raises.
    """
    reading = _Reading(model, sampler, uniforms, check)
    waiting, spoken = list(prompt.text), list(prompt.speech)
    # Where training put the call for more text, counted from the end of the prompt's speech.
    call = SPEECH_PART - len(spoken) % SPEECH_PART
    for part in text:
        waiting += part
        while spoken and len(waiting) >= TEXT_PART:
            reading.append(model.embed_text(waiting[:TEXT_PART]), model.embed_speech(spoken[:SPEECH_PART]))
            del waiting[:TEXT_PART], spoken[:SPEECH_PART]
        if spoken:
            continue
        if reading.called or reading.fresh:
            if len(waiting) < TEXT_PART:
                continue
            reading.append(model.embed_text(waiting[:TEXT_PART]))
            del waiting[:TEXT_PART]
        while not reading.called:
            due = len(reading.history) == call
            token = reading.next(forced=model.codes + FILL if due else None, allowed=FILL)
            if token >= model.codes:
                call = len(reading.history) + SPEECH_PART
            else:
                yield token
    if reading.called:
        # Upstream reads the last token once more here, behind itself.
        reading.append(reading.last)
    reading.append(model.embed_text(waiting), model.marks[TASK : TASK + 1])
    while (token := reading.next(allowed=END)) < model.codes:
        yield token


class _Reading:
    """What the model has read and said so far."""

    def __init__(
        self,
        model: LanguageModel,
        sampler: TokenSampler,
        uniforms: Callable[[], float],
        check: Callable[[], None],
    ) -> None:
        self._model, self._sampler, self._uniforms, self._check = model, sampler, uniforms, check
        self._cache = model.tokens.cache(LONGEST)
        self._unread = model.marks[START : START + 1]
        self.last = self._unread[:0]
        """What was read last."""
        self.history: list[int] = []
        """All tokens, the calls for text included."""
        self.fresh = True
        """Whether nothing but the first mark is there."""
        self.called = False
        """Whether the model waits for text."""

    def append(self, *embedded: Tensor) -> None:
        """Put (n, hidden) behind what is not read yet."""
        self._unread = torch.cat([self._unread, *embedded])
        self.fresh = self.called = False

    @torch.inference_mode()
    def next(self, forced: int | None = None, allowed: int = END) -> int:
        """Read on and draw the next token, of the stop ids only the ``allowed`` one; or take the ``forced`` one."""
        self._check()
        tokens = self._model.tokens
        if self._cache.length + len(self._unread) > self._cache.capacity:
            raise TextError(f"Text and speech are longer than {LONGEST} tokens; end the text earlier.")
        start = self._cache.length
        positions = torch.arange(start, start + len(self._unread), device=tokens.device)
        logits = tokens.logits(tokens.transformer(self._unread[None], self._cache, positions)[0, -1:])
        self.last, self._unread = self._unread[-1:], self._unread[:0]
        for stop in range(tokens.rows - tokens.codes):
            if stop != allowed:
                logits[:, tokens.codes + stop] = -math.inf
        token = forced
        if token is None:
            token = draw(self._sampler.probabilities(logits, self.history)[0], self._uniforms())
        self.history.append(token)
        self.called = token == tokens.codes + FILL
        if token < tokens.codes:
            self._unread = self._model.embed_speech([token])
        return token
