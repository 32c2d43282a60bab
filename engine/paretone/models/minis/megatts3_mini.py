"""Front end of the bundled MegaTTS 3: recordings through the vocoder's mel reader, texts in the phones and lengths of
natural speech."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from paretone.errors import TextError
from paretone.front_end.phones import PhoneVocabulary, TimedPhone
from paretone.front_end.pronunciations import HowToRead
from paretone.front_end.reading import NaturalReader
from paretone.last_used import VOICES, LastUsed
from paretone.measure.loudness import integrated_loudness
from paretone.models.base import Voice
from paretone.models.f5.config import SAMPLE_RATE
from paretone.models.f5.front_end import Prompt, PromptReader
from paretone.models.families.passages import Passages
from paretone.models.files.checkpoints import loaded_strictly, read_float_weights, shapes_of
from paretone.models.megatts3.checkpoint import TRANSFORMER
from paretone.models.megatts3.config import LATENT_STRIDE, DiTConfig
from paretone.models.megatts3.dit import MegaDiT
from paretone.models.megatts3.phones import ENGLISH_TONE, MegaPassage, MegaPrompt, Timed, durations_of_phones
from paretone.models.minis.natural_vocoder import GROUP_HOP, GroupedCodec
from paretone.models.minis.speaking import WEIGHTS, MiniFolder, phones_of_prompt
from paretone.setting.knobs import Values


def phones_of_frames(phones: Sequence[TimedPhone], frames: int, rate: int, hop: int) -> np.ndarray:
    """(frames,) int64, ``mel2ph`` of the official code: the index, from one, of the phone at the middle of each frame,
    ``(i + 0.5) · hop / rate`` seconds. Frames after the last phone get the last phone."""
    ends = np.array([end for _, _, end in phones])
    middles = (np.arange(frames) + 0.5) * hop / rate
    return np.searchsorted(ends, middles, side="right").clip(max=len(phones) - 1) + 1


VOCABULARY = "vocab.txt"


@dataclass(frozen=True)
class MegaMiniFolder(MiniFolder):
    @classmethod
    def is_at(cls, root: Path) -> bool:
        """Whether ``root`` has this layout and not the official one."""
        return cls(root).weights_path.is_file()

    @property
    def weights_path(self) -> Path:
        return self.root / TRANSFORMER / WEIGHTS

    def vocabulary(self) -> PhoneVocabulary:
        return PhoneVocabulary.load(self.root / VOCABULARY)

    def backbone(self) -> MegaDiT:
        where = str(self.weights_path)
        weights = read_float_weights(self.weights_path, self.check)
        config = DiTConfig.from_shapes(shapes_of(weights), where)
        return loaded_strictly(lambda: MegaDiT(config), weights, where)


DURATION_HOP = GROUP_HOP // LATENT_STRIDE
"""Samples per frame of the duration clock."""


class MegaMiniFrontEnd:
    """Prepares voices and texts. A phone's number is its line in the vocabulary, from one."""

    def __init__(self, codec: GroupedCodec, read_prompt: PromptReader, vocabulary: PhoneVocabulary) -> None:
        self._codec, self._read_prompt, self._vocabulary = codec, read_prompt, vocabulary
        self._reader = NaturalReader()
        self._prompts: LastUsed[MegaPrompt] = LastUsed(VOICES)

    def __call__(
        self, text: str, voice: Voice, options: Values, check: object, seed: int | None = None
    ) -> tuple[MegaPrompt, Passages[MegaPassage]]:
        """See :class:`paretone.models.megatts3.adapter.FrontEnd`; too fast to need cancelling."""
        read = self._read_prompt(voice)
        prompt = self._prompts.of(read, lambda: self._encoded(read))
        pieces, notes = self._reader.pieces(text, HowToRead.of(options, seed))
        passages = tuple(
            MegaPassage.of(piece.text, prompt.spoken, self._timed(piece.phones), piece.phones) for piece in pieces
        )
        return prompt, Passages(passages, notes)

    @torch.inference_mode()
    def _encoded(self, read: Prompt) -> MegaPrompt:
        latents = self._codec.encode(read.mel[:, : read.frames]).cpu()
        phones, notes = phones_of_prompt(read, self._reader)
        timed = self._timed(phones, latents.shape[1])
        own = integrated_loudness(read.level.restored(read.samples).numpy(), SAMPLE_RATE)
        return MegaPrompt(latents, timed, own.lufs, read.seconds, notes)

    def _timed(self, phones: Sequence[TimedPhone], latents: int | None = None) -> Timed:
        """``phones`` by number over a number of latents, by default enough to cover them."""
        if latents is None:
            latents = -(-round(phones[-1][2] * SAMPLE_RATE / DURATION_HOP) // LATENT_STRIDE)
        places = phones_of_frames(phones, latents * LATENT_STRIDE, SAMPLE_RATE, DURATION_HOP)
        durations = durations_of_phones(places, len(phones))
        names = [name for name, _, _ in phones]
        unknown = next((name for name in names if name not in self._vocabulary.index), None)
        if unknown is not None:
            raise TextError(f"The model has no phone {unknown!r}; use those of its vocab.txt.")
        ids = (self._vocabulary.ids(names) + 1).tolist()
        return Timed(tuple(ids), (ENGLISH_TONE,) * len(phones), tuple(durations.tolist()))
