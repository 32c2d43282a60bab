"""LLaSA: implementation of :class:`paretone.models.families.language.LanguageSpeech`.

A text is cut into passages, because prompt and speech together must not exceed the training length. Each passage
continues the reference again.
"""

from __future__ import annotations

import torch

from paretone import device as devices
from paretone.errors import TextError
from paretone.front_end.speakable import spoken_chunks
from paretone.models.base import ModelInfo, OfficialIds, Voice
from paretone.models.families.language import LanguageSpeech
from paretone.models.families.language_network import LanguageNetwork
from paretone.models.families.passages import Passages, TokenPassage
from paretone.models.llasa.checkpoint import TEXTS, LlasaFolder, load_decoder, optimised, parameters
from paretone.models.llasa.config import CONTEXT, LONGEST_PASSAGE, TOKEN_RATE
from paretone.models.llasa.tokenizer import rendered
from paretone.models.llasa.voices import LlasaPrompt, VoiceEncoder, VoiceReader
from paretone.models.llasa.xcodec2 import SAMPLE_RATE, Window, WindowedDecoder, XCodec2Decoder
from paretone.models.loading import LoadRequest
from paretone.observer import SILENT, Check, Observer
from paretone.paths import data_folder
from paretone.sampling.autoregressive import Request
from paretone.sampling.tokens import Nucleus, TokenSampler
from paretone.setting.knobs import Values
from paretone.setting.plan import LanguagePlan

WARM_UP_TOKENS = 8
ROOM_FOR_SPEECH = 0.6
"""Largest expected share of the free context for a passage, because speech may take longer."""


class LlasaSpeech(LanguageSpeech):
    def __init__(
        self, info: ModelInfo, folder: LlasaFolder, network: LanguageNetwork, codec: XCodec2Decoder, voices: VoiceReader
    ) -> None:
        """``network`` is the plain one of ``folder``; only its optimised form is kept."""
        super().__init__(info, optimised(network), TOKEN_RATE, folder.student, folder.draft)
        self._tokenizer, self._rows, self._codec, self._voices = folder.tokenizer, folder.rows, codec, voices

    @torch.inference_mode()
    def first_run(self, network: LanguageNetwork) -> None:
        tokens = network.tokens
        cache = tokens.cache(WARM_UP_TOKENS + 1)
        embedded = tokens.embed(torch.zeros(1, WARM_UP_TOKENS, dtype=torch.long))
        hidden = tokens.transformer(embedded, cache)
        tokens.logits(tokens.transformer(hidden[:, -1:], cache))
        self._codec.decode(torch.zeros(1, WARM_UP_TOKENS, dtype=torch.long, device=tokens.device))
        devices.synchronise(tokens.device)

    def make_ready(self, plan: LanguagePlan, observer: Observer = SILENT, voice: Voice | None = None) -> None:
        # Without cloning, neither the voice nor its encoder is needed.
        super().make_ready(plan, observer, voice if plan.options["clone"] else None)

    def ready_voice(self, voice: Voice, observer: Observer) -> None:
        self._voices(voice, observer.check, observer.status)

    def prepare(
        self, text: str, voice: Voice, options: Values, check: Check, seed: int | None = None
    ) -> tuple[LlasaPrompt, Passages[TokenPassage]]:
        prompt = self._voices(voice, check) if options["clone"] else LlasaPrompt()
        speaker = str(options["speaker"])
        fixed = len(self._tokenizer.ids(rendered("", prompt.transcript, speaker=speaker))) + len(prompt.codes)
        budget = min(LONGEST_PASSAGE, ROOM_FOR_SPEECH * (CONTEXT - fixed) / TOKEN_RATE)
        pieces = spoken_chunks(text, prompt.seconds, budget)
        return prompt, Passages(tuple(self._passage(piece, prompt, speaker) for piece in pieces))

    def _passage(self, text: str, prompt: LlasaPrompt, speaker: str = "") -> TokenPassage:
        expected = max(1, round(prompt.seconds(text) * TOKEN_RATE))
        ids = tuple(self._tokenizer.ids(rendered(text, prompt.transcript, speaker=speaker)))
        if len(ids) + len(prompt.codes) >= CONTEXT:
            raise TextError(f"{text[:40]!r} is too much text for LLaSA at once; add full stops.")
        return TokenPassage(text, expected, ids)

    def request(self, network: LanguageNetwork, passage: TokenPassage, prompt: LlasaPrompt, options: Values) -> Request:
        texts, tokens = network.tables[TEXTS], network.tokens
        embedded = texts[torch.tensor(passage.ids, device=texts.device)]
        if prompt.codes:
            embedded = torch.cat([embedded, tokens.embed(prompt.codes)])
        length = len(embedded)
        return Request(embedded[None], torch.arange(length, device=texts.device), length, 0, CONTEXT - length)

    @property
    def official_ids(self) -> OfficialIds:
        tokenizer = self._tokenizer
        return OfficialIds(self._rows, tokenizer.first_code, tokenizer.codes, (tokenizer.end,))

    def official_prompt(self, passage: TokenPassage, prompt: LlasaPrompt) -> tuple[int, ...]:
        return (*passage.ids, *(code + self._tokenizer.first_code for code in prompt.codes))

    def token_sampler(self, passage: TokenPassage, prompt: LlasaPrompt, options: Values) -> TokenSampler:
        return Nucleus.of(options, prompt.codes)

    def decoder(self, prompt: LlasaPrompt, seed: int, options: Values) -> WindowedDecoder:
        window = Window(options["stream_codes"], options["stream_context"])
        return WindowedDecoder(self._codec, prompt.codes, window)


def load_llasa(request: LoadRequest) -> LlasaSpeech:
    """Load language model, tokenizer and XCodec2's decoder; the voice encoder is loaded with the first new voice.
    Raises :class:`CheckpointError`."""
    device = request.device
    request.require_folder("config.json and tokenizer.json")
    dtype = devices.computed_in(device)
    folder = LlasaFolder.read(request.place, dtype, device)
    request.status("Reading XCodec2 …")
    codec = load_decoder(request.vocoder_folder, device, request.check)
    encoder = VoiceEncoder(request.vocoder_folder, data_folder() / "cache" / "xcodec2", device)
    request.status(f"Reading {request.entry.title} …")
    network = folder.plain(request.check)
    info = request.info(
        checkpoint=folder.shards.where,
        fingerprint=folder.shards.fingerprint(request.check),
        precision=devices.name_of(dtype),
        sample_rate=SAMPLE_RATE,
        layers=folder.config.layers,
        branches=1,
        parameters=parameters(network),
        text_front_end="llama",
        precisions=(devices.name_of(dtype),),
    )
    return LlasaSpeech(info, folder, network, codec, VoiceReader(encoder, folder.tokenizer.codes))
