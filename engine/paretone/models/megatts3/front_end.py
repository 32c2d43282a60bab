"""Front end of the official release: voices by aligner and latents, texts by grapheme and duration models.

``preprocess`` and the first half of ``forward`` of ``tts/infer_cli.py``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tokenize import TokenError
from zipfile import BadZipFile

import numpy as np
import torch
from torch import Tensor

from paretone.audio.recording import Recording, read_recording
from paretone.audio.resampling import resample
from paretone.errors import AudioError, TextError
from paretone.front_end.speakable import CHINESE, ENGLISH, HAN, WORD, has_letters, language_of, name_characters
from paretone.front_end.writing import write_out
from paretone.last_used import LastUsed
from paretone.measure.loudness import integrated_loudness
from paretone.models.base import Voice
from paretone.models.f5.text import split
from paretone.models.families.passages import Passages
from paretone.models.megatts3 import aligner
from paretone.models.megatts3.aligner import Aligner
from paretone.models.megatts3.checkpoint import GRAPHEMES, OfficialFolder
from paretone.models.megatts3.config import LATENTS, no_latents
from paretone.models.megatts3.duration_model import DurationModel, DurationPrompt, Tempo, settled_durations
from paretone.models.megatts3.graphemes import GraphemeModel
from paretone.models.megatts3.phones import MegaPassage, MegaPrompt, Timed
from paretone.models.megatts3.wavvae import LATENT_CHANNELS, WavVAE
from paretone.observer import Check
from paretone.reading import readable, require_regular, version
from paretone.setting.knobs import Values

# Cutting and normalising texts: rules of ``tts/infer_cli.py`` and ``tts/utils/text_utils/split_text.py``. Upstream
# treats everything but English as Chinese; here other languages are an error. Upstream normalises with
# WeTextProcessing, which needs a build of OpenFst: it is used if installed, otherwise our own rules are, for English.
ENGLISH_BYTES = 130
CHINESE_CHARACTERS, LOOK_AHEAD = 60, 30
MARKS = ("。.！!？?", "，,；;：:", "、…—-~～")
"""Marks for cutting Chinese, the best first; a later group is used only if no mark of an earlier one is near."""
FULL_WIDTH = dict(zip(".,!?;:", "。，！？；：", strict=True))
LONGEST_TOKENS, LONGEST_BYTES = 240, 300
"""Estimated tokens above which a segment is cut again, so that the grapheme model, which writes at most 256, can finish
it, and the bytes it is cut to. Upstream loses the rest of such a segment."""

_HALF_WIDTH = re.compile(r"(?<!\d)[.,!?;:]|[.,!?;:](?!\d)")


@dataclass(frozen=True)
class ReadText:
    language: str
    segments: tuple[str, ...]
    notes: tuple[str, ...] = ()


def read_text(text: str) -> ReadText:
    """Normalise and cut ``text``. Raises :class:`TextError` if it is empty or in another language."""
    if not text.strip():
        raise TextError("There is no text to speak; type a sentence.")
    language = language_of(text, "MegaTTS 3 speaks only English and Chinese")
    spoken, notes = _normalised(text, language)
    if not has_letters(spoken):
        raise TextError("Nothing in this text can be spoken; type a sentence in English or Chinese.")
    pieces = split(spoken, ENGLISH_BYTES) if language == ENGLISH else split_chinese(spoken)
    segments = [part for piece in pieces for part in _finishable(piece) if has_letters(part)]
    return ReadText(language, tuple(segments), notes)


def _normalised(text: str, language: str) -> tuple[str, tuple[str, ...]]:
    official = _official_normaliser(language)
    if official is not None:
        return official(text), ()
    if language == CHINESE:
        digits = any(map(str.isdigit, text))
        note = (
            "Numbers in the text were left as they are, which the model may misread; to have them written out, install "
            "WeTextProcessing, or write them in words."
        )
        return text.strip(), (note,) if digits else ()
    result = write_out(text)
    notes = []
    if WORD.findall(result.text.lower()) != WORD.findall(text.lower()):
        notes.append(
            "Numbers and abbreviations were written out by Paretone's own rules, because WeTextProcessing, which the "
            "official code uses, is not installed."
        )
    if result.dropped:
        notes.append(f"Characters that cannot be spoken were left out: {name_characters(result.dropped)}.")
    return result.text, tuple(notes)


_OFFICIAL: LastUsed[Callable[[str], str]] = LastUsed(2)


def _official_normaliser(language: str) -> Callable[[str], str] | None:
    """WeTextProcessing with the official options, if installed."""
    options = {} if language == ENGLISH else {"remove_erhua": False, "remove_interjections": False}
    try:
        if language == ENGLISH:
            from tn.english.normalizer import Normalizer
        else:
            from tn.chinese.normalizer import Normalizer
    except ImportError:
        return None
    return _OFFICIAL.of((Normalizer, language), lambda: Normalizer(overwrite_cache=False, **options).normalize)


def split_chinese(text: str) -> list[str]:
    """Cut ``text`` after every 60 Chinese characters, at the best mark less than 30 characters later or anywhere
    before, and make marks outside numbers full-width."""
    pieces = []
    start = place = 0
    while place < len(text):
        if len(HAN.findall(text, start, place + 1)) >= CHINESE_CHARACTERS:
            near = (*range(place + 1, min(place + LOOK_AHEAD, len(text))), *range(place, start - 1, -1))
            end = next((end + 1 for marks in MARKS for end in near if text[end] in marks), place + 1)
            pieces.append(text[start:end])
            start, place = end, max(place, end - 1)
        place += 1
    if start < len(text):
        pieces.append(text[start:])
    return [_HALF_WIDTH.sub(lambda mark: FULL_WIDTH[mark[0]], piece) for piece in pieces]


def _finishable(piece: str) -> list[str]:
    """Cut ``piece`` again if it is too long for the grapheme model."""
    han = len(HAN.findall(piece))
    too_long = 2 * han + 0.8 * (len(piece) - han) > LONGEST_TOKENS
    return split(piece, LONGEST_BYTES, break_long=True) if too_long else [piece]


# Voices of MegaTTS 3: a recording, and its latents from the release's own encoder.
#
# The encoder was withheld from the release, so a voice is a pair of files: ``name.wav``, and ``name.npy`` next to it
# with float32 (1, T, 32), at 25 T per second. If the user has the encoder's weights, the recording is enough.
SAMPLE_RATE = 24000
TAIL = 12000
"""Samples of silence appended to every recording."""
FRAMES_PER_LATENT = 4
SPARE = 2
"""Maximum excess latents in a file, from rounding in its creation."""
_UNREADABLE = (OSError, ValueError, TypeError, OverflowError, EOFError, SyntaxError, TokenError, BadZipFile)
"""Errors of numpy for files that are damaged or not arrays: their headers are Python literals or zip archives."""


@dataclass(frozen=True)
class PromptRecording:
    samples: np.ndarray = field(repr=False)
    """(n,) float32 at 24 kHz, including the appended silence."""
    lufs: float
    """Integrated loudness (BS.1770), the target for all speech."""
    seconds: float
    """Length of the recording without the appended silence."""
    notes: tuple[str, ...] = ()

    @property
    def frames(self) -> int:
        """Frames of 10 ms for the aligner, a multiple of eight."""
        heard = -(-len(self.samples) * aligner.SAMPLE_RATE // SAMPLE_RATE)
        return heard // aligner.HOP // aligner.FRAMES_MULTIPLE * aligner.FRAMES_MULTIPLE

    @property
    def latents(self) -> int:
        return self.frames // FRAMES_PER_LATENT


def prepare_recording(recording: Recording, window: int) -> PromptRecording:
    """Resample to 24 kHz and append silence up to one sample below a multiple of ``window`` (``win_size`` of the
    official configuration), then :data:`TAIL` more."""
    samples = resample(recording.samples, recording.sample_rate, SAMPLE_RATE)
    samples = np.pad(samples, (0, (-1 - len(samples)) % window + TAIL))
    return PromptRecording(samples, integrated_loudness(samples, SAMPLE_RATE).lufs, recording.seconds, recording.notes)


def read_latents(path: Path, recording: PromptRecording, audio: Path) -> Tensor:
    """Latents of a ``.npy`` file, (1, T, 32) or (T, 32), cut to the number that ``recording`` needs.

    Raises :class:`AudioError` for files that are not such an array, contain non-finite numbers, or belong to a
    recording of another length. Nothing is ever unpickled.
    """
    again = "download the file that was released with this recording again"
    with readable(AudioError, f"{path} is not a file of latents", f"{again}", *_UNREADABLE):
        require_regular(path)
        # Memory-mapped, so that a header that promises too much data fails first.
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    if not isinstance(array, np.ndarray):
        array.close()
        raise AudioError(f"{path} is an archive of arrays, not one array of latents; {again}.")
    if not np.issubdtype(array.dtype, np.floating):
        raise AudioError(f"The latents in {path} are of the type {array.dtype}, not float32; {again}.")
    shape = " × ".join(map(str, array.shape)) or "one number"
    if array.ndim not in (2, 3) or array.shape[-1] != LATENT_CHANNELS or (array.ndim == 3 and len(array) != 1):
        raise AudioError(
            f"The latents in {path} have the shape {shape}; it should be 1 × T × {LATENT_CHANNELS}, with T 25 to the "
            f"second; {again}."
        )
    latents = torch.from_numpy(np.array(array, np.float32)).reshape(1, -1, LATENT_CHANNELS)
    if not latents.isfinite().all():
        raise AudioError(f"The latents in {path} hold values that are not numbers; {again}.")
    count, needed = latents.shape[1], recording.latents
    if not needed <= count <= needed + SPARE:
        raise AudioError(
            f"{path.name} has {count} latents ({count / 25:.2f} s), but {audio.name} needs {needed} "
            f"({needed / 25:.2f} s, with the silence after it): they do not belong together; {again}."
        )
    return latents[:, :needed]


SEED = 0
"""Draws the disturbance of durations and an encoder's latents, alike for all takes."""
REMEMBERED_SEGMENTS = 256
SHOWN = 40
"""Characters of a segment shown in a note."""


class OfficialFrontEnd:
    """Prepares voices and texts. Caches the last voice, the last text, which is requested repeatedly, and the phones of
    segments, which take longest. See :class:`paretone.models.megatts3.adapter.FrontEnd`."""

    def __init__(
        self, aligner: Aligner, durations: DurationModel, graphemes: GraphemeModel, wavvae: WavVAE, window: int
    ) -> None:
        self._aligner, self._durations, self.graphemes = aligner, durations, graphemes
        self._wavvae, self._window = wavvae, window
        self._check: Check = lambda: None
        # ``check`` is not an argument, because the cache key is the segment alone.
        remembered = functools.lru_cache(maxsize=REMEMBERED_SEGMENTS)
        self._read = remembered(lambda segment: self.graphemes(segment, self._check))
        self._heard: LastUsed[tuple[MegaPrompt, DurationPrompt]] = LastUsed(1)
        self._texts: LastUsed[Passages[MegaPassage]] = LastUsed(1)

    @classmethod
    def load(cls, folder: OfficialFolder, wavvae: WavVAE, device: torch.device | str = "cpu") -> OfficialFrontEnd:
        """Load the front end of an official folder; ``wavvae`` is already loaded, because it decodes as well. Raises
        :class:`paretone.errors.CheckpointError`."""
        return cls(
            folder.aligner().to(device),
            folder.duration_model().to(device),
            GraphemeModel.load(folder.root / GRAPHEMES, device),
            wavvae,
            folder.window(),
        )

    def __call__(
        self, text: str, voice: Voice, options: Values, check: Check, seed: int | None = None
    ) -> tuple[MegaPrompt, Passages[MegaPassage]]:
        audio = Path(voice.audio)
        tempo = Tempo(stretch=1 / float(options["speed"]), disturbance=float(options["disturbance"]) / 100)
        key = self._key(audio), text, tempo
        prompt = self.prompt(audio, check=check)
        return prompt, self._texts.of(key, lambda: self.passages(text, audio, tempo, check=check))

    def prompt(self, audio: Path, check: Check = lambda: None) -> MegaPrompt:
        """Prompt of a recording with latents, aligned; ``check`` may cancel. Raises
        :class:`paretone.errors.AudioError`."""
        return self._prepared(audio, check)[0]

    def passages(
        self, text: str, audio: Path, tempo: Tempo = Tempo(), check: Check = lambda: None
    ) -> Passages[MegaPassage]:
        """``text`` in the voice of ``audio``; ``check`` may raise to cancel. Raises
        :class:`paretone.errors.AudioError` and :class:`paretone.errors.TextError`."""
        read = read_text(text)
        prompt, heard = self._prepared(audio, check)
        generator = torch.Generator().manual_seed(SEED)
        notes, passages = list(read.notes), []
        self._check = check
        for number, segment in enumerate(read.segments):
            phones = self._read(segment)
            beginning = segment if len(segment) <= SHOWN else f"{segment[:SHOWN]}…"
            if not phones.finished:
                notes.append(f"The model did not finish reading “{beginning}”; its end may not be spoken.")
            if phones.unknown:
                sounds = "one sound" if phones.unknown == 1 else f"{phones.unknown} sounds"
                notes.append(f"The model has no phones for {sounds} of “{beginning}”; check how it is spoken.")
            codes = self._durations.predict(heard, self._row(phones.phones), self._row(phones.tones), check)
            durations = settled_durations(
                codes,
                phones.phones,
                self._durations.config.codes,
                is_first=number == 0,
                is_last=number == len(read.segments) - 1,
                tempo=tempo,
                generator=generator,
            )
            spoken = Timed(phones.phones, phones.tones, tuple(durations))
            passages.append(MegaPassage.of(segment, prompt.spoken, spoken))
        return Passages(tuple(passages), tuple(notes))

    def _prepared(self, audio: Path, check: Check) -> tuple[MegaPrompt, DurationPrompt]:
        return self._heard.of(self._key(audio), lambda: self._listen(audio, check))

    def _key(self, audio: Path) -> tuple[object, ...]:
        """Changes with the files of a voice."""
        return audio, version(audio), version(audio.with_suffix(LATENTS))

    def _listen(self, audio: Path, check: Check) -> tuple[MegaPrompt, DurationPrompt]:
        recording, path = prepare_recording(read_recording(audio), self._window), audio.with_suffix(LATENTS)
        if path.is_file():
            latents = read_latents(path, recording, audio)
        elif self._wavvae.encoder is None:
            raise AudioError(no_latents(audio))
        else:
            samples = torch.from_numpy(recording.samples)[None].to(self._wavvae.proj_to_decoder.weight.device)
            encoded = self._wavvae.encode(samples, torch.Generator().manual_seed(SEED))
            latents = encoded[:, : recording.latents].cpu()
        heard = torch.from_numpy(resample(recording.samples, SAMPLE_RATE, aligner.SAMPLE_RATE))
        spoken = self._aligner.align(heard.to(self._device), check)
        prompt = MegaPrompt(latents, spoken, recording.lufs, recording.seconds, recording.notes)
        rows = (self._row(part) for part in (spoken.phones, spoken.tones, spoken.durations))
        return prompt, self._durations.read_prompt(*rows)

    @property
    def _device(self) -> torch.device:
        return self._durations.enc_proj.weight.device

    def _row(self, numbers: tuple[int, ...]) -> Tensor:
        return torch.tensor([numbers], device=self._device)
