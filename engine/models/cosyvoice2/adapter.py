"""A CosyVoice 2 that speaks: what :class:`engine.models.families.language.LanguageSpeech` leaves to a model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch

from engine import device as devices
from engine.models.base import ModelInfo, Observer, Voice
from engine.models.cosyvoice2.acoustic_config import TOKEN_RATE
from engine.models.cosyvoice2.checkpoint import OfficialFolder
from engine.models.cosyvoice2.config import LEAST_TOKENS, MOST_TOKENS
from engine.models.cosyvoice2.hift import Hift
from engine.models.cosyvoice2.language_model import LanguageModel, PromptIds, Ratios
from engine.models.cosyvoice2.passages import CosyPassage, CosyPassages, CosyPrompt, prepare
from engine.models.cosyvoice2.prompts import VoicePrompts
from engine.models.cosyvoice2.streaming import CosyDecoder
from engine.models.cosyvoice2.token_to_mel import AcousticPrompt, TokenToMel
from engine.models.cosyvoice2.tokenizer import TextTokenizer
from engine.models.families.language import LanguageSpeech
from engine.models.families.language_network import LanguageNetwork
from engine.sampling.autoregressive import Request
from engine.sampling.tokens import RepetitionAware, TokenSampler
from engine.setting.knobs import Values

TEXT, MARKS = "text", "marks"
"""Names of the tables that prompts are embedded with."""
RATIOS = Ratios(LEAST_TOKENS, MOST_TOKENS)
WARM_UP_TOKENS = 4


class CosySpeech(LanguageSpeech):
    """A loaded CosyVoice 2: language model, flow, vocoder, and what makes voices and texts ready."""

    def __init__(
        self,
        info: ModelInfo,
        folder: OfficialFolder,
        model: LanguageModel,
        flow: TokenToMel,
        vocoder: Hift,
        tokenizer: TextTokenizer,
        prompts: VoicePrompts,
    ) -> None:
        """``model`` is that of ``folder``, plain; only an optimised one is kept."""
        super().__init__(
            info, network_of(model), TOKEN_RATE, lambda student: network_of(folder.student(student)), folder.draft
        )
        self._flow, self._vocoder = flow, vocoder
        self._tokenizer, self._prompts = tokenizer, prompts

    @torch.inference_mode()
    def _warm_up(self, network: LanguageNetwork) -> None:
        request = model_of(network).request(PromptIds((0,) * WARM_UP_TOKENS), (0,), RATIOS)
        tokens, length = network.tokens, request.first_position
        tokens.reach(length + 1)
        cache = tokens.cache(length + 1)
        tokens.transformer(request.embedded, cache, request.positions)
        tokens.logits(
            tokens.transformer(tokens.embed(torch.zeros(1, 1, dtype=torch.long)), cache, request.positions[-1:] + 1)
        )
        voice = torch.zeros(1, 1, dtype=torch.long), torch.zeros(1, 2, self._flow.config.bands)
        prompt = AcousticPrompt(*voice, torch.ones(1, self._flow.config.speaker_width))
        decoder = CosyDecoder(self._flow, self._vocoder, prompt)
        decoder.push([0] * WARM_UP_TOKENS)
        decoder.finish()
        devices.synchronise(tokens.device)

    def _ready_voice(self, voice: Voice, observer: Observer) -> None:
        observer.status("Listening to the recording …")
        self._prompts(Path(voice.audio), observer.check)

    def _prepare(
        self, text: str, voice: Voice, options: Values, check: Callable[[], None], seed: int | None = None
    ) -> tuple[CosyPrompt, CosyPassages]:
        heard = self._prompts(Path(voice.audio), check)
        mode, instruction = str(options["mode"]), str(options["instruction"])
        return prepare(text, mode, instruction, voice, heard, self._tokenizer)

    def _request(self, network: LanguageNetwork, passage: CosyPassage, prompt: CosyPrompt, options: Values) -> Request:
        return model_of(network).request(prompt.ids, passage.ids, RATIOS)

    def _token_sampler(self, passage: CosyPassage, prompt: CosyPrompt, options: Values) -> TokenSampler:
        return RepetitionAware(str(options["repeats"]), float(options["top_p"]), int(options["top_k"]))

    def _decoder(self, prompt: CosyPrompt, seed: int, options: Values) -> CosyDecoder:
        speed, at_once = float(options["speed"]), not options["stream"]
        return CosyDecoder(self._flow, self._vocoder, prompt.voice.acoustic, seed, speed, at_once)


def network_of(model: LanguageModel) -> LanguageNetwork:
    """``model`` for decoding."""
    return LanguageNetwork(model.tokens.optimised(), {TEXT: model.text, MARKS: model.marks})


def model_of(network: LanguageNetwork) -> LanguageModel:
    """The same as a language model with its layout."""
    return LanguageModel(network.tables[TEXT], network.tables[MARKS], network.tokens)
