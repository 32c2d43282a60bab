"""Commands of front ends to the engine. The engine answers with events (:mod:`paretone.session.events`).

Commands are frozen dataclasses that can be pickled, so the engine may as well live in another process. ``job`` is
chosen by the sender; every event that a command causes carries it, and exactly one of
:class:`paretone.session.events.JobFinished`, :class:`~paretone.session.events.JobFailed` and
:class:`~paretone.session.events.JobCancelled` ends it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from paretone.models.base import Utterance, Voice
from paretone.setting.knobs import NO_VALUES, Values
from paretone.setting.setting import Artefact, Setting
from paretone.setting.take import DemaskedPassage

if TYPE_CHECKING:
    from paretone.setting.profile import Profile

REPEATS = 5
"""How often a take is timed again, if nothing else is said."""


@dataclass(frozen=True)
class Command:
    """Something to do. ``job`` is its number, chosen by the sender."""

    job: int
    activity: ClassVar[str] = ""
    """Activity, as in "synthesising": see :attr:`doing`."""
    carried_out_by: ClassVar[str] = ""
    """The function that does it, ``"package.module:function"``: see :mod:`paretone.session.jobs`. Without one, a
    command says something about other jobs, which :class:`paretone.session.engine_thread.EngineThread` does at once."""
    timed: ClassVar[bool] = False
    """Whether it measures times, which a rest in the middle would falsify: see :class:`Hold`."""

    @property
    def doing(self) -> str:
        return self.activity


@dataclass(frozen=True)
class LoadModel(Command):
    """Load a model of the catalogue. ``folder``, a folder or a file of weights, ``variant`` and ``vocoder``, the folder
    of one, override the catalogue's; ``device`` is ``auto``, ``cpu``, ``cuda`` or ``mps``."""

    activity = "loading the model"
    carried_out_by = "paretone.session.jobs:load_model"

    model: str
    folder: str = ""
    variant: str = ""
    device: str = "auto"
    vocoder: str = ""


@dataclass(frozen=True)
class DownloadModel(Command):
    """Download an official checkpoint into ``folder``. The user has seen and accepted ``licence``."""

    activity = "downloading the model"
    carried_out_by = "paretone.session.jobs:download_model"

    model: str
    folder: str
    licence: str


@dataclass(frozen=True)
class InstallExtra(Command):
    """Install the optional packages of ``extra`` (see :mod:`paretone.extras`) into the running environment. Ends with
    :class:`~paretone.session.events.ExtraInstalled`."""

    activity = "installing packages"
    carried_out_by = "paretone.session.jobs:install_extra"

    extra: str


@dataclass(frozen=True)
class Synthesise(Command):
    """Speak ``text`` in ``voice`` under ``setting``. ``artefacts`` are those that the setting names by fingerprint."""

    activity = "synthesising"
    carried_out_by = "paretone.session.synthesis:synthesise"
    timed = True

    text: str
    voice: Voice
    setting: Setting
    artefacts: tuple[Artefact, ...] = ()
    label: str = ""


@dataclass(frozen=True)
class MakeTake(Synthesise):
    """The same for later: nothing is heard of it while it is made, and an artefact that a technique lacks is prepared
    for it first, on the text itself, as in studies. Ends with :class:`~paretone.session.events.TakeMade`."""

    activity = "making a take"
    carried_out_by = "paretone.session.synthesis:make_take_for_later"


@dataclass(frozen=True)
class TimeAgain(Synthesise):
    """Time the ``take`` with this id, which was made so, again a number of ``times``. Nothing is heard of it. Ends with
    :class:`~paretone.session.events.TimedAgain`."""

    activity = "timing again"
    carried_out_by = "paretone.session.synthesis:time_again"

    take: str = ""
    times: int = REPEATS


@dataclass(frozen=True)
class CaptureAttention(Command):
    """Run ``setting`` up to ``step`` and capture the attention of ``layer`` there, all branches."""

    activity = "capturing attention"
    carried_out_by = "paretone.session.synthesis:capture_attention"

    text: str
    voice: Voice
    setting: Setting
    layer: int
    step: int
    artefacts: tuple[Artefact, ...] = ()


@dataclass(frozen=True)
class DecodePartial(Command):
    """Decode a ``passage`` of a take that was made under ``setting`` as it was after ``step``, counted from 0."""

    activity = "decoding a part"
    carried_out_by = "paretone.session.synthesis:decode_partial"

    passage: DemaskedPassage
    step: int
    voice: Voice
    setting: Setting


@dataclass(frozen=True)
class JudgeTake(Command):
    """Ask the judges what they say of the ``take`` with this id: mono ``samples`` (n,) at ``sample_rate`` Hz.
    ``prompt`` is the file of its voice's recording, or ``""``."""

    activity = "judging a take"
    carried_out_by = "paretone.session.jobs:judge_take"

    take: str
    samples: np.ndarray = field(repr=False, compare=False)
    sample_rate: int
    prompt: str = ""


@dataclass(frozen=True)
class Prepare(Command):
    """Calibrate, measure or train something for ``technique``. ``request`` is of a type that one of its jobs declares
    (see :class:`paretone.techniques.base.Job`): frozen and picklable. Ends with
    :class:`~paretone.session.events.Prepared`."""

    carried_out_by = "paretone.session.jobs:prepare"

    technique: str
    request: Any

    @property
    def doing(self) -> str:
        """Activity named by the request, as in "calibrating"."""
        return getattr(self.request, "activity", "preparing")


@dataclass(frozen=True)
class ComputeView(Command):
    """Compute the view called ``view`` (see :func:`paretone.views.views`) on ``utterance`` under ``setting``, with its
    own ``knobs``. ``records`` are what preparations measured, so that the view need not measure it again."""

    activity = "computing the view"
    carried_out_by = "paretone.session.synthesis:compute_view"
    timed = True

    view: str
    utterance: Utterance
    setting: Setting
    knobs: Values = NO_VALUES
    records: tuple[object, ...] = ()


@dataclass(frozen=True)
class MeasureRoofline(Command):
    """Measure every component of the loaded model under ``setting`` against this machine's ceilings, which are measured
    first if they are not known, or ``again``. Where ``trace`` names a file, a Chrome trace is written there."""

    activity = "measuring the roofline"
    carried_out_by = "paretone.session.synthesis:measure_roofline"
    timed = True

    utterance: Utterance
    setting: Setting
    artefacts: tuple[Artefact, ...] = ()
    again: bool = False
    rounds: int = 5
    trace: str = ""


@dataclass(frozen=True)
class ExportProfile(Command):
    """Write ``profile`` into ``folder`` in the form of ``target`` (see :func:`paretone.export.targets.targets`): all of
    its files or none, and no file that is there is replaced.

    ``model_folder`` holds the checkpoint if it is not where the catalogue has it; the loaded model is not touched.
    """

    activity = "exporting"
    carried_out_by = "paretone.session.jobs:export_profile"

    profile: Profile
    target: str
    folder: str
    model_folder: str = ""


@dataclass(frozen=True)
class ExportWeights(Command):
    """Write a student or a draft of the language model ``model`` (``kind`` is ``student`` or ``draft``, ``file`` the
    one that is meant) into ``folder``, as a checkpoint that others load: all of its files or none, and no file that is
    there is replaced. ``settings`` go with a draft; ``model_folder`` as in :class:`ExportProfile`."""

    activity = "exporting"
    carried_out_by = "paretone.session.jobs:export_weights"

    model: str
    kind: str
    file: str
    folder: str
    settings: Values = NO_VALUES
    model_folder: str = ""


@dataclass(frozen=True)
class EncodePrompts(Command):
    """What the loaded language model would continue to speak ``text`` in ``voice``, as ids that other programs count:
    see :class:`paretone.models.base.OfficialPrompt`."""

    activity = "encoding"
    carried_out_by = "paretone.session.synthesis:encode"

    text: str
    voice: Voice
    setting: Setting


@dataclass(frozen=True)
class HearTokens(Command):
    """The sound of speech ``tokens`` of the loaded language model, counted from 0, that say ``text`` in ``voice``."""

    activity = "decoding"
    carried_out_by = "paretone.session.synthesis:hear"

    tokens: tuple[int, ...]
    text: str
    voice: Voice
    setting: Setting


@dataclass(frozen=True)
class RunStudy(Command):
    """Do what is left of the study that ``file`` describes, and keep every finished take in ``folder``.

    Cancelling loses the takes under way only, :class:`PauseStudy` not even these; the same command continues from
    there. The loaded model serves where the study is of it; else the study loads its own, and that one stays as it is.
    """

    activity = "running the study"
    carried_out_by = "paretone.session.jobs:run_study"
    timed = True

    file: str
    folder: str
    """Empty for the one next to the file that the command line uses, too."""
    ray: str = ""
    """Address of a Ray cluster to run it on, ``auto`` or ``local``; see :class:`paretone.studies.cluster.Cluster`."""
    workers: int | None = None
    """On the cluster; ``None`` for one on each GPU or core."""


@dataclass(frozen=True)
class PauseStudy(Command):
    """End the study that the job ``target`` runs once the takes under way are finished. One that waits is cancelled."""

    target: int


@dataclass(frozen=True)
class Cancel(Command):
    """Cancel the job ``target``, running or waiting."""

    target: int


@dataclass(frozen=True)
class Hold(Command):
    """Compute nothing until :class:`Release`. What runs waits at its next step, or at its next take; only what measures
    its own time is finished first. Nothing new begins. :class:`~paretone.session.events.EngineHeld` says when nothing
    computes any more."""


@dataclass(frozen=True)
class Release(Command):
    """Continue after :class:`Hold`."""


@dataclass(frozen=True)
class ShutDown(Command):
    """Cancel everything and end the engine thread."""
