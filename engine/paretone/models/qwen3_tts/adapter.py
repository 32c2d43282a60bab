"""Qwen3-TTS: implementation of :class:`paretone.models.families.language.LanguageSpeech`. Its tokens are the first
codes of frames; see :mod:`paretone.models.qwen3_tts.frames`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import torch

from paretone import device as devices
from paretone.errors import CheckpointError, SettingError
from paretone.front_end.speakable import spoken_chunks
from paretone.models.base import ModelInfo, OfficialIds, StudentWeights, Voice
from paretone.models.families.language import LanguageSpeech
from paretone.models.families.language_network import DraftTensors, LanguageNetwork
from paretone.models.families.passages import Decoded, Passages, TokenDecoder, TokenPassage
from paretone.models.loading import LoadRequest
from paretone.models.qwen3_tts.checkpoint import OfficialFolder, TextTokenizer
from paretone.models.qwen3_tts.config import LONGEST_DESCRIBED, LONGEST_PASSAGE, MOST_FRAMES, TITLE, VOICE_DESIGN
from paretone.models.qwen3_tts.frames import FrameModel
from paretone.models.qwen3_tts.prompts import VoiceOfPrompt, prompt_of
from paretone.models.qwen3_tts.speaker_encoder import SAMPLE_RATE
from paretone.models.qwen3_tts.speech_tokenizer import CodecDecoder, SpeechStream
from paretone.models.qwen3_tts.talker import LEAST_FRAMES, Talker
from paretone.models.qwen3_tts.voices import VoicePrompt, VoiceReader
from paretone.observer import SILENT, Check, Observer
from paretone.sampling.autoregressive import Request, longest_speech
from paretone.sampling.tokens import Nucleus, TokenSampler
from paretone.setting.knobs import Values
from paretone.setting.plan import LanguagePlan

SPARE = 2
"""Frames of a request beyond the longest speech, so that the guard reports a runaway before the request ends."""


class FrameDecoder(TokenDecoder):
    """Decodes one passage; codes come frame by frame, in one row. Equal for every number of frames ``per_call``."""

    def __init__(self, codec: CodecDecoder, per_call: int, after: SpeechStream | None = None) -> None:
        """``after``: the speech that it continues."""
        self._codec, self._per_call, self._after = codec, per_call, after
        self._groups = codec.config.codebooks
        self._stream = self._new_stream()
        self._codes: list[int] = []
        self._calls = 0

    def push(self, codes: Sequence[int]) -> np.ndarray:
        self._codes.extend(codes)
        wanted = self._groups * self._per_call * (self.patience if self._calls else 1)
        return self._decoded() if len(self._codes) >= wanted else np.zeros(0, np.float32)

    def finish(self) -> np.ndarray:
        return self._decoded()

    def whole(self, codes: Sequence[int]) -> Decoded:
        if len(codes) % self._groups:
            raise SettingError(
                f"{TITLE} has frames of {self._groups} codes, and {len(codes)} are not whole frames; give all codes of "
                "each frame."
            )
        return Decoded(self._heard(self._new_stream(), codes))

    def _decoded(self) -> np.ndarray:
        codes, self._codes = self._codes, []
        self._calls += 1
        return self._heard(self._stream, codes)

    def _heard(self, stream: SpeechStream, codes: Sequence[int]) -> np.ndarray:
        device = next(self._codec.parameters()).device
        grid = torch.tensor(codes, dtype=torch.long, device=device).view(-1, self._groups).T
        return stream.push(grid[None], self.check)[0].cpu().numpy()

    def _new_stream(self) -> SpeechStream:
        return SpeechStream(self._codec) if self._after is None else self._after.fork()


class QwenSpeech(LanguageSpeech):
    def __init__(
        self, info: ModelInfo, folder: OfficialFolder, talker: Talker, tokenizer: TextTokenizer, codec: CodecDecoder
    ) -> None:
        model = FrameModel.of(talker)

        def student(student: StudentWeights) -> LanguageNetwork:
            return LanguageNetwork(FrameModel.of(folder.student(student), model))

        rate = info.sample_rate / codec.config.samples_per_frame
        super().__init__(info, LanguageNetwork(model), rate, student, _no_draft)
        self._config, self._marks, self._tables = talker.config, folder.marks, talker.tables(model.predictor.tables)
        self.tokenizer, self.codec, self._voices = tokenizer, codec, VoiceReader(folder, tokenizer, codec)
        self._longest = LONGEST_DESCRIBED if folder.kind == VOICE_DESIGN else LONGEST_PASSAGE

    @torch.inference_mode()
    def first_run(self, network: LanguageNetwork) -> None:
        tokens = cast("FrameModel", network.tokens)
        ids = self.tokenizer.ids("a")
        voice = VoiceOfPrompt(embedding=self._tables.first[0])
        prompt = prompt_of(self._tables, self._marks, ids, voice)
        complete = tokens.completing(prompt, Nucleus(0.9, 50))
        cache = tokens.cache(len(prompt.embedded) + 1)
        hidden = tokens.transformer(prompt.embedded[None], cache)
        frame = complete(hidden[0, -1], 0, 0, lambda: 0.5)
        tokens.logits(tokens.transformer(frame.embedded[None, None], cache)[0])
        FrameDecoder(self.codec, 1).push(frame.codes)
        devices.synchronise(tokens.device)

    def make_ready(self, plan: LanguagePlan, observer: Observer = SILENT, voice: Voice | None = None) -> None:
        super().make_ready(plan, observer)
        if voice is not None:
            self._voices(voice, plan.options, observer.check, observer.status)

    def prepare(
        self, text: str, voice: Voice, options: Values, check: Check, seed: int | None = None
    ) -> tuple[VoicePrompt, Passages[TokenPassage]]:
        prompt = self._voices(voice, options, check)
        pieces = spoken_chunks(text, prompt.seconds, self._longest)
        return prompt, Passages(tuple(self._passage(piece, prompt) for piece in pieces))

    def _passage(self, text: str, prompt: VoicePrompt) -> TokenPassage:
        expected = max(1, round(prompt.seconds(text) * self.token_rate))
        return TokenPassage(text, expected, self.tokenizer.ids(text))

    def request(self, network: LanguageNetwork, passage: TokenPassage, prompt: VoicePrompt, options: Values) -> Request:
        tokens = cast("FrameModel", network.tokens)
        who = prompt.voice, prompt.language, prompt.instruction, prompt.streamed
        found = prompt_of(self._tables, self._marks, passage.ids, *who)
        length = len(found.embedded)
        return Request(
            found.embedded[None],
            torch.arange(length, device=found.embedded.device),
            length,
            LEAST_FRAMES,
            min(MOST_FRAMES, int(longest_speech(passage.expected, self.token_rate)) + SPARE),
            shared=found.shared,
            complete=tokens.completing(found, Nucleus.of(options, prefix="inner_")),
        )

    def token_sampler(self, passage: TokenPassage, prompt: VoicePrompt, options: Values) -> TokenSampler:
        return Nucleus.of(options)

    def decoder(self, prompt: VoicePrompt, seed: int, options: Values) -> FrameDecoder:
        return FrameDecoder(self.codec, int(options["frames_per_call"]), prompt.sound)

    @property
    def official_ids(self) -> OfficialIds:
        return OfficialIds(self._config.rows, 0, self._config.codes, (self._config.end,))

    def official_prompt(self, passage: TokenPassage, prompt: VoicePrompt) -> tuple[int, ...]:
        raise SettingError(
            f"A prompt of {TITLE} has no ids of its own: each of its positions is the sum of a text and of a code. "
            "Give other programs the text."
        )


def _no_draft(draft: object) -> DraftTensors:
    raise CheckpointError(f"{TITLE} has no trained drafts; do without one.")


def load_qwen3_tts(request: LoadRequest) -> QwenSpeech:
    """Load all parts but the encoder of recordings, which is loaded with the first new one. Raises
    :class:`CheckpointError`."""
    chosen, device = request.entry, request.device
    request.require_folder("config.json and speech_tokenizer")
    dtype = devices.computed_in(device)
    folder = OfficialFolder.read(request.place, device, dtype, request.check)
    folder.require(chosen)
    config, tokenizer = folder.talker_config, folder.tokenizer()
    request.status("Reading the speech tokenizer …")
    codec = folder.decoder()
    if (codec.config.codebooks, codec.config.codes) != (config.groups, config.codes):
        raise CheckpointError(
            f"{folder.codec.where} has frames of {codec.config.codebooks} × {codec.config.codes} codes, but the model "
            f"{config.groups} × {config.codes}: they do not belong together. Download the release again."
        )
    request.status(f"Reading {chosen.title} …")
    talker = folder.talker()
    info = request.info(
        checkpoint=folder.shards.where,
        fingerprint=folder.shards.fingerprint(request.check),
        precision=devices.name_of(dtype),
        precisions=(devices.name_of(dtype),),
        sample_rate=SAMPLE_RATE,
        layers=config.transformer.layers,
        branches=1,
        parameters=sum(one.numel() for one in talker.parameters()),
        text_front_end="qwen3",
        codes_per_token=config.groups,
    )
    return QwenSpeech(info, folder, talker, tokenizer, codec)
