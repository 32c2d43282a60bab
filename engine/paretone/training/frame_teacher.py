"""Qwen3-TTS as the teacher of its students: its tokens are frames of several codes.

A training sequence is a prompt followed by frames. Each element is the sum of a text embedding and the embeddings of a
frame's codes; these embeddings are frozen. The talker predicts the first code of a frame. A frozen predictor computes
the other codes from the talker's hidden state, so a student also learns to produce the hidden states of the whole
talker. The predictor needs a position for each code of a frame, so only one frame in :data:`COMPLETED` is completed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from paretone.audio.mel import resample_prompt
from paretone.audio.recording import read_recording
from paretone.errors import TextError
from paretone.front_end.speakable import has_letters
from paretone.models.base import Voice
from paretone.models.catalogue import voice as catalogue_voice
from paretone.models.declaration import Model
from paretone.models.families.language_network import IGNORED, TrainingRow
from paretone.models.qwen3_tts.checkpoint import OfficialFolder, TalkerNames
from paretone.models.qwen3_tts.config import BASE, CUSTOM_VOICE, VOICE_DESIGN
from paretone.models.qwen3_tts.prompts import AUTO, CHAT_OF_INSTRUCTION, FOOTER, HEADER, VoiceOfPrompt, prompt_of
from paretone.models.qwen3_tts.speaker_encoder import SAMPLE_RATE
from paretone.models.qwen3_tts.speech_tokenizer import CodecEncoder
from paretone.sampling.tokens import Nucleus
from paretone.setting.knobs import Values
from paretone.training.requests import Follower
from paretone.training.spoken_tokens import SpokenTokens, TokenBatch
from paretone.training.teachers import OfficialTeacher, Utterances
from paretone.training.token_recipe import Seen, TokenNetwork

COMPLETED = 8
"""One frame in this many is completed."""
_MANNERS = "calm", "lively", "soft-spoken", "deep-voiced", "hoarse", "cheerful"
_PEOPLE = "young woman", "old man", "old woman", "young man"
DESCRIPTIONS = tuple(f"A {manner} {one}." for manner in _MANNERS for one in _PEOPLE)
"""Of voices in which a release that follows descriptions speaks to learn from."""


class FrameTeacher(OfficialTeacher):
    """Texts are stored as ids. A voice is a named speaker, a description, or the embedding of a recording: the
    manifest's first one in this voice."""

    def __init__(self, entry: Model, root: Path, follower: Follower) -> None:
        """Raises :class:`paretone.errors.CheckpointError`."""
        folder = OfficialFolder.read(root, check=follower.check)
        folder.require(entry)
        self._folder, self._tokenizer, self._marks = folder, folder.tokenizer(), folder.marks
        self._kind, self._speaker = folder.kind, folder.speaker_encoder() if folder.kind == BASE else None
        self._encoder: CodecEncoder | None = None
        self._recordings: dict[str, Path] = {}
        self._who: dict[str, VoiceOfPrompt] = {}
        talker = folder.talker()
        config, names = talker.config, TalkerNames(talker.config.spoken)
        self._tables, self.predictor = talker.tables(), talker.code_predictor
        transformer, head = talker.model.kept(range(config.transformer.layers)), names.spoken(talker.codec_head.weight)
        network = TokenNetwork(transformer, talker.model.codec_embedding.weight, head, names)
        base, sampler = folder.shards.fingerprint(follower.check), Nucleus.of(entry.options_with())
        super().__init__(entry, root, base, network, config.codes, sampler)

    def row(self, text: np.ndarray, codes: Sequence, voice: str = "") -> TrainingRow:
        chat = list(self._tokenizer.ids(""))
        ids, streamed = [*chat[:HEADER], *text.tolist(), *chat[-FOOTER:]], self.entry.options_with()["streamed_text"]
        told = self._tokenizer.ids(voice, CHAT_OF_INSTRUCTION) if voice and self._kind == VOICE_DESIGN else ()
        prompt = prompt_of(self._tables, self._marks, ids, self._voice(voice), AUTO, told, bool(streamed))
        frames = self._tables.frames(torch.tensor(codes).T)
        fed = torch.stack([prompt.fed_with(frame) for frame in range(len(frames))])
        labels = (*[IGNORED] * (len(prompt.embedded) - 1), *(first for first, *_ in codes), self.codes)
        return TrainingRow((), labels, torch.cat([prompt.embedded, frames + fed]))

    def collate(self, items: Sequence[Sequence[SpokenTokens]]) -> TokenBatch:
        batch = super().collate(items)
        frames = torch.from_numpy(np.concatenate([one.codes for item in items for one in item])).long()
        (predicted,) = (batch.labels[batch.predicting] != self.codes).nonzero(as_tuple=True)
        return replace(batch, frames=frames[::COMPLETED], framed=predicted[::COMPLETED])

    def completed(self, batch: TokenBatch, seen: Seen) -> Tensor:
        predictor, first = self.predictor.to(seen.hidden.device), self.network.embedding
        states, codes = seen.hidden[batch.predicting][batch.framed], batch.frames.T
        tables = zip(predictor.model.codec_embedding, codes[1:-1], strict=False)
        inputs = [states, first(codes[0]), *(table(some) for table, some in tables)]
        return predictor.scores(torch.stack(inputs, dim=1)).flatten(0, 1)

    def options(self, voice: str = "") -> Values:
        described = {"instruction": voice or DESCRIPTIONS[0]} if self._kind == VOICE_DESIGN else {}
        return self.entry.options_with(**described)

    def speak(
        self, sentences: Sequence[str], voices: Sequence[Voice], seed: int, device: str, follower: Follower
    ) -> Utterances:
        if self._kind == VOICE_DESIGN:
            voices = [Voice(one, one, "", "") for one in DESCRIPTIONS]
        return super().speak(sentences, voices, seed, device, follower)

    def read(self, text: str) -> np.ndarray:
        if not has_letters(text):
            raise TextError("There is nothing to say in it.")
        return np.array(self._tokenizer.ids(text)[HEADER:-FOOTER], np.int32)

    def joined(self, texts: Sequence[np.ndarray]) -> np.ndarray:
        return np.concatenate(texts)

    def hear(self, audio: Path, follower: Follower) -> np.ndarray:
        self._encoder = self._encoder or self._folder.encoder()
        return self._encoder(self._samples(audio), follower.check).T.numpy()

    def meet(self, voice: str, audio: Path) -> None:
        self._recordings.setdefault(voice, audio)
        self._voice(voice)

    def rest(self) -> None:
        super().rest()
        self._encoder = None

    def _voice(self, name: str) -> VoiceOfPrompt:
        """Raises :class:`SettingError` for an unknown one."""
        if self._speaker is None:
            if self._kind == CUSTOM_VOICE:
                self._marks.speaker(name)
            return VoiceOfPrompt(name if self._kind == CUSTOM_VOICE else "")
        if name not in self._who:
            audio = self._recordings.get(name) or Path(catalogue_voice(name, self.entry.id, str(self.root)).audio)
            self._who[name] = VoiceOfPrompt(embedding=self._speaker.of(self._samples(audio)))
        return self._who[name]

    def _samples(self, audio: Path) -> Tensor:
        recording = read_recording(audio)
        return resample_prompt(torch.from_numpy(recording.samples), recording.sample_rate, SAMPLE_RATE)
