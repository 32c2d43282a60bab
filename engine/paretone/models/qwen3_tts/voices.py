"""Voices for Qwen3-TTS: recordings, named speakers, and voices that are described."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch

from paretone.audio.mel import resample_prompt
from paretone.audio.recording import read_recording
from paretone.errors import AudioError, SettingError, TextError
from paretone.last_used import LastUsed
from paretone.models.base import Voice
from paretone.models.families.voices import (
    USUAL_RATE,
    kept_codes,
    spoken_bytes,
    spoken_rate,
    transcript_notes,
    transcript_of,
)
from paretone.models.qwen3_tts import config
from paretone.models.qwen3_tts.checkpoint import OfficialFolder, TextTokenizer
from paretone.models.qwen3_tts.config import BASE, CUSTOM_VOICE, LONGEST_REFERENCE, TITLE, VOICE_DESIGN
from paretone.models.qwen3_tts.prompts import CHAT_OF_INSTRUCTION, CHAT_OF_TRANSCRIPT, VoiceOfPrompt
from paretone.models.qwen3_tts.speaker_encoder import SAMPLE_RATE
from paretone.models.qwen3_tts.speech_tokenizer import CodecDecoder, SpeechStream
from paretone.observer import Check, Status
from paretone.paths import data_folder
from paretone.reading import version
from paretone.setting.knobs import Values
from paretone.wording import beyond

NOBODY = VoiceOfPrompt()


@dataclass(frozen=True)
class VoicePrompt:
    """A voice and what the options say about it, ready for any text."""

    voice: VoiceOfPrompt = NOBODY
    instruction: tuple[int, ...] = ()
    language: str = "auto"
    streamed: bool = False
    rate: float = USUAL_RATE
    """Bytes of text spoken per second."""
    sound: SpeechStream | None = field(default=None, repr=False)
    """The codec's state after the recording, if that is continued."""
    notes: tuple[str, ...] = ()

    def seconds(self, text: str) -> float:
        return spoken_bytes(text) / self.rate


class VoiceReader:
    def __init__(self, folder: OfficialFolder, tokenizer: TextTokenizer, decoder: CodecDecoder) -> None:
        self._folder, self._tokenizer, self._decoder = folder, tokenizer, decoder
        self._kind = folder.kind
        self._speaker = folder.speaker_encoder() if self._kind == BASE else None
        self._heard: LastUsed[VoicePrompt] = LastUsed(2)

    def __call__(
        self, voice: Voice, options: Values, check: Check = lambda: None, status: Status = lambda text: None
    ) -> VoicePrompt:
        """Prepare a voice; ``check`` may raise to cancel. Raises :class:`AudioError`, :class:`TextError`,
        :class:`SettingError`, and :class:`paretone.errors.CheckpointError`."""
        if self._kind == BASE:
            continued = bool(options["continue"])
            key = (voice, version(voice.audio), continued)
            found = self._heard.of(key, lambda: self._read(voice, continued, check, status))
        elif voice.audio:
            raise SettingError(f"{TITLE} of this kind takes no recordings; choose one of its named voices.")
        elif self._kind == CUSTOM_VOICE:
            self._folder.marks.speaker(voice.id)
            found = VoicePrompt(VoiceOfPrompt(voice.id))
        else:
            found = VoicePrompt()
        instruction = str(options.get("instruction", "")).strip()
        if self._kind == VOICE_DESIGN and not instruction:
            raise TextError(f"Describe the voice first: the option “{config.DESCRIPTION.title}” is empty.")
        told = self._tokenizer.ids(instruction, CHAT_OF_INSTRUCTION) if instruction else ()
        language, streamed = str(options["language"]), bool(options["streamed_text"])
        return replace(found, instruction=told, language=language, streamed=streamed)

    def _read(self, voice: Voice, continued: bool, check: Check, status: Status) -> VoicePrompt:
        if not voice.audio:
            raise AudioError(f"{TITLE} of this kind speaks in the voice of a recording; choose one.")
        transcript = transcript_of(voice, f" Or switch “{config.CONTINUE.title}” off.") if continued else ""
        recording, name = read_recording(voice.audio), Path(voice.audio).name
        if recording.seconds > LONGEST_REFERENCE:
            raise AudioError(
                f"The recording {voice.audio} lasts {beyond(recording.seconds)}; {TITLE} takes up to "
                f"{LONGEST_REFERENCE:.0f} s here, and best 3 to 15 s. Cut it, and its transcript."
            )
        samples = resample_prompt(torch.from_numpy(recording.samples), recording.sample_rate, SAMPLE_RATE)
        assert self._speaker is not None
        embedding = self._speaker.of(samples.to(self._folder.device))
        if not continued:
            return VoicePrompt(VoiceOfPrompt(embedding=embedding), notes=recording.notes)
        codes = torch.from_numpy(self._codes(samples.numpy(), check, status)).long().to(self._folder.device)
        rate, mismatch = spoken_rate(transcript, recording.seconds, name, TITLE)
        sound = SpeechStream(self._decoder)
        sound.push(codes[None], check)
        ids = self._tokenizer.ids(transcript, CHAT_OF_TRANSCRIPT)
        notes = (*recording.notes, *transcript_notes(voice, mismatch))
        return VoicePrompt(VoiceOfPrompt("", embedding, codes, ids), rate=rate, sound=sound, notes=notes)

    def _codes(self, samples: np.ndarray, check: Check, status: Status) -> np.ndarray:
        """Codes (groups, frames) of a recording. The encoder is loaded only for new ones."""

        def encode() -> np.ndarray:
            status("Encoding the voice …")
            encoder = self._folder.encoder()
            found = encoder(torch.from_numpy(samples).to(self._folder.device), check)
            return found.cpu().numpy().astype(np.int32)

        fingerprint = self._folder.codec_shards.fingerprint(check)
        return kept_codes(data_folder() / "cache" / "qwen3-tts", samples, fingerprint, encode, 2)
