"""Teacher of drafts and students: how a language model reads, speaks, and lays out training sequences.

An adapter describes each model's sequences; training and losses are the same for all.
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
from paretone.models.families.language_network import TrainingRow
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
    portion: ClassVar[int] = 24
    """Sentences per saved portion of its speech, which limits the loss when a run is stopped."""

    def __init__(
        self, entry: CatalogueEntry, root: Path, base: str, network: TokenNetwork, codes: int, sampler: TokenSampler
    ) -> None:
        """``root``: folder of its checkpoint; ``base``: the checkpoint's SHA-256; ``codes``: number of codes;
        ``sampler``: its default sampler."""
        self.entry, self.root, self.base, self.codes, self.sampler = entry, root, base, codes, sampler
        self.network = network.eval().requires_grad_(False)

    @property
    def temperature(self) -> float:
        """Temperature of the sampler; 1 if it has none or is greedy."""
        return float(self.entry.options_with().get("temperature", 1.0)) or 1.0

    @abstractmethod
    def collate(self, items: Sequence[Sequence[SpokenTokens]]) -> TokenBatch:
        """Batch in the model's layout; see :data:`paretone.training.spoken_tokens.Collate`."""

    @property
    def unseen(self) -> list[str]:
        """Sentences excluded from training."""
        return [PROMPT, *judged_sentences()]

    def sentences(self, count: int) -> list[str]:
        """Sentences for training on its own speech."""
        return training_sentences(count, excluded=self.unseen)

    @abstractmethod
    def speak(
        self, sentences: Sequence[str], voices: Sequence[Voice], seed: int, device: str, follower: Follower
    ) -> Utterances:
        """Its own speech: ``sentences`` spoken by ``voices`` in turn, without speech that did not end."""

    def rest(self) -> None:  # noqa: B027 (some need nothing more for that)
        """Release the parts needed only for speaking and encoding."""

    @abstractmethod
    def record(self, manifest: Path, work: Path, follower: Follower) -> tuple[Utterances, Utterances]:
        """Training and held-out recordings as token sequences, cached in ``work``. Raises
        :class:`paretone.errors.PlainError`."""

    def read_corpus(self, corpus: Path, work: Path) -> tuple[Utterances, Utterances]:
        """Training and held-out clips of a corpus of natural speech, cached in ``work``. Raises
        :class:`paretone.errors.PlainError`, also for models that are not trained on natural speech."""
        raise TrainingError(
            f"{self.entry.title} does not learn from a corpus of natural speech: give a manifest of recordings."
        )


class OfficialTeacher(Teacher):
    """A model that learns the alignment itself: its sequences are text, then speech."""

    vocoder = ""
    """Folder of the vocoder; ``""``: the default."""
    _speaking: LanguageSpeech | None = None

    @abstractmethod
    def row(self, text: np.ndarray, codes: Sequence[int]) -> TrainingRow:
        """Sequence of ``text``, as returned by :meth:`read`, and ``codes``."""

    @abstractmethod
    def read(self, text: str) -> np.ndarray:
        """Ids (n,) of a text spoken in one piece. Raises :class:`TextError`."""

    @abstractmethod
    def joined(self, texts: Sequence[np.ndarray]) -> np.ndarray:
        """Several texts as one, such as a transcript and the text after it."""

    @abstractmethod
    def hear(self, audio: Path, follower: Follower) -> Sequence[int]:
        """Codes of a recording. Raises :class:`paretone.errors.PlainError`."""

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
            if len(decodings) != 1:  # Tokens of several passages cannot be assigned.
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
        """Text of each manifest line. Raises :class:`TrainingError` with the lines that have no words."""
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
