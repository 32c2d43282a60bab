"""Declaration of a model: what an entry point of the group ``paretone.models`` names. Torch-free.

A package names a :class:`Model`, or a tuple of them for several sizes of one. Whatever needs torch is named as
``"package.module:name"`` and imported when it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from paretone.errors import CheckpointError, SettingError
from paretone.front_end.pronunciations import in_force
from paretone.models.base import FLOW, MEL_FLOW, MelFlow
from paretone.models.files import config_file
from paretone.models.files.releases import Release
from paretone.paths import own_place, resource
from paretone.reading import shown
from paretone.sampling.guidance import STRENGTH, Guidance
from paretone.setting.knobs import NO_VALUES, Knob, Values


@dataclass(frozen=True)
class Voices:
    """Voices that a model takes: by default recordings with their transcripts."""

    shortened: bool = False
    """Whether it uses only the beginning of a long recording; see :mod:`paretone.audio.prompt`."""
    latents: str = ""
    """Suffix of the file that must lie next to a recording, such as ``.npy``: the model takes only voices whose latents
    were released, and transcribes them itself. ``""``: it takes any recording."""
    encoder: str = ""
    """File in the model's folder that makes such latents; with it any recording can be used."""
    no_latents: Callable[[Path], str] = lambda audio: f"{audio} has no latents, which this model needs."
    """Why a recording without latents cannot be used and what to do, as sentences."""
    wordless: bool = False
    """Whether an option lets it take a recording without its transcript."""
    named: Callable[[Path], tuple[tuple[str, str], ...]] | None = None
    """Ids and titles of its named voices, given its folder, which may not exist: it speaks in these, and takes no
    recordings. Must not raise."""

    @property
    def in_folder(self) -> bool:
        """Whether its voices come with the files in its folder."""
        return bool(self.latents) or self.named is not None


@dataclass(frozen=True)
class LanguageExports:
    """How a speech language model, its students and its drafts are exported."""

    source: str
    """Opens the checkpoint: called with its folder and a function that may raise to cancel; returns a
    :class:`paretone.export.language.Source`."""
    prompts: str
    """What the ids of a prompt are, as sentences for the README of an export."""
    restarting: bool = False
    """Whether positions restart where speech begins."""
    biased: bool = False
    """Whether its scores have a bias, which the classes of transformers and vLLM lack."""
    official: bool = False
    """Whether exported students and drafts replace files of the release; if not, they are Hugging Face checkpoints."""


@dataclass(frozen=True)
class Model:
    """One model. Its loader, ``loader(request)``, receives a :class:`paretone.models.loading.LoadRequest` and returns
    the loaded model of its family: a :class:`paretone.models.families.flow.FlowSpeech`, ``language.LanguageSpeech`` or
    ``masked.MaskedSpeech``."""

    id: str
    """Name in settings, profiles and studies, and of its folder; never changed once published."""
    title: str
    summary: str
    family: str
    """``flow``, ``language`` or ``masked``: decides which techniques apply."""
    licence: str
    """Licence of its weights, an SPDX identifier."""
    loader: str
    options: tuple[Knob, ...]
    """Sampler options, with upstream's defaults."""
    default_options: Values = NO_VALUES
    """Values that differ from the options' defaults."""
    release: Release | None = None
    """Published files; ``None`` if there is nothing to download."""
    bundled: bool = False
    """Whether Paretone ships its weights."""
    shipped: Path | None = None
    """Folder of its files in the plug-in's own package; ``None``: the user's folder of models."""
    kind: str = ""
    """Name shared with other models of the same options, if it differs from the title."""
    variant: str = ""
    """Name of the architecture; ``""``: a sidecar in the folder describes it."""
    architectures: tuple[str, ...] = ()
    """Released architectures that its files may have; a sidecar in their folder describes any other."""
    weights: str = ""
    """Subfolder of the required weights."""
    vocoder: str = ""
    """Folder of its vocoder, next to its own."""
    has_separate_vocoder: bool = False
    """Whether its vocoder is a separate release, whose folder the user may choose."""
    voices: Voices = Voices()
    guidance: Guidance = STRENGTH
    codes_per_token: int = 1
    """Codes of the frame that each token of a language model is completed to."""
    mel_flow: MelFlow | None = None
    """A language model's flow from tokens to mel frames, if it has one."""
    layout: str = ""
    """Layout of its weights, by which exports know whether they can read and write them; a plug-in whose checkpoints
    are in the layout of one of ours declares that one's, such as ``f5-tts``."""
    subject: str = ""
    """For models with a flow that can be fine-tuned: function called with the
    :class:`paretone.training.runs.Run` and the :class:`paretone.training.fine_tuning.SubjectOptions`, which returns the
    :class:`paretone.training.fine_tuning.Learning`."""
    teacher: str = ""
    """For language models: class of the teacher of its drafts and students (:mod:`paretone.training.teachers`), called
    with the model, the folder and a follower, and with the folder of the vocoder if that is not the usual one."""
    exports: LanguageExports | None = None
    programs: Mapping[str, str] = field(default_factory=dict, hash=False)
    """What other programs call it, by export target, such as ``{"crispasr": "f5-tts"}``."""
    recognised: Callable[[Path], float] = lambda folder: 0.0
    """How surely the files in a folder are this model's, from 0 to 1: its layout, or one that it shares with others.
    Torch-free; must not raise."""
    without_effect: Callable[[str, Values], str] = lambda option, options: ""
    """Why an option has no effect under ``options``, as a sentence, or ``""``."""
    place: int = 1000
    """Position in lists: smaller is earlier; ties by title."""

    @property
    def families(self) -> tuple[str, ...]:
        """Families whose panels suit it: its own; with a flow after its language model :data:`MEL_FLOW`, and ``flow``
        if that flow's layers can be skipped."""
        of_flow = () if self.mel_flow is None else (MEL_FLOW, FLOW)[: 1 + self.mel_flow.transformer]
        return (self.family, *of_flow)

    @property
    def folder(self) -> Path:
        """Folder of its files, which may not exist yet."""
        return self.shipped or (resource("models", self.id) if self.bundled else own_place(self.id))

    @property
    def vocoder_folder(self) -> Path:
        return self.folder.parent / self.vocoder

    def require_vocoder(self, vocoder: str) -> None:
        """Raise :class:`CheckpointError` if a ``vocoder`` folder is given for a model that includes one."""
        if vocoder and not self.has_separate_vocoder:
            raise CheckpointError(f"{self.title} comes with its vocoder; leave out {shown(vocoder)}.")

    def folder_at(self, folder: str = "") -> Path:
        """``folder``, or :attr:`folder` without one. Raises :class:`CheckpointError` if it does not exist."""
        place = Path(folder) if folder else self.folder
        if not place.exists():
            download = "" if self.release is None else "download it, or "
            error = CheckpointError(f"{self.title} is not in {place}; {download}choose the folder of its checkpoint.")
            error.command = f"paretone download {self.id}" if download and not folder else ""
            raise error
        return place

    @property
    def published(self) -> Release:
        """Its :attr:`release`. Raises :class:`SettingError` if there is none."""
        if self.release is None:
            brought = "comes with Paretone" if self.bundled else "is not published"
            raise SettingError(f"{self.title} {brought}; there is nothing to download.")
        return self.release

    @property
    def available(self) -> bool:
        return self.available_in(self.folder)

    def available_in(self, folder: Path) -> bool:
        return bool(config_file.weight_files(folder / self.weights))

    def options_with(self, **changes: object) -> Values:
        """All option values: the knobs' defaults, overridden by this model's defaults and ``changes``. The user's
        lexicon is a default of the bundled models."""
        values = {knob.name: knob.default for knob in self.options} | dict(self.default_options)
        if self.bundled and "pronunciations" not in changes:
            values["pronunciations"] = in_force()
        return Values.complete({**values, **changes}, {knob.name: knob.default for knob in self.options if knob.later})
