"""Front end of a MegaTTS 3 of natural speech: any recording with its transcript through the vocoder's mel reader, texts
by the phones and lengths of natural speech."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from engine.errors import TextError
from engine.front_end.natural.reading import NaturalReader
from engine.front_end.phones import PhoneVocabulary
from engine.front_end.timed_phone import TimedPhone
from engine.models.base import Voice
from engine.models.f5.prompts import PromptReader
from engine.models.megatts3.config import LATENT_STRIDE
from engine.models.minis.megatts3_mini.front_end import TimedPhoneFrontEnd
from engine.models.minis.natural.grouped import GROUP_HOP, GroupedCodec
from engine.models.minis.texts import Spoken
from engine.setting.knobs import Values

DURATION_HOP = GROUP_HOP // LATENT_STRIDE
"""Samples of a frame of the duration clock."""


class NaturalMegaFrontEnd(TimedPhoneFrontEnd):
    """Makes voices and texts ready. A phone's number is the line of the vocabulary that it stands on, from one."""

    def __init__(self, codec: GroupedCodec, read_prompt: PromptReader, vocabulary: PhoneVocabulary) -> None:
        self._codec, self._vocabulary = codec, vocabulary
        self._reader = NaturalReader()
        super().__init__(read_prompt, self._reader, DURATION_HOP)

    def spoken(
        self, text: str, voice: Voice, options: Values, seed: int | None
    ) -> tuple[list[Spoken], tuple[str, ...]]:
        pieces, notes = self._reader.pieces(text, options["speed"], options["quick_start"], seed=seed)
        return [(piece.text, piece.phones) for piece in pieces], notes

    def ids(self, phones: Sequence[TimedPhone]) -> list[int]:
        unknown = next((name for name, _, _ in phones if name not in self._vocabulary.index), None)
        if unknown is not None:
            raise TextError(f"The model has no phone {unknown!r}; use those of its vocab.txt.")
        return (self._vocabulary.ids(name for name, _, _ in phones) + 1).tolist()

    def latents(self, mel: Tensor) -> Tensor:
        return self._codec.encode(mel).cpu()
