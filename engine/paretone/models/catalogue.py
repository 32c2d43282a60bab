"""Catalogue of models, voices and sentences. Torch-free."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from paretone.by_name import by_name, meant
from paretone.errors import AudioError, CheckpointError, SettingError
from paretone.front_end.pronunciations import in_force
from paretone.front_end.speakable import unread_transcript
from paretone.models.base import Voice
from paretone.models.cosyvoice2.config import OPTIONS as COSYVOICE2_OPTIONS
from paretone.models.cosyvoice2.config import FlowConfig
from paretone.models.f5.config import OPTIONS as F5_OPTIONS
from paretone.models.f5.config import VARIANTS as F5_VARIANTS
from paretone.models.files import config_file
from paretone.models.files.releases import APACHE, NON_COMMERCIAL
from paretone.models.llasa.config import OPTIONS as LLASA_OPTIONS
from paretone.models.megatts3.config import BUNDLED_OPTIONS as MEGATTS3_MINI_OPTIONS
from paretone.models.megatts3.config import ENCODER, LATENTS, no_latents
from paretone.models.megatts3.config import OPTIONS as MEGATTS3_OPTIONS
from paretone.models.omnivoice.config import OPTIONS as OMNIVOICE_OPTIONS
from paretone.models.voices import own_voice, shipped_voices
from paretone.paths import own_place, resource
from paretone.reading import require_regular, shown
from paretone.sampling.guidance import STRENGTH, Guidance, TwoWeightGuidance
from paretone.sampling.options import (
    CROSS_FADE,
    DEMASKING_OPTIONS,
    READING,
    REPETITION_PENALTY,
    SPEED,
    TEMPERATURE,
    TOP_K,
    TOP_P,
)
from paretone.setting.compatibility import owner_of_voice
from paretone.setting.knobs import NO_VALUES, Knob, Values

_SHORT_FADE = replace(CROSS_FADE, default=0.02)
LM_MINI_OPTIONS = (TEMPERATURE, TOP_K, TOP_P, REPETITION_PENALTY, SPEED, _SHORT_FADE, *READING)
OMNI_MINI_OPTIONS = (*DEMASKING_OPTIONS, SPEED, _SHORT_FADE, *READING)


F5 = "F5-TTS"
"""Kind of F5-TTS, E2-TTS and F5 mini."""


@dataclass(frozen=True)
class CatalogueEntry:
    id: str
    title: str
    summary: str
    family: str
    licence: str
    variant: str
    """Name of the architecture; ``""``: a sidecar in the folder describes it."""
    options: tuple[Knob, ...]
    default_options: Values = NO_VALUES
    """Values that differ from the knobs' defaults."""
    bundled: bool = False
    vocoder: str = "vocos-mel-24khz"
    guidance: Guidance = STRENGTH
    loader: str = "f5"
    """Name of the loader of its files; see :mod:`paretone.models.loading`."""
    weights: str = ""
    """Subfolder of the required weights."""
    released_voices: bool = False
    """Whether it speaks only in voices with released latents, ``name.wav`` and ``name.npy``, which it transcribes."""
    architectures: tuple[str, ...] = ()
    """Released architectures that its files may have; a sidecar in their folder describes any other."""
    official_exports: bool = False
    """Whether exported students and drafts replace files of the release; if not, they are Hugging Face checkpoints."""
    mel_steps: int = 0
    """Steps in which a language model's flow turns tokens into mel frames; 0 without a flow."""
    kind: str = ""
    """Name shared with other models of the same options, such as ``F5-TTS``, if it differs from its title."""

    @property
    def folder(self) -> Path:
        """Folder of its files, which may not exist yet."""
        return resource("models", self.id) if self.bundled else own_place(self.id)

    @property
    def vocoder_folder(self) -> Path:
        return self.folder.parent / self.vocoder

    @property
    def has_separate_vocoder(self) -> bool:
        """Whether its vocoder is a separate release, whose folder the user may choose."""
        return not self.bundled and self.loader in ("f5", "llasa")

    def require_vocoder(self, vocoder: str) -> None:
        """Raise :class:`CheckpointError` if a ``vocoder`` folder is given for a model that includes one."""
        if vocoder and not self.has_separate_vocoder:
            raise CheckpointError(f"{self.title} comes with its vocoder; leave out {shown(vocoder)}.")

    @property
    def shortens_voices(self) -> bool:
        """Whether it uses only the beginning of a long recording; see :mod:`paretone.audio.prompt`."""
        return self.bundled or self.kind == F5

    @property
    def available(self) -> bool:
        return self.available_in(self.folder)

    def available_in(self, folder: Path) -> bool:
        place = folder / self.weights
        return any(next(place.glob(f"*{suffix}"), None) for suffix in config_file.WEIGHTS)

    def options_with(self, **changes: object) -> Values:
        """All option values: the knobs' defaults, overridden by this model's defaults and ``changes``. The user's
        lexicon is a default of the bundled models."""
        values = {knob.name: knob.default for knob in self.options} | dict(self.default_options)
        if self.bundled and "pronunciations" not in changes:
            values["pronunciations"] = in_force()
        return Values.complete({**values, **changes}, {knob.name: knob.default for knob in self.options if knob.later})


def _official(variant: str, title: str, summary: str) -> CatalogueEntry:
    return CatalogueEntry(
        variant, title, summary, "flow", NON_COMMERCIAL, variant, F5_OPTIONS, architectures=tuple(F5_VARIANTS), kind=F5
    )


def _llasa(size: str, summary: str) -> CatalogueEntry:
    name = f"Llasa-{size}"
    return CatalogueEntry(
        name,
        f"LLaSA {size}",
        summary,
        "language",
        NON_COMMERCIAL,
        name,
        LLASA_OPTIONS,
        vocoder="xcodec2",
        loader="llasa",
        kind="LLaSA",
    )


MODELS: tuple[CatalogueEntry, ...] = (
    CatalogueEntry(
        "f5-mini",
        "F5 mini",
        "8 million parameters, five voices, English; ships with Paretone and speaks on any processor.",
        "flow",
        APACHE,
        "",
        (*F5_OPTIONS, *READING),
        default_options=Values(steps=12, guidance=0.7),
        bundled=True,
        vocoder="natural-vocoder",
        architectures=tuple(F5_VARIANTS),
        kind=F5,
    ),
    _official("F5TTS_v1_Base", "F5-TTS v1 Base", "336 million parameters, English and Chinese, voice cloning."),
    _official("F5TTS_Base", "F5-TTS Base (v0)", "The first release: 336 million parameters, English and Chinese."),
    _official("E2TTS_Base", "E2-TTS Base", "333 million parameters, a plain U-Net transformer without text encoder."),
    CatalogueEntry(
        "megatts3-mini",
        "MegaTTS 3 mini",
        "11 million parameters in the official layout, five voices, English; ships with Paretone.",
        "flow",
        APACHE,
        "megatts3-mini",
        (*MEGATTS3_MINI_OPTIONS, *READING),
        default_options=Values(steps=16, intelligibility=1.4, similarity=1.2),
        bundled=True,
        vocoder="natural-vocoder",
        guidance=TwoWeightGuidance(),
        loader="megatts3",
        weights="diffusion_transformer",
        kind="MegaTTS 3",
    ),
    CatalogueEntry(
        "MegaTTS3",
        "MegaTTS 3",
        "459 million parameters, English and Chinese; speaks only in voices whose latents were released.",
        "flow",
        APACHE,
        "MegaTTS3",
        MEGATTS3_OPTIONS,
        guidance=TwoWeightGuidance(),
        loader="megatts3",
        weights="diffusion_transformer",
        released_voices=True,
    ),
    CatalogueEntry(
        "lm-mini",
        "LM mini",
        "11 million parameters, token by token, five voices, English; ships with Paretone.",
        "language",
        APACHE,
        "lm-mini",
        LM_MINI_OPTIONS,
        bundled=True,
        vocoder="natural-vocoder",
        loader="lm_mini",
    ),
    CatalogueEntry(
        "omni-mini",
        "Omni mini",
        "9 million parameters in OmniVoice's layout, five voices, English; ships with Paretone.",
        "masked",
        APACHE,
        "omni-mini",
        OMNI_MINI_OPTIONS,
        default_options=Values(steps=16, position_temperature=2.5, guidance=0.5),
        bundled=True,
        vocoder="natural-vocoder",
        loader="omni_mini",
    ),
    CatalogueEntry(
        "CosyVoice2-0.5B",
        "CosyVoice 2",
        "506 million parameters on Qwen2; Chinese, English, Japanese, Korean; voice cloning, streaming.",
        "language",
        APACHE,
        "CosyVoice2-0.5B",
        COSYVOICE2_OPTIONS,
        loader="cosyvoice2",
        official_exports=True,
        mel_steps=FlowConfig().steps,
    ),
    _llasa("1B", "1.4 billion parameters, built with Llama 3.2, English and Chinese, voice cloning; 16 kHz."),
    _llasa("3B", "The same with 3.4 billion parameters; for a graphics card."),
    _llasa("8B", "The same with 8.6 billion parameters, built with Llama 3.1; for a large graphics card."),
    CatalogueEntry(
        "OmniVoice",
        "OmniVoice",
        "613 million parameters on Qwen3, 646 languages, voice cloning and description; all of a sentence at once.",
        "masked",
        NON_COMMERCIAL,
        "OmniVoice",
        OMNIVOICE_OPTIONS,
        loader="omnivoice",
    ),
)


def entry(model: str) -> CatalogueEntry:
    """The entry called ``model``. Raises :class:`SettingError` for unknown names."""
    return by_name(model, {one.id: one for one in MODELS}, "model", "models")


VOICES = "voices"
"""Subfolder of released voices in their model's folder."""


def voices(model: str = MODELS[0].id, folder: str = "") -> tuple[Voice, ...]:
    """The voices that come with ``model``, whose files lie in ``folder`` if given.

    Bundled voices are recordings with transcripts, usable by nearly every model; MegaTTS 3 can use only released ones,
    which the user puts into ``voices`` in its folder.
    """
    chosen = entry(model)
    if chosen.released_voices:
        there = sorted(((Path(folder) if folder else chosen.folder) / VOICES).glob("*.wav"))
        pairs = (path for path in there if path.with_suffix(LATENTS).is_file())
        return tuple(Voice(path.stem, path.stem.replace("_", " "), str(path), "") for path in pairs)
    return shipped_voices()


def voice_problem(audio: Path, model: str, folder: str = "", transcript: str = "") -> str:
    """Why ``model``, with its files in ``folder`` if given, cannot speak in the voice of a recording, or ``""``."""
    chosen = entry(model)
    place = Path(folder) if folder else chosen.folder
    if chosen.bundled and place == chosen.folder:
        return unread_transcript(transcript)
    encoder = place / ENCODER
    able = not chosen.released_voices or audio.with_suffix(LATENTS).is_file() or encoder.is_file()
    return "" if able else no_latents(audio)


def voice(name: str = "", model: str = MODELS[0].id, folder: str = "") -> Voice:
    """The voice of ``model`` called ``name``, by default the first. Raises :class:`SettingError` for unknown names."""
    known = voices(model, folder)
    for one in known:
        if name in ("", one.id):
            return one
    if entry(model).released_voices:
        place = (Path(folder) if folder else entry(model).folder) / VOICES
        listed = f"known voices: {', '.join(one.id for one in known)}" if known else "there is none yet"
        raise SettingError(
            f"{entry(model).title} has no voice{f' named {name!r}' if name else ''} ({listed}): its public release can "
            f"only speak in released voices. Put a recording and its latents (name.wav and name.npy) into {place}, or "
            "choose the recording itself, with its latents in the same folder."
        )
    was = owner_of_voice(name)
    why = f" any more: it was one of the earlier {was}" if was else ""
    raise SettingError(
        f"There is no voice named {name!r}{why}; {meant(name, [one.id for one in known], 'known voices:')} "
        "Use a recording of your own together with its transcript."
    )


def voice_or_recording(name: str, transcript: str = "", model: str = MODELS[0].id, folder: str = "") -> Voice:
    """The voice ``name`` of ``model``, or of the recording there with ``transcript``. Raises :class:`PlainError`."""
    recording = Path(name)
    if not name or name in {one.id for one in voices(model, folder)}:
        if transcript:
            raise AudioError("A transcript needs a recording; give its path as the voice.")
        return voice(name, model, folder)
    if not recording.exists() and not recording.suffix:
        return voice(name, model, folder)
    try:
        require_regular(recording)
    except FileNotFoundError:
        raise AudioError(f"The recording {recording} does not exist; check the path.") from None
    except OSError as error:
        raise AudioError(f"The recording {recording} cannot be read: {error.strerror or error}.") from None
    if problem := voice_problem(recording, model, folder, transcript):
        raise AudioError(problem)
    return own_voice(recording, transcript)


def sentences() -> tuple[str, ...]:
    return _lines("demo.txt")


def harvard_sentences() -> tuple[str, ...]:
    """Sentences for measuring intelligibility; no model here was trained on them."""
    return _lines("harvard.txt")


def unseen_sentences() -> tuple[str, ...]:
    """Everyday sentences as people write them; no model here was trained on them."""
    return _lines("unseen.txt")


def judged_sentences() -> tuple[str, ...]:
    """All test sentences. Training excludes them, and texts that share a run of words with one."""
    return (*harvard_sentences(), *unseen_sentences())


def _lines(name: str) -> tuple[str, ...]:
    text = resource("sentences", name).read_text(encoding="utf-8")
    return tuple(line.strip() for line in text.splitlines() if line.strip())
