"""The bundled language model that speaks: what :class:`engine.models.families.language.LanguageSpeech` leaves to a
model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from engine import device as devices
from engine.audio.mel import MelFrontEnd
from engine.models.base import ModelInfo, Observer, Voice
from engine.models.families.language import LanguageSpeech
from engine.models.families.language_network import LanguageNetwork, ReadDraft, ReadStudent
from engine.models.minis.frames import HOP, SAMPLE_RATE
from engine.models.minis.lm_mini.checkpoint import TEXT
from engine.models.minis.lm_mini.decoding import MelTokenDecoder
from engine.models.minis.lm_mini.front_end import LmMiniFrontEnd, LmMiniPassage, LmMiniPassages, LmMiniPrompt
from engine.models.minis.lm_mini.layout import Layout, positions
from engine.models.minis.lm_mini.speech_tokenizer import SpeechTokenizer
from engine.models.networks.vocos import Vocos
from engine.sampling.autoregressive import Request, decode
from engine.sampling.tokens import Greedy, Nucleus, TokenSampler, Uniforms
from engine.setting.knobs import Values

SHORTEST = 0.5
"""Share of the expected tokens before which speech cannot end."""
SPARE = 20
"""Tokens beyond the expected ones after which a passage is taken to have run away."""
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
        tokenizer: SpeechTokenizer,
        vocoder: Vocos,
        front_end: LmMiniFrontEnd,
        layout: Layout,
        mean_mel: Tensor,
        read_student: ReadStudent,
        read_draft: ReadDraft,
    ) -> None:
        """``mean_mel`` (bands,) is that of any voice, to warm up with."""
        rate = SAMPLE_RATE / (HOP * tokenizer.config.stride)
        super().__init__(info, network, rate, read_student, read_draft)
        self._tokenizer, self._vocoder, self._front_end, self._layout = tokenizer, vocoder, front_end, layout
        self._mean_mel = mean_mel

    @torch.inference_mode()
    def _warm_up(self, network: LanguageNetwork) -> None:
        passage = LmMiniPassage("", torch.zeros(WARM_UP_TOKENS, dtype=torch.long).numpy())
        prompt = LmMiniPrompt(passage.phones, (0,) * WARM_UP_TOKENS, self._mean_mel)
        request = self._request(network, passage, prompt, Values())
        decoder = self._decoder(prompt, 0, Values())
        for cycle in decode(network.tokens, request, Nucleus(top_k=25), Uniforms(0)):
            decoder.push(cycle.tokens)
        decoder.finish()
        devices.synchronise(self._device)

    @torch.inference_mode()
    def copied(self, samples: np.ndarray, voice: Voice) -> np.ndarray:
        """Copy of speech (n,) of ``voice`` through tokenizer and vocoder, float32 at the model's rate."""
        mel = MelFrontEnd()(torch.from_numpy(samples)).to(self._device)
        codes = self._tokenizer.encode(mel)[0].tolist()
        prompt = self._front_end.prompt(voice)
        return self._decoder(prompt, 0, Values()).whole(codes).samples

    def _prepare(
        self, text: str, voice: Voice, options: Values, check: Callable[[], None], seed: int | None = None
    ) -> tuple[LmMiniPrompt, LmMiniPassages]:
        return self._front_end(text, voice, options, check)

    def _ready_voice(self, voice: Voice, observer: Observer) -> None:
        self._front_end.prompt(voice)

    def _request(
        self, network: LanguageNetwork, passage: LmMiniPassage, prompt: LmMiniPrompt, options: Values
    ) -> Request:
        layout, table = self._layout, network.tables[TEXT]
        text = [*prompt.phones.tolist(), *passage.phones.tolist(), layout.end_of_text]
        speech = [layout.start_of_speech, *(code + layout.first_code for code in prompt.codes)]
        ids = torch.tensor([text + speech], device=table.device)
        return Request(
            torch.nn.functional.embedding(ids, table),
            positions(len(text), len(prompt.codes)).to(table.device),
            first_position=len(prompt.codes) + 1,
            minimum=round(SHORTEST * passage.expected),
            maximum=passage.expected + SPARE,
            shared=len(prompt.phones),
        )

    def _draft_prompt(self, prompt: LmMiniPrompt) -> LmMiniPrompt:
        tokens = round(DRAFT_PROMPT_SECONDS * self._token_rate)
        return replace(prompt, phones=prompt.phones[-tokens:], codes=prompt.codes[-tokens:])

    def _token_sampler(self, passage: LmMiniPassage, prompt: LmMiniPrompt, options: Values) -> TokenSampler:
        if options["temperature"] == 0:
            return Greedy()
        return Nucleus(
            float(options["temperature"]),
            int(options["top_k"]),
            float(options["top_p"]),
            float(options["repetition_penalty"]),
            prompt.codes,
        )

    def _decoder(self, prompt: LmMiniPrompt, seed: int, options: Values) -> MelTokenDecoder:
        return MelTokenDecoder(self._tokenizer, self._vocoder, prompt.mean_mel)
