"""CosyVoice 2 as what drafts and students learn from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from paretone.audio.prompt_resampling import resample
from paretone.audio.recording import read_recording
from paretone.errors import TextError
from paretone.models.catalogue import CatalogueEntry
from paretone.models.cosyvoice2.checkpoint import OfficialFolder
from paretone.models.cosyvoice2.language_model import CosyNames
from paretone.models.cosyvoice2.speech_tokenizer import ENCODER_RATE
from paretone.models.cosyvoice2.text import normalised, read_text
from paretone.models.families.training_layout import TrainingRow
from paretone.models.files.checkpoints import fingerprint
from paretone.sampling.tokens import RepetitionAware
from paretone.training.follower import Follower
from paretone.training.teacher import OfficialTeacher
from paretone.training.token_network import TokenNetwork


class CosyTeacher(OfficialTeacher):
    """Texts are kept as their ids; a joined one is a transcript and the text after it, as in zero-shot."""

    def __init__(self, entry: CatalogueEntry, root: Path, follower: Follower) -> None:
        """Raises :class:`paretone.errors.CheckpointError`."""
        folder = OfficialFolder(root, check=follower.check)
        folder.require_parts()
        self._tokenizer, self._encoder = folder.tokenizer(), folder.recording_encoder()
        model = folder.language_model()
        self._names = CosyNames(len(model.text), len(model.marks))
        tokens = model.tokens
        vocabulary = torch.cat([model.text, model.marks, tokens.embedding])
        network = TokenNetwork(tokens.plain_transformer, vocabulary, tokens.head, self._names, tokens.bias)
        options = entry.options_with()
        sampler = RepetitionAware(str(options["repeats"]), float(options["top_p"]), int(options["top_k"]))
        base = fingerprint(folder.checkpoint, follower.check)
        super().__init__(entry, root, base, network, model.codes, sampler)

    def row(self, text: np.ndarray, codes: Sequence[int]) -> TrainingRow:
        return self._names.row(text.tolist(), codes, self.codes)

    def read(self, text: str) -> np.ndarray:
        pieces = read_text(text, self._tokenizer.count).pieces
        written = pieces[0] if len(pieces) == 1 else normalised(text)[0]
        ids = self._tokenizer.encode(written)
        if not ids:
            raise TextError("There is nothing to say in it.")
        return np.array(ids, np.int32)

    def joined(self, texts: Sequence[np.ndarray]) -> np.ndarray:
        return np.concatenate(texts)

    def hear(self, audio: Path, follower: Follower) -> Sequence[int]:
        recording = read_recording(audio)
        follower.check()
        heard = resample(torch.from_numpy(recording.samples), recording.sample_rate, ENCODER_RATE)
        return self._encoder.tokens(heard).tolist()
