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
from paretone.serving.records import Order
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
    lexicon: str | None = field(default=None, kw_only=True)
    """Pronunciations in place of this machine's lexicon, in which another user may have taught words."""
    activity: ClassVar[str] = ""
    """Activity, as in "synthesising": see :attr:`doing`."""
    carried_out_by: ClassVar[str] = ""
    """Function that carries it out, ``"package.module:function"``: see :mod:`paretone.session.jobs`. A command without
    one controls other jobs; :class:`paretone.session.engine_thread.EngineThread` obeys it at once."""
    timed: ClassVar[bool] = False
    """Whether it measures times, which an interruption would distort: see :class:`Hold`."""

    def __init_subclass__(cls, activity: str = "", by: str = "", timed: bool = False) -> None:
        """``by``: function that carries it out, in a module of :mod:`paretone.session`."""
        cls.activity, cls.timed = activity or cls.activity, timed or cls.timed
        cls.carried_out_by = f"paretone.session.{by}" if by else cls.carried_out_by

    @property
    def doing(self) -> str:
        return self.activity


@dataclass(frozen=True)
class LoadModel(Command, activity="loading the model", by="jobs:load_model"):
    """Load a model of the catalogue. ``folder`` (a folder or a weights file), ``variant`` and ``vocoder`` (a folder)
    override the catalogue's; ``device`` is ``auto``, ``cpu``, ``cuda`` or ``mps``."""

    model: str
    folder: str = ""
    variant: str = ""
    device: str = "auto"
    vocoder: str = ""


@dataclass(frozen=True)
class DownloadModel(Command, activity="downloading the model", by="jobs:download_model"):
    """Download an official checkpoint into ``folder``. The user has seen and accepted ``licence``."""

    model: str
    folder: str
    licence: str


@dataclass(frozen=True)
class InstallExtra(Command, activity="installing packages", by="jobs:install_extra"):
    """Install the optional packages of ``extra`` (see :mod:`paretone.extras`) into the running environment. Result:
    :class:`~paretone.session.events.ExtraInstalled`."""

    extra: str


@dataclass(frozen=True)
class Synthesise(Command, activity="synthesising", by="synthesis:synthesise", timed=True):
    """Speak ``text`` in ``voice`` under ``setting``. ``artefacts``: those that the setting refers to by fingerprint."""

    text: str
    voice: Voice
    setting: Setting
    artefacts: tuple[Artefact, ...] = ()
    label: str = ""


@dataclass(frozen=True)
class MakeTake(Synthesise, activity="making a take", by="synthesis:make_take_for_later"):
    """Synthesise without playback; a missing artefact is first prepared on the text itself, as in studies. Result:
    :class:`~paretone.session.events.TakeMade`."""


@dataclass(frozen=True)
class TimeAgain(Synthesise, activity="timing again", by="synthesis:time_again"):
    """Time the take with the id ``take`` again ``times`` times under the same setting, without playback. Result:
    :class:`~paretone.session.events.TimedAgain`."""

    take: str = ""
    times: int = REPEATS


@dataclass(frozen=True)
class CaptureAttention(Command, activity="capturing attention", by="synthesis:capture_attention"):
    """Run ``setting`` up to ``step`` and capture the attention of ``layer`` there, in all branches."""

    text: str
    voice: Voice
    setting: Setting
    layer: int
    step: int
    artefacts: tuple[Artefact, ...] = ()


@dataclass(frozen=True)
class DecodePartial(Command, activity="decoding a part", by="synthesis:decode_partial"):
    """Decode a ``passage`` of a take made under ``setting`` in its state after ``step``, counted from 0; with
    ``codebooks`` only this number of first ones."""

    passage: DemaskedPassage
    step: int
    voice: Voice
    setting: Setting
    codebooks: int = 0


@dataclass(frozen=True)
class JudgeTake(Command, activity="judging a take", by="jobs:judge_take"):
    """Judge the take ``take``: mono ``samples`` (n,) at ``sample_rate`` Hz. ``prompt``: its voice's file, or ``""``;
    with the ``text``, look for faults too."""

    take: str
    samples: np.ndarray = field(repr=False, compare=False)
    sample_rate: int
    prompt: str = ""
    text: str = ""
    transcript: str = ""
    """What the voice's file says."""
    seams: tuple[float, ...] = ()


@dataclass(frozen=True)
class MeasureServer(Command, activity="measuring a server", by="jobs:measure_server", timed=True):
    """Measure a speech server under load, from the machine of the engine."""

    order: Order


@dataclass(frozen=True)
class Prepare(Command, by="jobs:prepare"):
    """Calibrate, measure or train something for ``technique``. ``request`` is of a type declared by one of its jobs
    (see :class:`paretone.techniques.base.Job`), frozen and picklable. Result:
    :class:`~paretone.session.events.Prepared`."""

    technique: str
    request: Any

    @property
    def doing(self) -> str:
        """Activity of the request, as in "calibrating"."""
        return getattr(self.request, "activity", "preparing")


@dataclass(frozen=True)
class ComputeView(Command, activity="computing the view", by="synthesis:compute_view", timed=True):
    """Compute the view ``view`` (see :func:`paretone.views.views`) on ``utterance`` under ``setting``, with its own
    ``knobs``. ``records``: results of preparations that the view can reuse."""

    view: str
    utterance: Utterance
    setting: Setting
    knobs: Values = NO_VALUES
    records: tuple[object, ...] = ()


@dataclass(frozen=True)
class MeasureRoofline(Command, activity="measuring the roofline", by="synthesis:measure_roofline", timed=True):
    """Measure every component of the loaded model under ``setting`` against this machine's ceilings, measured first if
    unknown or ``again``. ``trace``: optional file for a Chrome trace. ``card``: count for that one on paper, see
    :mod:`paretone.measure.roofline.ceilings`."""

    utterance: Utterance
    setting: Setting
    artefacts: tuple[Artefact, ...] = ()
    again: bool = False
    rounds: int = 5
    trace: str = ""
    card: str = ""


@dataclass(frozen=True)
class ExportProfile(Command, activity="exporting", by="jobs:export_profile"):
    """Write ``profile`` into ``folder`` in the form of ``target`` (see :func:`paretone.export.targets.targets`): all
    files or none, and no existing file is replaced. ``model_folder``: the checkpoint's, if not the catalogue's; the
    loaded model stays unchanged."""

    profile: Profile
    target: str
    folder: str
    model_folder: str = ""


@dataclass(frozen=True)
class ExportWeights(Command, activity="exporting", by="jobs:export_weights"):
    """Write a student or draft of the language model ``model`` (``kind``: ``student`` or ``draft``; ``file``: its file)
    into ``folder`` as a standard checkpoint: all files or none, and no existing file is replaced. ``settings``
    accompany a draft; ``model_folder`` as in :class:`ExportProfile`."""

    model: str
    kind: str
    file: str
    folder: str
    settings: Values = NO_VALUES
    model_folder: str = ""


@dataclass(frozen=True)
class EncodePrompts(Command, activity="encoding", by="synthesis:encode"):
    """Encode the prompt of ``text`` in ``voice`` for the loaded language model, as ids numbered as in other programs:
    see :class:`paretone.models.base.OfficialPrompt`."""

    text: str
    voice: Voice
    setting: Setting


@dataclass(frozen=True)
class HearTokens(Command, activity="decoding", by="synthesis:hear"):
    """Decode speech ``tokens`` of the loaded language model, counted from 0, that say ``text`` in ``voice``."""

    tokens: tuple[int, ...]
    text: str
    voice: Voice
    setting: Setting


@dataclass(frozen=True)
class RunStudy(Command, activity="running the study", by="jobs:run_study", timed=True):
    """Run the remaining tasks of the study in ``file``, and store every finished take in ``folder``. Cancelling loses
    only the takes in progress, :class:`PauseStudy` none; the same command continues. The loaded model is used if the
    study needs it; otherwise the study loads its own, and the loaded one stays unchanged."""

    file: str
    folder: str
    """``""``: the folder next to the file, as on the command line."""
    ray: str = ""
    """Address of a Ray cluster, ``auto`` or ``local``; see :class:`paretone.studies.cluster.Cluster`."""
    workers: int | None = None
    """Workers on the cluster; ``None``: one per GPU or core."""


@dataclass(frozen=True)
class VerifyStudy(Command, activity="verifying the study", by="jobs:verify_study"):
    """Check the study in ``folder`` and make ``takes`` of its takes again; see :mod:`paretone.studies.verifying`."""

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
