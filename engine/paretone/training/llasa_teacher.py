"""LLaSA as what drafts and students learn from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from paretone.audio.prompt_resampling import resample
from paretone.audio.recording import read_recording
from paretone.errors import TextError
from paretone.models.catalogue import CatalogueEntry
from paretone.models.families.training_layout import HuggingFaceNames, TrainingRow
from paretone.models.llasa.checkpoint import TEXTS, LlasaFolder
from paretone.models.llasa.tokenizer import rendered, training_row
from paretone.models.llasa.voices import VoiceEncoder
from paretone.models.llasa.xcodec2 import SAMPLE_RATE
from paretone.models.load_request import LoadRequest
from paretone.paths import data_folder
from paretone.sampling.tokens import Nucleus
from paretone.training.follower import Follower
from paretone.training.teacher import OfficialTeacher
from paretone.training.token_network import TokenNetwork


class LlasaTeacher(OfficialTeacher):
    """Texts are kept as their bytes: several of them are one text with blanks between."""

    def __init__(self, entry: CatalogueEntry, root: Path, follower: Follower, vocoder: str = "") -> None:
        """Raises :class:`paretone.errors.CheckpointError`."""
        folder = LlasaFolder.read(root)
        self.vocoder = vocoder
        self._tokenizer = folder.tokenizer
        cpu = torch.device("cpu")
        request = LoadRequest(entry, root, "", cpu, follower.status, follower.check, vocoder)
        self._encoder = VoiceEncoder(request.vocoder_folder, data_folder() / "cache" / "xcodec2", cpu, several=True)
        plain = folder.plain(follower.check)
        codes = plain.tokens.codes
        vocabulary = torch.cat([plain.tables[TEXTS], plain.tokens.embedding[:codes]])
        # Official tables may have rows that no token has.
        vocabulary = torch.cat([vocabulary, vocabulary.new_zeros(folder.rows - len(vocabulary), vocabulary.shape[1])])
        network = TokenNetwork(
            plain.tokens.plain_transformer, vocabulary, plain.tokens.head, HuggingFaceNames(folder.spoken_rows)
        )
        options = entry.options_with()
        sampler = Nucleus(*(options[name] for name in ("temperature", "top_k", "top_p", "repetition_penalty")))
        super().__init__(entry, root, folder.shards.fingerprint(follower.check), network, codes, sampler)

    def row(self, text: np.ndarray, codes: Sequence[int]) -> TrainingRow:
        return training_row(self._tokenizer, text.tobytes().decode(), codes)

    def read(self, text: str) -> np.ndarray:
        text = " ".join(text.split())
        if not any(map(str.isalnum, text)):
            raise TextError("There is nothing to say in it.")
        rendered(text)
        return np.frombuffer(text.encode(), np.uint8)

    def joined(self, texts: Sequence[np.ndarray]) -> np.ndarray:
        return np.frombuffer(b" ".join(one.tobytes() for one in texts), np.uint8)

    def hear(self, audio: Path, follower: Follower) -> Sequence[int]:
        recording = read_recording(audio)
        samples = resample(torch.from_numpy(recording.samples), recording.sample_rate, SAMPLE_RATE)
        return self._encoder(samples.numpy(), follower.status, follower.check)

    def rest(self) -> None:
        super().rest()
        self._encoder.rest()
