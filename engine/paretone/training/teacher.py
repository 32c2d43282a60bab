"""The language model that drafts and students learn from: how it reads, speaks, and lays out what it is trained on.

A model's sequences are described by its adapter; what is trained, and by which loss, is the same for all of them.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from paretone.errors import CheckpointError, TextError, TrainingError
from paretone.models import load_model
from paretone.models.base import Voice
from paretone.models.catalogue import CatalogueEntry, judged_sentences
from paretone.models.families.language import LanguageSpeech
from paretone.models.families.training_layout import TrainingRow
from paretone.sampling.tokens import TokenSampler
from paretone.setting.setting import Setting
from paretone.speaking import scripted
from paretone.training.manifest import ManifestRow, read_manifest, refuse
from paretone.training.requests import Follower
from paretone.training.sentences import PROMPT, training_sentences
from paretone.training.spoken_tokens import SpokenTokens, TokenBatch, collate_rows, kept_tokens
from paretone.training.token_recipe import TokenNetwork

Utterances = tuple[SpokenTokens, ...]


class Teacher(ABC):
    """One model to learn from."""

    portion: ClassVar[int] = 24
    """Sentences after which what it spoke is kept, so that little is lost where a run is stopped."""

    def __init__(
        self, entry: CatalogueEntry, root: Path, base: str, network: TokenNetwork, codes: int, sampler: TokenSampler
    ) -> None:
        """``root`` is the folder of its checkpoint, ``base`` the SHA-256 of that; it speaks ``codes`` codes and, unless
        told otherwise, by ``sampler``."""
        self.entry, self.root, self.base, self.codes, self.sampler = entry, root, base, codes, sampler
        self.network = network.eval().requires_grad_(False)

    @property
    def temperature(self) -> float:
        """That of the sampler; 1 where it knows none, or always takes the most likely."""
        return float(self.entry.options_with().get("temperature", 1.0)) or 1.0

    @abstractmethod
    def collate(self, items: Sequence[Sequence[SpokenTokens]]) -> TokenBatch:
        """A batch as the model reads it; see :data:`paretone.training.spoken_tokens.Collate`."""

    @property
    def unseen(self) -> list[str]:
        """Sentences that nothing is trained on."""
        return [PROMPT, *judged_sentences()]

    def sentences(self, count: int) -> list[str]:
        """What it is to speak if it is to learn from itself."""
        return training_sentences(count, excluded=self.unseen)

    @abstractmethod
    def speak(
        self, sentences: Sequence[str], voices: Sequence[Voice], seed: int, device: str, follower: Follower
    ) -> Utterances:
        """Its own speech: each of ``sentences`` in one of ``voices``, in turn. Speech that did not stop by itself is
        left out."""

    def rest(self) -> None:  # noqa: B027 (some need nothing more for that)
        """Release what only speaking and hearing need."""

    @abstractmethod
    def record(self, manifest: Path, work: Path, follower: Follower) -> tuple[Utterances, Utterances]:
        """Recordings to train on, and held-out ones, as the model hears them. What was prepared is found again in
        ``work``. Raises :class:`paretone.errors.PlainError`."""

    def read_corpus(self, corpus: Path, work: Path) -> tuple[Utterances, Utterances]:
        """Clips of a corpus of natural speech to train on, and held-out ones. What was prepared is found again in
        ``work``. Raises :class:`paretone.errors.PlainError`, too, for a model that does not speak naturally."""
        raise TrainingError(
            f"{self.entry.title} does not learn from a corpus of natural speech: give a manifest of recordings."
        )


class OfficialTeacher(Teacher):
    """A model that finds out for itself where in a text it is: its sequences are text, then speech."""

    vocoder = ""
    """Folder of its vocoder, if not the usual one."""
    _speaking: LanguageSpeech | None = None

    @abstractmethod
    def row(self, text: np.ndarray, codes: Sequence[int]) -> TrainingRow:
        """A sequence of ``text``, as :meth:`read` gives it, and ``codes``."""

    @abstractmethod
    def read(self, text: str) -> np.ndarray:
        """Ids of a text that is spoken at once, (n,). Raises :class:`TextError`."""

    @abstractmethod
    def joined(self, texts: Sequence[np.ndarray]) -> np.ndarray:
        """Several texts as one, as a transcript and what follows it."""

    @abstractmethod
    def hear(self, audio: Path, follower: Follower) -> Sequence[int]:
        """The codes of a recording. Raises :class:`paretone.errors.PlainError`."""

    def collate(self, items: Sequence[Sequence[SpokenTokens]]) -> TokenBatch:
        return collate_rows([self._sequence(item) for item in items])

    def _sequence(self, item: Sequence[SpokenTokens]) -> TrainingRow:
        codes = np.concatenate([one.codes for one in item])
        return self.row(self.joined([one.phones for one in item]), codes.tolist())

    def speak(
        self, sentences: Sequence[str], voices: Sequence[Voice], seed: int, device: str, follower: Follower
    ) -> Utterances:
        if self._speaking is None:
            root, vocoder = str(self.root), self.vocoder
            model = load_model(self.entry.id, folder=root, device=device, vocoder=vocoder, check=follower.check)
            assert isinstance(model, LanguageSpeech)
            self._speaking = model
        model, found = self._speaking, []
        for number, sentence in enumerate(sentences):
            follower.progress(number, len(sentences))
            voice = voices[number % len(voices)]
            setting = Setting(self.entry.id, self.entry.options_with(), seed=seed + number)
            decodings = [
                decoding for _, decoding in model.decodings(scripted(model, sentence, voice, setting), follower.check)
            ]
            if len(decodings) != 1:  # The tokens of each passage cannot be separated any more.
                continue
            cycles = list(decodings[0])
            codes = [token for cycle in cycles for token in cycle.tokens]
            if codes and cycles[-1].stopped:
                found.append(SpokenTokens(voice.id, self.read(sentence), np.array(codes, np.int32)))
        follower.progress(len(sentences), len(sentences))
        return tuple(found)

    def rest(self) -> None:
        self._speaking = None

    def record(self, manifest: Path, work: Path, follower: Follower) -> tuple[Utterances, Utterances]:
        rows = read_manifest(manifest, follower.check)
        texts = self._texts(manifest, rows)
        digest = hashlib.sha256(manifest.read_bytes() + self.base.encode()).hexdigest()[:12]
        done = 0

        def heard(those: Sequence[ManifestRow]) -> Iterator[SpokenTokens]:
            nonlocal done
            for row in those:
                follower.progress(done, len(rows))
                yield SpokenTokens(row.voice, texts[row.line], self._codes(row.audio, follower))
                done += 1

        training, held_out = ([row for row in rows if row.held_out == kept] for kept in (False, True))
        try:
            return (
                kept_tokens(work / f"{digest}-training.npz", lambda: tuple(heard(training))),
                kept_tokens(work / f"{digest}-held-out.npz", lambda: tuple(heard(held_out))),
            )
        finally:
            self.rest()

    def _texts(self, manifest: Path, rows: Sequence[ManifestRow]) -> dict[int, np.ndarray]:
        """Text of each line of the manifest. Raises :class:`TrainingError` that lists those without a word."""
        texts, problems = {}, []
        for row in rows:
            try:
                texts[row.line] = self.read(row.text)
            except TextError as error:
                problems.append((row.line, str(error)))
        refuse(manifest, problems)
        return texts

    def _codes(self, audio: Path, follower: Follower) -> np.ndarray:
        codes = np.array(self.hear(audio, follower), np.int32)
        if not len(codes):
            raise TrainingError(f"The recording {audio} is too short; leave it out of the manifest.")
        if codes.max() >= self.codes:
            raise CheckpointError(
                f"{audio} is heard as the code {codes.max()}, but the language model knows {self.codes} of "
                "them: the release's parts do not belong together. Download it again."
            )
        return codes
