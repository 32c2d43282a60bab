"""Speech tokens to train language models on, with their phones, and batches of them.

Tokens are encoded from recordings or from a corpus of natural speech, or are the model's own speech
(:mod:`paretone.training.teachers`). All of them fit into memory and into one file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from paretone import files
from paretone.errors import TrainingError
from paretone.front_end.phones import PHONES, PhoneVocabulary, labels
from paretone.models.families.language_network import IGNORED, TrainingRow
from paretone.models.files.checkpoints import fingerprint
from paretone.models.minis.lm_mini import Layout, LmMiniParts, positions
from paretone.models.minis.natural_decoder import HOP, MEL_HOP, SAMPLE_RATE
from paretone.models.minis.speaking import NaturalVoice
from paretone.models.networks.quantised_mel import WEIGHT_FILE, QuantisedMel, token_phones
from paretone.reading import readable
from paretone.training.batches import Corpus, moved
from paretone.training.features import PhoneReader, check_rows, prepare
from paretone.training.manifest import read_manifest
from paretone.training.natural_corpus import NaturalClip, voice_frames

SHORTEST = 60
"""Minimum length of clips in mel frames: shorter ones are hardly sentences."""

NOTHING = np.zeros(0, np.int16)


@dataclass(frozen=True)
class SpokenTokens:
    """One utterance: its text, and its ``codes`` (n,), or (n, codebooks) for several codebooks."""

    voice: str
    phones: np.ndarray = field(repr=False)
    """(n,) phones aligned with the codes; for models that learn the alignment, (m,) ids or bytes as their adapter reads
    a text."""
    codes: np.ndarray = field(repr=False)

    @property
    def frames(self) -> int:
        """Number of tokens; named for :class:`paretone.training.batches.BatchQueue`."""
        return len(self.codes)


def write_tokens(path: Path, utterances: Sequence[SpokenTokens]) -> None:
    voices = sorted({one.voice for one in utterances})
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part.npz")
    np.savez(
        unfinished,
        names=np.array(voices),
        voices=np.array([voices.index(one.voice) for one in utterances], np.int16),
        lengths=np.array([one.frames for one in utterances], np.int32),
        text_lengths=np.array([len(one.phones) for one in utterances], np.int32),
        phones=np.concatenate([one.phones for one in utterances]) if utterances else NOTHING,
        codes=np.concatenate([one.codes for one in utterances]) if utterances else NOTHING,
    )
    unfinished.replace(path)


def kept_tokens(path: Path, make: Callable[[], Sequence[SpokenTokens]]) -> tuple[SpokenTokens, ...]:
    """Tokens in ``path``, computed by ``make`` and written if it does not exist. Raises :class:`TrainingError`."""
    if not path.is_file():
        made = make()
        with files.explained(TrainingError, f"{path} could not be written"):
            write_tokens(path, made)
    return read_tokens(path)


def read_tokens(path: Path) -> tuple[SpokenTokens, ...]:
    """Read the tokens of :func:`write_tokens`. Raises :class:`TrainingError`."""
    problem, advice = f"The speech tokens in {path} cannot be read", "delete the file, and they are made again"
    with readable(TrainingError, problem, advice, BadZipFile), np.load(path) as file:
        names, voices, lengths = (file[name] for name in ("names", "voices", "lengths"))
        phones, codes = file["phones"], file["codes"]
        text_lengths = file.get("text_lengths", lengths)
    if not len(lengths):
        return ()
    texts, spoken = (
        np.split(values, np.cumsum(counts)[:-1]) for values, counts in ((phones, text_lengths), (codes, lengths))
    )
    return tuple(
        SpokenTokens(str(names[voice]), text, one) for voice, text, one in zip(voices, texts, spoken, strict=True)
    )


@dataclass(frozen=True)
class TokenBatch:
    """Sequences of a batch, padded."""

    ids: Tensor
    """(B, T) int64, indices into the whole vocabulary: text, then speech; or their embeddings (B, T, D)."""
    positions: Tensor
    """(T,) int64."""
    labels: Tensor
    """(B, T) int64: row of the head for the next token, or :data:`IGNORED`."""
    heard: Tensor
    """(B, T) bool: false in the padding after the speech."""
    frames: Tensor = field(default_factory=lambda: torch.empty(0, 0))
    """(m, codes) int64: some of the frames, all their codes, if a token is the first of several."""
    framed: Tensor = field(default_factory=lambda: torch.empty(0))
    """(m,) int64: which of the predicting positions predict these."""

    def to(self, device: torch.device) -> TokenBatch:
        return moved(self, device)

    @property
    def predicting(self) -> Tensor:
        """(B, T) bool: true at positions with a prediction."""
        return self.labels != IGNORED


Collate = Callable[[Sequence[Sequence[SpokenTokens]]], TokenBatch]
"""Makes a batch whose items are one utterance, or several of one voice joined."""


def collate(items: Sequence[Sequence[SpokenTokens]], layout: Layout) -> TokenBatch:
    """Batch of phones aligned with codes. Text is padded with ``end_of_text``, as in the model's own training: speech
    begins in the same column in all rows."""
    longest = max(sum(one.frames for one in item) for item in items) + 1
    ids = torch.full((len(items), 2 * longest), layout.end_of_text)
    labels = torch.full((len(items), 2 * longest), IGNORED)
    for row, item in enumerate(items):
        phones = torch.from_numpy(np.concatenate([one.phones for one in item]).astype(np.int64))
        codes = torch.from_numpy(np.concatenate([one.codes for one in item]).astype(np.int64))
        ids[row, : len(phones)] = phones
        ids[row, longest] = layout.start_of_speech
        ids[row, longest + 1 : longest + 1 + len(codes)] = codes + layout.first_code
        labels[row, longest : longest + len(codes)] = codes
        labels[row, longest + len(codes)] = layout.codes
    heard = labels != IGNORED
    heard[:, :longest] = True
    return TokenBatch(ids, positions(longest, longest - 1), labels, heard)


def collate_rows(rows: Sequence[TrainingRow]) -> TokenBatch:
    """Batch of sequences of any length, padded at the end, which causal attention does not see."""
    read = (torch.tensor(row.ids) if row.embedded is None else row.embedded for row in rows)
    ids = pad_sequence(list(read), batch_first=True)
    labels = pad_sequence([torch.tensor(row.labels) for row in rows], batch_first=True, padding_value=IGNORED)
    positions, lengths = torch.arange(ids.shape[1]), torch.tensor([len(row.labels) for row in rows])
    return TokenBatch(ids, positions, labels, positions < lengths[:, None])


VOCABULARY = PhoneVocabulary(PHONES)
TextOfFrames = Callable[[np.ndarray, int], np.ndarray]
"""From one phone per latent frame, (n,), and the frames per token to one text token per token, (n // frames,)."""
LONGEST = 700
"""Maximum length of clips in mel frames: keeps all."""


def frame_phones(clip: NaturalClip) -> np.ndarray:
    """Phone of each latent frame, (latent frames,) int64."""
    return labels(clip.phones, len(clip.latents), VOCABULARY, SAMPLE_RATE, HOP)


def voices_of(clips: Iterable[NaturalClip]) -> dict[str, NaturalVoice]:
    """Voices by name, each computed over all its clips."""
    frames: dict[str, list[Tensor]] = {}
    for clip in clips:
        frames.setdefault(clip.voice, []).append(voice_frames(clip))
    return {voice: NaturalVoice.of(torch.cat(some)) for voice, some in frames.items()}


def said_tokens(
    corpus: Corpus[NaturalClip], codec: QuantisedMel, folder: Path, work: Path, text: TextOfFrames = token_phones
) -> tuple[tuple[SpokenTokens, ...], tuple[SpokenTokens, ...]]:
    """Training and held-out clips of usable length for a token model: the content of each clip, without the voice.
    ``codec``: the codec in ``folder``; ``text`` gives each token's text. The tokens are cached in ``work``."""
    voices = voices_of((*corpus.training, *corpus.held_out))
    kept = work / f"tokens-{fingerprint(folder / WEIGHT_FILE)[:12]}-{len(corpus.training)}"

    @torch.inference_mode()
    def encoded(clip: NaturalClip) -> SpokenTokens:
        said: Tensor = voices[clip.voice].said(voice_frames(clip))
        codes = codec.encode(said[None].to(codec.mel_mean.device))[0].cpu().numpy()
        phones = text(frame_phones(clip), codec.config.stride)
        return SpokenTokens(clip.voice, phones.astype(np.int16), codes.astype(np.int16))

    def tokens(clips: Sequence[NaturalClip], name: str) -> tuple[SpokenTokens, ...]:
        usable = (clip for clip in clips if SHORTEST <= clip.frames <= LONGEST)
        return kept_tokens(kept / name, lambda: [encoded(clip) for clip in usable])

    return tokens(corpus.training, "training.npz"), tokens(corpus.held_out, "held-out.npz")


@torch.inference_mode()
def record_tokens(
    manifest: Path, parts: LmMiniParts, speech: Path, progress: Callable[[int, int], None] = lambda done, total: None
) -> tuple[tuple[SpokenTokens, ...], tuple[SpokenTokens, ...]]:
    """Training and held-out utterances. ``parts``: the model's parts; ``speech``: folder for the prepared mels. A voice
    is computed over all its recordings.

    ``progress`` is called with finished and total recordings and may raise to cancel. Raises
    :class:`paretone.errors.PlainError` for an unusable manifest, recording or folder.
    """
    coding, rows = parts.coding, read_manifest(manifest)
    read = PhoneReader(parts.layout.vocabulary)
    check_rows(manifest, rows, read)
    examples = prepare(manifest, rows, read, speech, progress)
    every = (*examples.training, *examples.held_out)
    frames: dict[int, Tensor] = {}
    by_voice: dict[str, list[Tensor]] = {}
    for number, one in enumerate(every):
        progress(number, len(every))
        frames[number] = coding.frames(torch.from_numpy(np.asarray(one.mel, np.float32))[None])
        by_voice.setdefault(one.voice, []).append(frames[number])
    who = {voice: NaturalVoice.of(torch.cat(those)) for voice, those in by_voice.items()}
    found = []
    for number, one in enumerate(every):
        codes = coding.codes(frames[number], who[one.voice]).cpu().numpy()
        phones = token_phones(at_frames(one.ids, len(frames[number])), coding.stride)
        found.append(SpokenTokens(one.voice, phones.astype(np.int16), codes.astype(np.int16)))
    progress(len(every), len(every))
    training = len(examples.training)
    return tuple(found[:training]), tuple(found[training:])


def at_frames(ids: np.ndarray, frames: int) -> np.ndarray:
    """Resample ids from mel frames (n,) to ``frames`` latent frames: each takes the mel frame at its middle."""
    middles = ((np.arange(frames) + 0.5) * HOP / MEL_HOP).astype(np.int64)
    return ids[middles.clip(max=len(ids) - 1)]
