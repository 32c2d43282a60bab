"""The bundled language model that speaks: what :class:`paretone.models.families.language.LanguageSpeech` leaves to a
model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch

from paretone import device as devices
from paretone.models.base import ModelInfo, Voice
from paretone.models.families.language import LanguageSpeech
from paretone.models.families.language_network import LanguageNetwork, ReadDraft, ReadStudent
from paretone.models.families.official_ids import OfficialIds
from paretone.models.minis.lm_mini.checkpoint import TEXT
from paretone.models.minis.lm_mini.decoding import GatheringDecoder
from paretone.models.minis.lm_mini.front_end import LmMiniPassage, LmMiniPassages, LmMiniPrompt
from paretone.models.minis.lm_mini.layout import positions
from paretone.models.minis.lm_mini.parts import LmMiniParts
from paretone.models.minis.natural.coding import NOBODY
from paretone.observer import Observer
from paretone.sampling.autoregressive import Request, decode
from paretone.sampling.tokens import Greedy, Nucleus, TokenSampler, Uniforms
from paretone.setting.knobs import Values

SHORTEST = 0.5
"""Share of the expected tokens before which speech cannot end."""
SPARE = 2
"""Room after the expected tokens: for a drafted end of speech, and for the token that would follow it."""
WARM_UP_TOKENS = 40
DRAFT_PROMPT_SECONDS = 0.7
"""Seconds at the end of the voice's recording that a draft reads: more than half a second does not raise its
acceptance."""


class LmMiniSpeech(LanguageSpeech):
    """The loaded bundled language model."""

    def __init__(
        self,
        info: ModelInfo,
        network: LanguageNetwork,
        parts: LmMiniParts,
        read_student: ReadStudent,
        read_draft: ReadDraft,
    ) -> None:
        super().__init__(info, network, 1 / parts.coding.token_seconds, read_student, read_draft)
        self._coding, self._front_end, self._layout = parts.coding, parts.front_end, parts.layout

    @torch.inference_mode()
    def _warm_up(self, network: LanguageNetwork) -> None:
        passage = LmMiniPassage("", torch.zeros(WARM_UP_TOKENS, dtype=torch.long).numpy())
        prompt = LmMiniPrompt(passage.phones, (0,) * WARM_UP_TOKENS, NOBODY)
        request = self._request(network, passage, prompt, Values())
        decoder = self._decoder(prompt, 0, Values())
        for cycle in decode(network.tokens, request, Nucleus(top_k=25), Uniforms(0)):
            decoder.push(cycle.tokens)
        decoder.finish()
        devices.synchronise(self._device)

    def copied(self, samples: np.ndarray, voice: Voice) -> np.ndarray:
        """Copy of speech (n,) of ``voice`` through the tokenizer, float32 at the model's rate."""
        return self._coding.copied(samples, self._front_end.prompt(voice).who)

    def _prepare(
        self, text: str, voice: Voice, options: Values, check: Callable[[], None], seed: int | None = None
    ) -> tuple[LmMiniPrompt, LmMiniPassages]:
        return self._front_end(text, voice, options, check, seed)

    def _ready_voice(self, voice: Voice, observer: Observer) -> None:
        self._front_end.prompt(voice)

    def _request(
        self, network: LanguageNetwork, passage: LmMiniPassage, prompt: LmMiniPrompt, options: Values
    ) -> Request:
        table, text = network.tables[TEXT], len(prompt.phones) + len(passage.phones) + 1
        ids = torch.tensor([self._official_prompt(passage, prompt)], device=table.device)
        return Request(
            torch.nn.functional.embedding(ids, table),
            positions(text, len(prompt.codes)).to(table.device),
            first_position=len(prompt.codes) + 1,
            minimum=round(SHORTEST * passage.expected),
            maximum=passage.expected + SPARE,
            shared=len(prompt.phones),
            # Every token has its phone: after the last one there is nothing left to say.
            length=passage.expected,
        )

    @property
    def official_ids(self) -> OfficialIds:
        layout = self._layout
        size = len(self.own.tables[TEXT])
        return OfficialIds(size, layout.first_code, layout.codes, (layout.end_of_speech,))

    def _official_prompt(self, passage: LmMiniPassage, prompt: LmMiniPrompt) -> tuple[int, ...]:
        layout = self._layout
        text = (*prompt.phones.tolist(), *passage.phones.tolist(), layout.end_of_text)
        return (*text, layout.start_of_speech, *(code + layout.first_code for code in prompt.codes))

    def _draft_prompt(self, prompt: LmMiniPrompt) -> LmMiniPrompt:
        tokens = round(DRAFT_PROMPT_SECONDS * self._token_rate)
        return replace(prompt, phones=prompt.phones[-tokens:], codes=prompt.codes[-tokens:])

    def _ends(self, passages: Sequence[LmMiniPassage]) -> Sequence[int]:
        return [one.end for one in passages]

    def _token_sampler(self, passage: LmMiniPassage, prompt: LmMiniPrompt, options: Values) -> TokenSampler:
        temperature, top_k = float(options["temperature"]), int(options["top_k"])
        penalty = float(options["repetition_penalty"])
        if temperature == 0:
            if penalty == 1:
                return Greedy()
            temperature, top_k = 1.0, 1
        return Nucleus(temperature, top_k, float(options["top_p"]), penalty, prompt.codes)

    def _decoder(self, prompt: LmMiniPrompt, seed: int, options: Values) -> GatheringDecoder:
        return GatheringDecoder(self._coding.stream(prompt.who), self._coding.device)
