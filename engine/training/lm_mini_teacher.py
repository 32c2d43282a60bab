"""The bundled language model, and others of its layout, as what drafts and students learn from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from engine.audio.mel import MelFrontEnd
from engine.models.base import Voice
from engine.models.catalogue import VOICE_TITLES, CatalogueEntry
from engine.models.f5.prompts import PromptReader
from engine.models.families.training_layout import HuggingFaceNames
from engine.models.files.checkpoints import fingerprint, read_weights
from engine.models.minis.lm_mini.checkpoint import LmMiniFolder
from engine.models.minis.lm_mini.front_end import LmMiniFrontEnd
from engine.sampling.tokens import Nucleus
from engine.training.follower import Follower
from engine.training.recorded_tokens import record_tokens
from engine.training.self_generated import TOGETHER, speak_tokens
from engine.training.spoken_tokens import SpokenTokens, TokenBatch, collate
from engine.training.teacher import Teacher, Utterances
from engine.training.token_network import TokenNetwork


class LmMiniTeacher(Teacher):
    """Phones and codes side by side; many sentences are spoken at a time."""

    portion = 4 * len(VOICE_TITLES) * TOGETHER

    def __init__(self, entry: CatalogueEntry, root: Path, follower: Follower) -> None:
        """Raises :class:`engine.errors.CheckpointError`."""
        self.folder = LmMiniFolder(root, follower.check)
        self.layout = self.folder.layout()
        weights = read_weights(self.folder.weights_path, follower.check)
        network = TokenNetwork.read(self.folder.config(), weights, HuggingFaceNames(self.layout.rows))
        base = fingerprint(self.folder.weights_path, follower.check)
        options = entry.options_with()
        sampler = Nucleus(float(options["temperature"]), int(options["top_k"]), float(options["top_p"]))
        super().__init__(entry, root, base, network, self.layout.codes, sampler)

    def collate(self, items: Sequence[Sequence[SpokenTokens]]) -> TokenBatch:
        return collate(items, self.layout)

    def speak(
        self, sentences: Sequence[str], voices: Sequence[Voice], seed: int, device: str, follower: Follower
    ) -> Utterances:
        """As :class:`Teacher` says; always on the processor."""
        progress, front_end = follower.progress, self.front_end()
        return speak_tokens(self.network, self.layout, front_end, voices, sentences, self.sampler, seed, progress)

    def record(self, manifest: Path, work: Path, follower: Follower) -> tuple[Utterances, Utterances]:
        return record_tokens(manifest, self.folder, work, follower.progress)

    def front_end(self) -> LmMiniFrontEnd:
        """Its front end for texts and voices."""
        tokenizer, means = self.folder.tokenizer(torch.device("cpu"))
        reader = PromptReader(MelFrontEnd(), whole_frames=True)
        vocabulary = self.layout.vocabulary
        return LmMiniFrontEnd(tokenizer, means, self.folder.durations(), vocabulary, reader, self.entry.title)
