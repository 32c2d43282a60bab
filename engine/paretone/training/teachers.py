"""Catalogue models as teachers of drafts and students: LM mini, CosyVoice 2 and 3, and LLaSA; for Qwen3-TTS see
:mod:`paretone.training.frame_teacher`.

Without a corpus, LM mini's companions learn from its own speech: batches of sentences with the sampler and voices of
later use. Only speech that ended with one token per phone is kept, so that phones and tokens are paired as in a
recording.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch

from paretone.audio.mel import resample_prompt
from paretone.audio.recording import read_recording
from paretone.errors import CheckpointError, SettingError, TextError, TrainingError
from paretone.front_end.pronunciations import HowToRead
from paretone.front_end.speakable import has_letters
from paretone.models import load_model
from paretone.models.base import Voice
from paretone.models.catalogue import entry, judged_sentences
from paretone.models.cosyvoice2.checkpoint import OfficialFolder
from paretone.models.cosyvoice2.language_model import CosyNames
from paretone.models.cosyvoice2.speech_tokenizer import ENCODER_RATE
from paretone.models.cosyvoice2.text import END_OF_PROMPT, normalised, read_text
from paretone.models.cosyvoice3.checkpoint import edition_of
from paretone.models.declaration import Model
from paretone.models.families.language import LanguageSpeech
from paretone.models.families.language_network import HuggingFaceNames, TrainingRow
from paretone.models.files.checkpoints import fingerprint, read_weights
from paretone.models.kernels.fused_causal import FusedTransformer
from paretone.models.llasa.checkpoint import TEXTS, LlasaFolder
from paretone.models.llasa.tokenizer import rendered, training_row
from paretone.models.llasa.voices import VoiceEncoder
from paretone.models.llasa.xcodec2 import SAMPLE_RATE
from paretone.models.loading import LoadRequest
from paretone.models.minis.lm_mini import SHORTEST, SPARE, TOKENIZER, LmMiniFolder, LmMiniParts, positions, read_parts
from paretone.models.minis.speaking import MiniPrompt
from paretone.paths import data_folder
from paretone.sampling.tokens import Nucleus, RepetitionAware, TokenSampler
from paretone.setting.knobs import Values
from paretone.setting.plan import imported
from paretone.setting.setting import Setting
from paretone.speaking import scripted
from paretone.training.manifest import ManifestRow, read_manifest, refuse
from paretone.training.natural_corpus import open_corpus
from paretone.training.requests import Follower, why_no_teacher
from paretone.training.sentences import PROMPT, corpus_sentences, training_sentences
from paretone.training.spoken_tokens import (
    SpokenTokens,
    TokenBatch,
    collate,
    collate_rows,
    kept_tokens,
    record_tokens,
    said_tokens,
)
from paretone.training.token_recipe import Seen, TokenNetwork

Utterances = tuple[SpokenTokens, ...]


class Teacher(ABC):
    portion: ClassVar[int] = 24
    """Sentences per saved portion of its speech, which limits the loss when a run is stopped."""

    def __init__(
        self, entry: Model, root: Path, base: str, network: TokenNetwork, codes: int, sampler: TokenSampler
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

    def completed(self, batch: TokenBatch, seen: Seen) -> torch.Tensor:
        """Scores (m · (codes - 1), V) of the other codes of ``batch.frames``, from the hidden states of the whole model
        or of a student; for models of frames."""
        raise NotImplementedError

    def options(self, voice: str = "") -> Values:
        """Sampler options with which it speaks in a voice."""
        return self.entry.options_with()

    @property
    def unseen(self) -> list[str]:
        """Sentences excluded from training."""
        return [PROMPT, *judged_sentences()]

    def sentences(self, count: int) -> list[str]:
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
    def row(self, text: np.ndarray, codes: Sequence, voice: str = "") -> TrainingRow:
        """Sequence of ``text``, as returned by :meth:`read`, and ``codes``, in a ``voice`` if it has any."""

    @abstractmethod
    def read(self, text: str) -> np.ndarray:
        """Ids (n,) of a text spoken in one piece. Raises :class:`TextError`."""

    @abstractmethod
    def joined(self, texts: Sequence[np.ndarray]) -> np.ndarray:
        """Several texts as one, such as a transcript and the text after it."""

    @abstractmethod
    def hear(self, audio: Path, follower: Follower) -> Sequence[int] | np.ndarray:
        """Codes of a recording, (n,) or (n, codes of a frame). Raises :class:`paretone.errors.PlainError`."""

    def meet(self, voice: str, audio: Path) -> None:
        """Learn of a voice with a recording. Raises :class:`SettingError` for one that cannot be."""

    def collate(self, items: Sequence[Sequence[SpokenTokens]]) -> TokenBatch:
        rows = []
        for item in items:
            codes = np.concatenate([one.codes for one in item])
            rows.append(self.row(self.joined([one.phones for one in item]), codes.tolist(), item[0].voice))
        return collate_rows(rows)

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
            setting = Setting(self.entry.id, self.options(voice.id), seed=seed + number)
            script = scripted(model, sentence, voice, setting)
            decodings = [decoding for _, decoding in model.decodings(script, follower.check)]
            if len(decodings) != 1:  # Tokens of several passages cannot be assigned.
                continue
            cycles = list(decodings[0])
            codes = np.array([code for cycle in cycles for code in cycle.codes], np.int32)
            if len(codes) and cycles[-1].stopped:
                frames = codes if model.info.codes_per_token == 1 else codes.reshape(-1, model.info.codes_per_token)
                found.append(SpokenTokens(voice.id, self.read(sentence), frames))
        follower.progress(len(sentences), len(sentences))
        return tuple(found)

    def rest(self) -> None:
        self._speaking = None

    def record(self, manifest: Path, work: Path, follower: Follower) -> tuple[Utterances, Utterances]:
        rows = read_manifest(manifest, follower.check)
        texts, problems = {}, []
        for row in rows:
            try:
                self.meet(row.voice, row.audio)
                texts[row.line] = self.read(row.text)
            except (SettingError, TextError) as error:
                problems.append((row.line, str(error)))
        refuse(manifest, problems)
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


class CosyTeacher(OfficialTeacher):
    """Texts are stored as ids; a joined one is a transcript and the text after it, as in zero-shot."""

    def __init__(self, entry: Model, root: Path, follower: Follower) -> None:
        """Raises :class:`paretone.errors.CheckpointError`."""
        edition = edition_of(entry.layout)
        folder = OfficialFolder(root, check=follower.check, edition=edition)
        folder.require_parts()
        self._tokenizer, self._encoder = folder.tokenizer(), folder.recording_encoder()
        model = folder.language_model()
        self._names = CosyNames(len(model.text), edition.layout)
        self._prefix = self._tokenizer.encode(edition.prefix + END_OF_PROMPT) if edition.prefix else []
        tokens = model.tokens
        vocabulary = torch.cat([model.text, model.marks[: self._names.marks], tokens.embedding])
        network = TokenNetwork(tokens.plain_transformer, vocabulary, tokens.head, self._names, tokens.bias)
        options = entry.options_with()
        sampler = RepetitionAware(str(options["repeats"]), float(options["top_p"]), int(options["top_k"]))
        base = fingerprint(folder.checkpoint, follower.check)
        super().__init__(entry, root, base, network, model.codes, sampler)

    def row(self, text: np.ndarray, codes: Sequence, voice: str = "") -> TrainingRow:
        return self._names.row([*self._prefix, *text.tolist()], codes, self.codes)

    def read(self, text: str) -> np.ndarray:
        pieces = read_text(text, self._tokenizer.count).pieces
        ids = self._tokenizer.encode(pieces[0] if len(pieces) == 1 else normalised(text)[0])
        if not ids:
            raise TextError("There is nothing to say in it.")
        return np.array(ids, np.int32)

    def joined(self, texts: Sequence[np.ndarray]) -> np.ndarray:
        return np.concatenate(texts)

    def hear(self, audio: Path, follower: Follower) -> Sequence[int]:
        recording = read_recording(audio)
        follower.check()
        heard = resample_prompt(torch.from_numpy(recording.samples), recording.sample_rate, ENCODER_RATE)
        return self._encoder.tokens(heard).tolist()


class LlasaTeacher(OfficialTeacher):
    """Texts are stored as bytes; a joined one has blanks between its texts."""

    def __init__(self, entry: Model, root: Path, follower: Follower, vocoder: str = "") -> None:
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
        # Official tables may have unused rows.
        vocabulary = torch.cat([vocabulary, vocabulary.new_zeros(folder.rows - len(vocabulary), vocabulary.shape[1])])
        network = TokenNetwork(
            plain.tokens.plain_transformer, vocabulary, plain.tokens.head, HuggingFaceNames(folder.spoken_rows)
        )
        sampler = Nucleus.of(entry.options_with())
        super().__init__(entry, root, folder.shards.fingerprint(follower.check), network, codes, sampler)

    def row(self, text: np.ndarray, codes: Sequence, voice: str = "") -> TrainingRow:
        return training_row(self._tokenizer, text.tobytes().decode(), codes)

    def read(self, text: str) -> np.ndarray:
        text = " ".join(text.split())
        if not has_letters(text):
            raise TextError("There is nothing to say in it.")
        rendered(text)
        return np.frombuffer(text.encode(), np.uint8)

    def joined(self, texts: Sequence[np.ndarray]) -> np.ndarray:
        return np.frombuffer(b" ".join(one.tobytes() for one in texts), np.uint8)

    def hear(self, audio: Path, follower: Follower) -> Sequence[int]:
        recording = read_recording(audio)
        samples = resample_prompt(torch.from_numpy(recording.samples), recording.sample_rate, SAMPLE_RATE)
        return self._encoder(samples.numpy(), follower.status, follower.check)

    def rest(self) -> None:
        super().rest()
        self._encoder.rest()


TOGETHER = 48
"""Sentences that LM mini speaks at once."""


class LmMiniTeacher(Teacher):
    """Phones aligned with codes; sentences are spoken in batches."""

    portion = 8 * TOGETHER

    def __init__(self, entry: Model, root: Path, follower: Follower) -> None:
        """Raises :class:`paretone.errors.CheckpointError`."""
        self.folder = LmMiniFolder(root, follower.check)
        self.layout = self.folder.layout()
        weights = read_weights(self.folder.weights_path, follower.check)
        network = TokenNetwork.read(self.folder.config(), weights, HuggingFaceNames(self.layout.rows))
        base = fingerprint(self.folder.weights_path, follower.check)
        super().__init__(entry, root, base, network, self.layout.codes, Nucleus.of(entry.options_with()))

    def collate(self, items: Sequence[Sequence[SpokenTokens]]) -> TokenBatch:
        return collate(items, self.layout)

    def sentences(self, count: int) -> list[str]:
        return corpus_sentences(count, excluded=self.unseen)

    def speak(
        self, sentences: Sequence[str], voices: Sequence[Voice], seed: int, device: str, follower: Follower
    ) -> Utterances:
        """As in :class:`Teacher`; always on the CPU, in the order of the sentences.

        ``follower`` receives spoken sentences (fractional within a batch, rounded) and total sentences before every
        token. The pace of each sentence is drawn from ``seed`` and its number.
        """
        front_end, generator = self.parts.front_end, torch.Generator().manual_seed(seed)
        texts: list[tuple[int, Voice, np.ndarray]] = []
        for number, sentence in enumerate(sentences):
            voice = voices[number % len(voices)]
            passages = front_end.passages(sentence, HowToRead(seed=seed + number))
            texts += [(number, voice, passage.phones) for passage in passages.passages if len(passage.phones)]
        transformer = FusedTransformer.of(self.network.transformer)
        found: dict[int, SpokenTokens] = {}
        done = 0
        for voice in voices:
            own = [(number, phones) for number, who, phones in texts if who is voice]
            own.sort(key=lambda one: len(one[1]))
            prompt = front_end.prompt(voice)
            for start in range(0, len(own), TOGETHER):
                batch = own[start : start + TOGETHER]

                def begin(share: float, done: int = done, batch: int = len(batch)) -> None:
                    follower.progress(done + int(share * batch), len(texts))

                spoken = self._codes(transformer, prompt, [phones for _, phones in batch], generator, begin)
                for (number, phones), codes in zip(batch, spoken, strict=True):
                    if codes is not None and len(codes) == len(phones):
                        found[number] = SpokenTokens(voice.id, phones.astype(np.int16), np.array(codes, np.int16))
                done += len(batch)
        follower.progress(done, len(texts))
        return tuple(found[number] for number in sorted(found))

    @torch.inference_mode()
    def _codes(
        self,
        transformer: FusedTransformer,
        prompt: MiniPrompt,
        texts: Sequence[np.ndarray],
        generator: torch.Generator,
        begin: Callable[[float], None],
    ) -> list[list[int] | None]:
        """Codes for each of ``texts``, ``None`` if speech did not end. Shorter texts are padded with end marks.
        ``begin`` is called before every token with its share of the maximum number of tokens."""
        network, layout = self.network, self.layout
        lengths = torch.tensor([len(phones) for phones in texts])
        text = len(prompt.phones) + int(lengths.max()) + 1
        ids = torch.full((len(texts), text + 1 + len(prompt.codes)), layout.end_of_text)
        ids[:, : len(prompt.phones)] = torch.from_numpy(prompt.phones)
        for row, phones in enumerate(texts):
            ids[row, len(prompt.phones) : len(prompt.phones) + len(phones)] = torch.from_numpy(phones)
        ids[:, text] = layout.start_of_speech
        ids[:, text + 1 :] = torch.tensor(prompt.codes) + layout.first_code
        most = int(lengths.max()) + SPARE
        cache = transformer.cache(ids.shape[1] + most, len(texts))
        hidden = transformer(network.embedding(ids), cache, positions(text, len(prompt.codes)))[:, -1]
        codes: list[list[int]] = [[] for _ in texts]
        ended = torch.zeros(len(texts), dtype=torch.bool)
        for step in range(most):
            begin(step / most)
            logits = network.head(hidden)
            logits[step < SHORTEST * lengths, layout.codes :] = -torch.inf
            drawn = torch.multinomial(self.sampler.probabilities(logits, ()), 1, generator=generator)[:, 0]
            ended |= drawn >= layout.codes
            if ended.all():
                break
            for row in (~ended).nonzero()[:, 0].tolist():
                codes[row].append(int(drawn[row]))
            following = drawn.clamp(max=layout.codes - 1) + layout.first_code
            place = torch.tensor([len(prompt.codes) + 1 + step])
            hidden = transformer(network.embedding(following)[:, None], cache, place)[:, -1]
        return [spoken if over else None for spoken, over in zip(codes, ended.tolist(), strict=True)]

    def record(self, manifest: Path, work: Path, follower: Follower) -> tuple[Utterances, Utterances]:
        return record_tokens(manifest, self.parts, work, follower.progress)

    def read_corpus(self, corpus: Path, work: Path) -> tuple[Utterances, Utterances]:
        return said_tokens(open_corpus(corpus), self.parts.coding.codec, self.folder.root / TOKENIZER, work)

    @cached_property
    def parts(self) -> LmMiniParts:
        """Encoder, front end and other parts besides the network."""
        request = LoadRequest(self.entry, self.root, "", torch.device("cpu"), lambda status: None, self.folder.check)
        return read_parts(request, self.folder)


def require_teacher(model: str) -> Model:
    """Catalogue entry of ``model``. Raises :class:`TrainingError` if it is not a speech language model."""
    chosen = entry(model)
    if reason := why_no_teacher(chosen):
        raise TrainingError(reason)
    return chosen


def read_teacher(model: str, folder: str, follower: Follower, vocoder: str = "") -> Teacher:
    """Teacher for ``model``; ``folder`` and ``vocoder`` override the defaults. Raises like :func:`require_teacher`, and
    :class:`CheckpointError`."""
    chosen = require_teacher(model)
    place = chosen.folder_at(folder)
    chosen.require_vocoder(vocoder)
    read: Callable[..., Teacher] = imported(chosen.teacher)
    return read(chosen, place, follower, *((vocoder,) if vocoder else ()))
