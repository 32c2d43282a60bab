"""The bundled language model, and others of its layout, as what drafts and students learn from."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import torch

from paretone.models.base import Voice
from paretone.models.catalogue import CatalogueEntry
from paretone.models.families.training_layout import HuggingFaceNames
from paretone.models.files.checkpoints import fingerprint, read_weights
from paretone.models.load_request import LoadRequest
from paretone.models.minis.lm_mini import TOKENIZER, LmMiniFolder, LmMiniParts, read_parts
from paretone.sampling.tokens import Nucleus
from paretone.training.everyday import corpus_sentences
from paretone.training.follower import Follower
from paretone.training.natural_corpus import open_corpus
from paretone.training.recorded_tokens import record_tokens
from paretone.training.said_tokens import said_tokens
from paretone.training.self_generated import TOGETHER, speak_tokens
from paretone.training.spoken_tokens import SpokenTokens, TokenBatch, collate
from paretone.training.teacher import Teacher, Utterances
from paretone.training.token_network import TokenNetwork


class LmMiniTeacher(Teacher):
    """Phones and codes side by side; many sentences are spoken at a time."""

    portion = 8 * TOGETHER

    def __init__(self, entry: CatalogueEntry, root: Path, follower: Follower) -> None:
        """Raises :class:`paretone.errors.CheckpointError`."""
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

    def sentences(self, count: int) -> list[str]:
        """What people write."""
        return corpus_sentences(count, excluded=self.unseen)

    def speak(
        self, sentences: Sequence[str], voices: Sequence[Voice], seed: int, device: str, follower: Follower
    ) -> Utterances:
        """As :class:`Teacher` says; always on the processor."""
        progress, front_end = follower.progress, self.parts.front_end
        return speak_tokens(self.network, self.layout, front_end, voices, sentences, self.sampler, seed, progress)

    def record(self, manifest: Path, work: Path, follower: Follower) -> tuple[Utterances, Utterances]:
        return record_tokens(manifest, self.parts, work, follower.progress)

    def read_corpus(self, corpus: Path, work: Path) -> tuple[Utterances, Utterances]:
        return said_tokens(open_corpus(corpus), self.parts.coding.codec, self.folder.root / TOKENIZER, work)

    @cached_property
    def parts(self) -> LmMiniParts:
        """What speaks and hears around its network."""
        request = LoadRequest(self.entry, self.root, "", torch.device("cpu"), lambda status: None, self.folder.check)
        return read_parts(request, self.folder)
