"""Commands from front ends to the engine. The engine answers with events (:mod:`paretone.session.events`).

Commands are frozen picklable dataclasses, so the engine may live in another process. The sender chooses ``job``; all
events caused by a command carry it, and exactly one of :class:`paretone.session.events.JobFinished`,
:class:`~paretone.session.events.JobFailed` and :class:`~paretone.session.events.JobCancelled` ends it.
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
"""Default number of repeats of a take's timing."""


@dataclass(frozen=True)
class Command:
    """A command with its job number, chosen by the sender."""

    job: int
    activity: ClassVar[str] = ""
    """Activity, as in "synthesising": see :attr:`doing`."""
    carried_out_by: ClassVar[str] = ""
    """Function that carries it out, ``"package.module:function"``: see :mod:`paretone.session.jobs`. A command without
    one controls other jobs; :class:`paretone.session.engine_thread.EngineThread` obeys it at once."""
    timed: ClassVar[bool] = False
    """Whether it measures times, which an interruption would distort: see :class:`Hold`."""

    @property
    def doing(self) -> str:
        return self.activity


@dataclass(frozen=True)
class LoadModel(Command):
    """Load a model of the catalogue. ``folder`` (a folder or a weights file), ``variant`` and ``vocoder`` (a folder)
    override the catalogue's; ``device`` is ``auto``, ``cpu``, ``cuda`` or ``mps``."""

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
    """Install the optional packages of ``extra`` (see :mod:`paretone.extras`) into the running environment. Result:
    :class:`~paretone.session.events.ExtraInstalled`."""

    activity = "installing packages"
    carried_out_by = "paretone.session.jobs:install_extra"

    extra: str


@dataclass(frozen=True)
class Synthesise(Command):
    """Speak ``text`` in ``voice`` under ``setting``. ``artefacts``: those that the setting refers to by fingerprint."""

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
    """Synthesise without playback; a missing artefact is first prepared on the text itself, as in studies. Result:
    :class:`~paretone.session.events.TakeMade`."""

    activity = "making a take"
    carried_out_by = "paretone.session.synthesis:make_take_for_later"


@dataclass(frozen=True)
class TimeAgain(Synthesise):
    """Time the take with the id ``take`` again ``times`` times under the same setting, without playback. Result:
    :class:`~paretone.session.events.TimedAgain`."""

    activity = "timing again"
    carried_out_by = "paretone.session.synthesis:time_again"

    take: str = ""
    times: int = REPEATS


@dataclass(frozen=True)
class CaptureAttention(Command):
    """Run ``setting`` up to ``step`` and capture the attention of ``layer`` there, in all branches."""

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
    """Decode a ``passage`` of a take made under ``setting`` in its state after ``step``, counted from 0; with
    ``codebooks`` only this number of first ones."""

    activity = "decoding a part"
    carried_out_by = "paretone.session.synthesis:decode_partial"

    passage: DemaskedPassage
    step: int
    voice: Voice
    setting: Setting
    codebooks: int = 0


@dataclass(frozen=True)
class JudgeTake(Command):
    """Judge the take ``take``: mono ``samples`` (n,) at ``sample_rate`` Hz. ``prompt``: its voice's file, or ``""``;
    with the ``text``, look for faults too."""

    activity = "judging a take"
    carried_out_by = "paretone.session.jobs:judge_take"

    take: str
    samples: np.ndarray = field(repr=False, compare=False)
    sample_rate: int
    prompt: str = ""
    text: str = ""
    transcript: str = ""
    """What the voice's file says."""
    seams: tuple[float, ...] = ()


@dataclass(frozen=True)
class JudgeReplies(Command):
    """Judge a server's replies to one load: mono ``recordings`` (n,) at ``sample_rate`` Hz, which say ``texts``, in
    ``voice``, if that is known."""

    activity = "judging replies"
    carried_out_by = "paretone.session.jobs:judge_replies"

    texts: tuple[str, ...]
    recordings: tuple[np.ndarray, ...] = field(repr=False, compare=False)
    sample_rate: int
    voice: Voice | None = None


@dataclass(frozen=True)
class Prepare(Command):
    """Calibrate, measure or train something for ``technique``. ``request`` is of a type declared by one of its jobs
    (see :class:`paretone.techniques.base.Job`), frozen and picklable. Result:
    :class:`~paretone.session.events.Prepared`."""

    carried_out_by = "paretone.session.jobs:prepare"

    technique: str
    request: Any

    @property
    def doing(self) -> str:
        """Activity of the request, as in "calibrating"."""
        return getattr(self.request, "activity", "preparing")


@dataclass(frozen=True)
class ComputeView(Command):
    """Compute the view ``view`` (see :func:`paretone.views.views`) on ``utterance`` under ``setting``, with its own
    ``knobs``. ``records``: results of preparations that the view can reuse."""

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
    """Measure every component of the loaded model under ``setting`` against this machine's ceilings, measured first if
    unknown or ``again``. ``trace``: optional file for a Chrome trace. ``card``: count for that one on paper, see
    :mod:`paretone.measure.roofline.ceilings`."""

    activity = "measuring the roofline"
    carried_out_by = "paretone.session.synthesis:measure_roofline"
    timed = True

    utterance: Utterance
    setting: Setting
    artefacts: tuple[Artefact, ...] = ()
    again: bool = False
    rounds: int = 5
    trace: str = ""
    card: str = ""


@dataclass(frozen=True)
class ExportProfile(Command):
    """Write ``profile`` into ``folder`` in the form of ``target`` (see :func:`paretone.export.targets.targets`): all
    files or none, and no existing file is replaced. ``model_folder``: the checkpoint's, if not the catalogue's; the
    loaded model stays unchanged."""

    activity = "exporting"
    carried_out_by = "paretone.session.jobs:export_profile"

    profile: Profile
    target: str
    folder: str
    model_folder: str = ""


@dataclass(frozen=True)
class ExportWeights(Command):
    """Write a student or draft of the language model ``model`` (``kind``: ``student`` or ``draft``; ``file``: its file)
    into ``folder`` as a standard checkpoint: all files or none, and no existing file is replaced. ``settings``
    accompany a draft; ``model_folder`` as in :class:`ExportProfile`."""

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
    """Encode the prompt of ``text`` in ``voice`` for the loaded language model, as ids numbered as in other programs:
    see :class:`paretone.models.base.OfficialPrompt`."""

    activity = "encoding"
    carried_out_by = "paretone.session.synthesis:encode"

    text: str
    voice: Voice
    setting: Setting


@dataclass(frozen=True)
class HearTokens(Command):
    """Decode speech ``tokens`` of the loaded language model, counted from 0, that say ``text`` in ``voice``."""

    activity = "decoding"
    carried_out_by = "paretone.session.synthesis:hear"

    tokens: tuple[int, ...]
    text: str
    voice: Voice
    setting: Setting


@dataclass(frozen=True)
class RunStudy(Command):
    """Run the remaining tasks of the study in ``file``, and store every finished take in ``folder``. Cancelling loses
    only the takes in progress, :class:`PauseStudy` none; the same command continues. The loaded model is used if the
    study needs it; otherwise the study loads its own, and the loaded one stays unchanged."""

    activity = "running the study"
    carried_out_by = "paretone.session.jobs:run_study"
    timed = True

    file: str
    folder: str
    """``""``: the folder next to the file, as on the command line."""
    ray: str = ""
    """Address of a Ray cluster, ``auto`` or ``local``; see :class:`paretone.studies.cluster.Cluster`."""
    workers: int | None = None
    """Workers on the cluster; ``None``: one per GPU or core."""


@dataclass(frozen=True)
class VerifyStudy(Command):
    """Check the study in ``folder`` and make ``takes`` of its takes again; see :mod:`paretone.studies.verifying`."""

    activity = "verifying the study"
    carried_out_by = "paretone.session.jobs:verify_study"

    folder: str
    takes: int = 5


@dataclass(frozen=True)
class PauseStudy(Command):
    """End the study of the job ``target`` after the takes in progress. A waiting one is cancelled."""

    target: int


@dataclass(frozen=True)
class Cancel(Command):
    """Cancel the job ``target``, running or waiting."""

    target: int


@dataclass(frozen=True)
class Hold(Command):
    """Compute nothing until :class:`Release`. A running job waits at its next step or take; only timed measurements
    finish first. No new job begins. :class:`~paretone.session.events.EngineHeld` confirms that nothing computes."""


@dataclass(frozen=True)
class Release(Command):
    pass


@dataclass(frozen=True)
class ShutDown(Command):
    """Cancel everything and end the engine thread."""
