"""The parts of a bundled language model around its network: coding, texts and voices, of natural speech or not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from engine.audio.mel import MelFrontEnd
from engine.errors import AudioError, CheckpointError
from engine.models.base import Voice
from engine.models.f5.passages import Prompt
from engine.models.f5.prompts import PromptReader
from engine.models.load_request import LoadRequest
from engine.models.minis.coding import Coding
from engine.models.minis.lm_mini.checkpoint import LmMiniFolder
from engine.models.minis.lm_mini.front_end import LmMiniFrontEnd
from engine.models.minis.lm_mini.layout import Layout
from engine.models.minis.lm_mini.speech_tokenizer import SpeechTokenizer
from engine.models.minis.lm_mini.voices import no_mean_mel
from engine.models.minis.mel_coding import KnownVoicesCoding
from engine.models.minis.natural.coding import natural_coding
from engine.models.minis.texts import NaturalTexts, TableTexts, Texts


@dataclass(frozen=True)
class LmMiniParts:
    """What a network needs to speak."""

    layout: Layout
    coding: Coding[SpeechTokenizer, Any]
    front_end: LmMiniFrontEnd


def read_parts(request: LoadRequest, folder: LmMiniFolder) -> LmMiniParts:
    """The parts in ``folder``, which is that of ``request``. Raises :class:`CheckpointError`."""
    layout = folder.layout()
    tokenizer, means = folder.tokenizer(request.device)
    if tokenizer.config.codes != layout.codes:
        raise CheckpointError(
            f"The speech tokenizer in {folder.root} has {tokenizer.config.codes} codes, but the model speaks "
            f"{layout.codes}: they do not belong together. Restore the model folder."
        )
    coding: Coding[SpeechTokenizer, Any]
    texts: Texts
    read: Callable[[Voice], Prompt] = PromptReader(MelFrontEnd(), True, layout.vocabulary.index)
    if layout.vocabulary.natural:
        coding, texts = natural_coding(request, tokenizer), NaturalTexts()
    else:
        coding, texts = KnownVoicesCoding(tokenizer, request.vocos(), means), TableTexts(folder.durations())
        read = _of_known(read, means, request.entry.title)
    return LmMiniParts(layout, coding, LmMiniFrontEnd(coding, texts, layout.vocabulary, read))


def _of_known(read: Callable[[Voice], Prompt], known: Mapping[str, Tensor], title: str) -> Callable[[Voice], Prompt]:
    """``read`` for voices that are ``known``; raises :class:`AudioError` for others."""

    def reading(voice: Voice) -> Prompt:
        if voice.id not in known:
            raise AudioError(no_mean_mel(voice.title or voice.id, title, tuple(known)))
        return read(voice)

    return reading
