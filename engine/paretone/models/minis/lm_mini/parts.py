"""The parts of a bundled language model around its network: coding, texts and voices."""

from __future__ import annotations

from dataclasses import dataclass

from paretone.audio.mel import MelFrontEnd
from paretone.errors import CheckpointError
from paretone.models.f5.front_end import PromptReader
from paretone.models.load_request import LoadRequest
from paretone.models.minis.lm_mini.checkpoint import LmMiniFolder
from paretone.models.minis.lm_mini.front_end import LmMiniFrontEnd
from paretone.models.minis.lm_mini.layout import Layout
from paretone.models.minis.lm_mini.speech_tokenizer import SpeechTokenizer
from paretone.models.minis.natural_coding import NaturalCoding, natural_coding
from paretone.models.minis.texts import Texts


@dataclass(frozen=True)
class LmMiniParts:
    """What a network needs to speak."""

    layout: Layout
    coding: NaturalCoding[SpeechTokenizer]
    front_end: LmMiniFrontEnd


def read_parts(request: LoadRequest, folder: LmMiniFolder) -> LmMiniParts:
    """The parts in ``folder``, which is that of ``request``. Raises :class:`CheckpointError`."""
    layout = folder.layout()
    tokenizer = folder.tokenizer(request.device)
    if tokenizer.config.codes != layout.codes:
        raise CheckpointError(
            f"The speech tokenizer in {folder.root} has {tokenizer.config.codes} codes, but the model speaks "
            f"{layout.codes}: they do not belong together. Restore the model folder."
        )
    coding = natural_coding(request, tokenizer)
    read_prompt = PromptReader(MelFrontEnd(), True, layout.vocabulary.index)
    return LmMiniParts(layout, coding, LmMiniFrontEnd(coding, Texts(), layout.vocabulary, read_prompt))
