"""Front end of CosyVoice 2: recordings and passages.

Upstream recomputes the prompt for every sentence. Here the results of the slow models are cached in memory and on disk,
by a hash of the samples and the models, so that each voice is computed once.
"""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from paretone.audio.mel import MelFrontEnd, resample_prompt
from paretone.audio.recording import Recording, read_recording
from paretone.errors import AudioError, CheckpointError, TextError
from paretone.files import write_atomically
from paretone.front_end.writing import spell_numbers
from paretone.last_used import LastUsed
from paretone.models.base import Voice
from paretone.models.cosyvoice2.config import (
    FASTEST_TRANSCRIPT,
    FRAMES_PER_TOKEN,
    INSTRUCT,
    INSTRUCTION,
    LEAST_TOKENS,
    MODE,
    MOST_TOKENS,
    SLOWEST_TRANSCRIPT,
    USUAL_TOKENS,
    ZERO_SHOT,
)
from paretone.models.cosyvoice2.language_model import PromptIds
from paretone.models.cosyvoice2.speech_tokenizer import ENCODER_RATE, MEL, SPEECH_RATE, RecordingEncoder
from paretone.models.cosyvoice2.text import END_OF_PROMPT, TextTokenizer, normalised, read_text
from paretone.models.cosyvoice2.token_to_mel import AcousticPrompt
from paretone.models.families.passages import Passages, TokenPassage
from paretone.models.families.voices import transcript_notes
from paretone.observer import Check
from paretone.paths import data_folder
from paretone.wording import beyond

LONGEST_SECONDS = 30.0
REMEMBERED = 16
"""Number of voices cached in memory."""
FORMAT = "1"
"""Part of file names; to be changed with the content."""


@dataclass(frozen=True)
class VoicePrompt:
    acoustic: AcousticPrompt = field(repr=False)
    """On the CPU."""
    seconds: float
    notes: tuple[str, ...] = ()

    @property
    def tokens(self) -> tuple[int, ...]:
        return tuple(self.acoustic.tokens[0].tolist())


class VoicePrompts:
    """Prepares recordings with the models of one release."""

    def __init__(
        self,
        encoder: RecordingEncoder,
        codes: int,
        speaker_width: int,
        folder: Path | None = None,
        mel: MelFrontEnd = MEL,
    ) -> None:
        """``codes`` and ``speaker_width``: limits of the other models; ``folder``: disk cache; ``mel``: the flow's."""
        self._encoder, self._codes, self._speaker_width, self._mel = encoder, codes, speaker_width, mel
        self._folder = folder or data_folder() / "cache" / "cosyvoice2"
        self._ready: LastUsed[VoicePrompt] = LastUsed(REMEMBERED)

    def __call__(self, audio: Path, check: Check = lambda: None) -> VoicePrompt:
        """Prepare the recording ``audio``; ``check`` may raise to cancel. Raises :class:`AudioError`, and
        :class:`CheckpointError` if a model is unusable."""
        recording = read_recording(audio)
        if recording.seconds > LONGEST_SECONDS:
            raise AudioError(
                f"The recording {audio} lasts {beyond(recording.seconds)}, but CosyVoice takes at most "
                f"{LONGEST_SECONDS:.0f} s; cut it, and its transcript, best to 5 to 12 s."
            )
        parts = FORMAT, *self._encoder.fingerprints(check), str(recording.sample_rate)
        digest = hashlib.sha256(" ".join(parts).encode())
        digest.update(recording.samples.tobytes())
        key = digest.hexdigest()
        return self._ready.of(key, lambda: self._prepared(recording, *self._heard(key, recording, check)))

    def _heard(self, key: str, recording: Recording, check: Check) -> tuple[Tensor, Tensor]:
        """Speech tokens (n,) int64 and speaker (192,) float32 of a recording, by the slow models."""
        path = self._folder / f"{key}.safetensors"
        found = _read(path)
        if found is not None:
            return found
        samples = resample_prompt(torch.from_numpy(recording.samples), recording.sample_rate, ENCODER_RATE)
        check()
        tokens = self._encoder.tokens(samples)
        check()
        speaker = self._encoder.speaker(samples)
        self._require_fit(tokens, speaker)
        heard = {"tokens": torch.from_numpy(tokens), "speaker": torch.from_numpy(speaker)}
        # If the folder is not writable, the next start encodes the recording again.
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, save(heard))
        return heard["tokens"], heard["speaker"]

    def _require_fit(self, tokens: np.ndarray, speaker: np.ndarray) -> None:
        """Raise :class:`CheckpointError` if the result is not valid for the other models."""
        apart = "they do not belong together. Download the official release again."
        if len(tokens) and not 0 <= tokens.min() <= tokens.max() < self._codes:
            raise CheckpointError(
                f"{self._encoder.tokenizer_path} gives the speech token {tokens.max()}, but the language model knows "
                f"{self._codes} of them: {apart}"
            )
        if len(speaker) != self._speaker_width:
            raise CheckpointError(
                f"{self._encoder.speaker_path} gives {len(speaker)} numbers for a speaker, but the flow takes "
                f"{self._speaker_width}: {apart}"
            )

    def _prepared(self, recording: Recording, tokens: Tensor, speaker: Tensor) -> VoicePrompt:
        mel = self._mel(resample_prompt(torch.from_numpy(recording.samples), recording.sample_rate, SPEECH_RATE))[0]
        # Both clocks must agree; the shorter one decides.
        count = min(len(mel) // FRAMES_PER_TOKEN, len(tokens))
        if not count:
            raise AudioError("The reference recording is too short; choose a longer one.")
        acoustic = AcousticPrompt(tokens[None, :count], mel[None, : count * FRAMES_PER_TOKEN], speaker[None])
        return VoicePrompt(acoustic, recording.seconds, recording.notes)


def _read(path: Path) -> tuple[Tensor, Tensor] | None:
    """The tokens and the speaker cached at ``path``, or ``None`` if they are absent or unusable."""
    try:
        found = load(path.read_bytes())
        tokens, speaker = found["tokens"], found["speaker"]
    except (OSError, SafetensorError, KeyError):
        return None
    sound = tokens.dtype == torch.int64 and tokens.dim() == speaker.dim() == 1
    return (tokens, speaker) if sound and speaker.isfinite().all() else None


# Passages of CosyVoice 2: voice and instruction or transcript, followed by one piece of text.
#
# Modes of ``cli/cosyvoice.py``: in *zero-shot* the language model reads the transcript and continues the recording; in
# *cross-lingual* it gets neither; in *instruct* it reads an instruction instead. The flow always gets the recording.
_INSTRUCTED = f"“{MODE.titles[MODE.values.index(INSTRUCT)]}”"
SHORT_TEXT = 0.5
"""Share of the transcript's length below which upstream warns of a short text."""


@dataclass(frozen=True)
class CosyPrompt:
    voice: VoicePrompt = field(repr=False)
    ids: PromptIds
    notes: tuple[str, ...] = ()
    transcript: int = 0
    """Number of the transcript's ids, with which the prompt's text ends."""

    @property
    def tokens_per_text(self) -> float:
        """Expected speech tokens per text token."""
        if not (self.transcript and self.ids.speech):
            return USUAL_TOKENS
        return min(max(len(self.ids.speech) / self.transcript, LEAST_TOKENS), MOST_TOKENS)


def prepare(
    text: str, mode: str, instruction: str, voice: Voice, heard: VoicePrompt, tokenizer: TextTokenizer, prefix: str = ""
) -> tuple[CosyPrompt, Passages[TokenPassage]]:
    """Prepare ``text`` to follow the ``voice`` with the prompt ``heard``; ``instruction`` applies in its ``mode``. All
    prompts begin with ``prefix``, which lets zero-shot follow an instruction, too.

    Raises :class:`TextError` for an instruction that is missing or within the text, and :class:`AudioError` for a
    recording without a required transcript.
    """
    instructed = _instructed(text, mode, instruction, prefix)
    read = read_text(text, tokenizer.count)
    if mode == ZERO_SHOT:
        prompt = _continued(voice, heard, tokenizer, instructed)
    else:
        prompt = CosyPrompt(heard, PromptIds(tuple(tokenizer.encode(instructed))), heard.notes)
    passages = tuple(_passage(piece, prompt, tokenizer) for piece in read.pieces)
    notes, length = read.notes, sum(len(passage.ids) for passage in passages)
    if prompt.ids.speech and length < SHORT_TEXT * prompt.transcript:
        notes = *notes, "The text is much shorter than the recording's transcript, which may make it sound worse."
    if instruction.strip() and not _follows(mode, prefix):
        notes = *notes, f"The instruction was ignored: choose the mode {_INSTRUCTED}."
    return prompt, Passages(passages, notes)


def _follows(mode: str, prefix: str) -> bool:
    """Whether an instruction is followed."""
    return mode == INSTRUCT or bool(prefix and mode == ZERO_SHOT)


def _instructed(text: str, mode: str, instruction: str, prefix: str) -> str:
    """Beginning of the prompt: prefix and instruction with their end mark, or ``""``."""
    instruction = instruction.strip()
    if END_OF_PROMPT in text or END_OF_PROMPT in instruction:
        raise TextError(
            f"{END_OF_PROMPT} is inserted automatically; leave it out, write how to speak into the option "
            f"“{INSTRUCTION.title}”, and choose {_INSTRUCTED} as the mode."
        )
    if not _follows(mode, prefix):
        return prefix and prefix + END_OF_PROMPT
    if not instruction and mode == INSTRUCT:
        raise TextError(f"There is no instruction; write how to speak into the option “{INSTRUCTION.title}”.")
    return " ".join(filter(None, (prefix, instruction))) + END_OF_PROMPT


def _continued(voice: Voice, heard: VoicePrompt, tokenizer: TextTokenizer, instructed: str) -> CosyPrompt:
    transcript, _ = normalised(voice.transcript)
    ids = tokenizer.encode(transcript)
    if not ids:
        error = AudioError(
            f"Zero-shot needs a transcript of the recording {voice.audio}; type it, or choose the mode “Cross-lingual”."
        )
        error.lacks_transcript = True
        raise error
    ratio = len(heard.tokens) / len(ids)
    mismatch = ""
    if not FASTEST_TRANSCRIPT <= ratio <= SLOWEST_TRANSCRIPT:
        amount = "long" if ratio < FASTEST_TRANSCRIPT else "short"
        mismatch = (
            f"The transcript is too {amount} for the recording's {heard.seconds:.1f} s; if they do not "
            "match, CosyVoice repeats, drops or invents words."
        )
    notes = (*heard.notes, *transcript_notes(voice, mismatch))
    return CosyPrompt(heard, PromptIds((*tokenizer.encode(instructed), *ids), heard.tokens), notes, len(ids))


def _passage(text: str, prompt: CosyPrompt, tokenizer: TextTokenizer) -> TokenPassage:
    ids = tuple(tokenizer.encode(text))
    # Digits that were not written out take longer than their tokens suggest.
    spoken = tokenizer.count(spell_numbers(text)) if any(map(str.isdigit, text)) else len(ids)
    return TokenPassage(text.strip(), max(1, round(prompt.tokens_per_text * max(spoken, len(ids)))), ids)
