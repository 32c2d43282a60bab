"""What the engine thread owns, the loaded model and its device, and how each command is carried out with it.

Only this module and what it calls touch torch, and only the engine thread calls it.
"""

from __future__ import annotations

import contextlib
import gc
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from engine import device
from engine.errors import PlainError, SettingError
from engine.measure.machine import describe
from engine.measure.signal import of_its_own
from engine.models.base import FLOW, SpeechModel, Synthesis, flow_model
from engine.models.catalogue import entry
from engine.models.families.masked import MaskedSpeech
from engine.models.files.downloads import download
from engine.session.messages import (
    AttentionCaptured,
    AudioReady,
    Calibrate,
    CalibrationReady,
    CaptureAttention,
    Command,
    ComputeView,
    DecodePartial,
    DownloadModel,
    EngineReady,
    ExportProfile,
    ExportWeights,
    LayersMeasured,
    LoadModel,
    MeasureImportance,
    MeasureRoofline,
    MeasureTransfer,
    ModelLoaded,
    PartialDecoded,
    ProfileExported,
    RooflineMeasured,
    RunStudy,
    StudyEnded,
    Synthesise,
    TakeReady,
    Training,
    TransferMeasured,
    UnloadModel,
    ViewComputed,
    WeightsExported,
)
from engine.session.observers import (
    CalibrationJobObserver,
    JobObserver,
    MeasuringObserver,
    Post,
    StudyObserver,
    SynthesisObserver,
    TrainingObserver,
)
from engine.setting.setting import Setting
from engine.setting.take import Take
from engine.techniques.ditreducio.preparation import calibrate_model
from engine.techniques.ditreducio.transfer import measure_transfer
from engine.techniques.spade.record import FILE, ImportanceRecord, read_record
from engine.views.computing import compute_view
from engine.views.view import Task

if TYPE_CHECKING:
    from engine.studies.study import Study

Load = Callable[..., SpeechModel]
"""See :func:`engine.models.load_model`."""


class Executor:
    """Carries out commands, one at a time. ``load`` is how models are loaded."""

    def __init__(self, load: Load) -> None:
        torch.set_num_threads(device.thread_count())
        self._load = load
        self._model: SpeechModel | None = None
        self._loaded: LoadModel | None = None
        """What :attr:`_model` was loaded by."""
        self._machine = describe()
        self.device = str(device.choose())

    @property
    def ready(self) -> EngineReady:
        """What the engine has to offer."""
        return EngineReady(0, self.device, device.available(), self._machine.line)

    def carry_out(
        self, command: Command, post: Post, cancelled: threading.Event, pausing: threading.Event | None = None
    ) -> None:
        """Do what ``command`` says. Raises what goes wrong, and :class:`Cancelled` soon after ``cancelled`` is set.
        ``pausing`` is set when a study is to end after the takes under way."""
        match command:
            case LoadModel():
                self._load_model(command, JobObserver(command.job, post, cancelled))
            case UnloadModel():
                self.unload()
            case DownloadModel():
                self._download(command, JobObserver(command.job, post, cancelled))
            case Synthesise():
                self._synthesise(command, SynthesisObserver(command.job, post, cancelled, self.device))
            case Calibrate():
                self._calibrate(command, CalibrationJobObserver(command.job, post, cancelled))
            case MeasureTransfer():
                self._measure_transfer(command, JobObserver(command.job, post, cancelled))
            case DecodePartial():
                self._decode_partial(command, JobObserver(command.job, post, cancelled))
            case CaptureAttention():
                self._capture_attention(command, JobObserver(command.job, post, cancelled))
            case ComputeView():
                self._compute_view(command, JobObserver(command.job, post, cancelled))
            case Training():
                self._train(command, TrainingObserver(command.job, post, cancelled))
            case MeasureImportance():
                self._measure_importance(command, MeasuringObserver(command.job, post, cancelled))
            case MeasureRoofline():
                self._measure_roofline(command, MeasuringObserver(command.job, post, cancelled))
            case RunStudy():
                self._run_study(command, StudyObserver(command.job, post, cancelled, pausing or threading.Event()))
            case ExportProfile():
                self._export(command, JobObserver(command.job, post, cancelled))
            case ExportWeights():
                self._export_weights(command, JobObserver(command.job, post, cancelled))

    def unload(self) -> None:
        """Free the loaded model's memory."""
        self._model = None
        self.tidy()

    def recover(self, post: Post) -> None:
        """Load the model again after its device was lost: there if it answers again, else on the processor."""
        lost, command = self.device, self._loaded
        if self._model is None or command is None:
            return
        self.unload()
        wanted = torch.device(lost).type if device.answers(lost) else "cpu"
        observer = JobObserver(0, post, threading.Event())
        self._load_model(replace(command, job=0, device=wanted), observer)
        observer.status(f"{self._model.info.title} was loaded again, on {self._model.info.device}.")

    @staticmethod
    def tidy() -> None:
        """Give memory back that nothing uses any more."""
        gc.collect()
        device.release_memory()

    def _load_model(self, command: LoadModel, observer: JobObserver) -> None:
        started = time.perf_counter()
        observer.check()
        chosen = str(device.choose(command.device))
        # A model that cannot be loaded leaves the present one in use.
        model = self._load(
            command.model,
            folder=command.folder,
            variant=command.variant,
            device=chosen,
            status=observer.status,
            check=observer.check,
        )
        observer.check()
        self._model, self.device, self._loaded = model, chosen, command
        self.tidy()
        observer.post(ModelLoaded(command.job, model.info, time.perf_counter() - started))

    @staticmethod
    def _download(command: DownloadModel, observer: JobObserver) -> None:
        download(command.model, Path(command.folder), command.licence, observer.progress, observer.check)

    def _synthesise(self, command: Synthesise, observer: SynthesisObserver) -> None:
        model = self._model_for(command.setting)
        model.make_ready(command.setting, observer, command.voice)
        observer.begin()
        pieces = model.synthesise(command.text, command.voice, command.setting, command.artefacts, observer)
        synthesis: Synthesis | None = None
        number = 0
        with contextlib.closing(pieces):
            while synthesis is None:
                try:
                    piece = next(pieces)
                except StopIteration as end:
                    synthesis = end.value
                    continue
                observer.check()
                number += 1
                samples = self._audible(piece.samples, f"piece {number}", command.setting)
                observer.delivered(len(samples) / model.info.sample_rate)
                observer.post(AudioReady(command.job, samples, model.info.sample_rate))
        observer.check()
        take = self._take(command, synthesis, observer)
        operations = None
        if model.info.family == FLOW:
            flow = flow_model(model, "Counting operations")
            operations = flow.operations(command.text, command.voice, command.setting)
        observer.post(TakeReady(command.job, take, operations))

    def _take(self, command: Synthesise, synthesis: Synthesis, observer: SynthesisObserver) -> Take:
        measurements = replace(
            synthesis.measurements,
            first_audio_seconds=observer.first_audio_seconds or synthesis.measurements.seconds,
            peak_memory_bytes=observer.memory.peak_bytes,
            device=synthesis.measurements.device or device.title(self.device),
        )
        samples = self._audible(synthesis.samples, "the whole", command.setting)
        return Take(
            id=uuid.uuid4().hex,
            created=_now(),
            text=command.text,
            voice=command.voice.id,
            setting=command.setting,
            sample_rate=synthesis.sample_rate,
            samples=samples,
            measurements=measurements,
            trace=synthesis.trace,
            label=command.label,
            notes=synthesis.notes,
            machine=self._machine.line,
            metrics=of_its_own(samples, synthesis.sample_rate),
        )

    def _calibrate(self, command: Calibrate, observer: CalibrationJobObserver) -> None:
        started = time.perf_counter()
        model = flow_model(self._model_for(command.setting), "Calibrating")
        record = calibrate_model(model, command.utterances, command.setting, observer, command.combine)
        observer.check()
        record = replace(record, created=_now(), machine=self._machine.line)
        first = command.utterances[0]
        operations = model.operations(first.text, first.voice, command.setting)
        observer.post(CalibrationReady(command.job, record, operations, time.perf_counter() - started))

    def _measure_transfer(self, command: MeasureTransfer, observer: JobObserver) -> None:
        started = time.perf_counter()
        model = flow_model(self._model_for(command.setting), "Measuring a strategy table")
        report = measure_transfer(model, command.table, command.calibrated, command.unseen, command.setting, observer)
        observer.check()
        observer.post(TransferMeasured(command.job, report, time.perf_counter() - started))

    def _decode_partial(self, command: DecodePartial, observer: JobObserver) -> None:
        model = self._model_for(command.setting)
        if not isinstance(model, MaskedSpeech):
            raise SettingError(f"{model.info.title} fills in no masked tokens; load the model that the take is of.")
        samples = model.decode_partial(command.passage, command.step, command.voice, command.setting, observer.check)
        observer.check()
        samples = self._audible(samples, f"the speech behind step {command.step + 1}", command.setting)
        observer.post(PartialDecoded(command.job, samples, model.info.sample_rate, command.step))

    def _capture_attention(self, command: CaptureAttention, observer: JobObserver) -> None:
        model = flow_model(self._model_for(command.setting), "Capturing attention at a step")
        found = model.capture_attention(
            command.text,
            command.voice,
            command.setting,
            command.artefacts,
            command.layer,
            command.step,
            observer,
        )
        observer.check()
        if not np.isfinite(found.maps).all():
            raise PlainError(self._invalid(f"the attention of layer {found.layer + 1}", command.setting))
        observer.post(AttentionCaptured(command.job, found))

    def _compute_view(self, command: ComputeView, observer: JobObserver) -> None:
        model = self._model_for(command.setting)
        task = Task(model, command.utterance, command.setting, command.knobs, observer, command.record)
        observer.post(ViewComputed(command.job, compute_view(command.view, task)))

    def _train(self, command: Training, observer: TrainingObserver) -> None:
        # Imported on use: few sessions train.
        from engine.training.jobs import train

        done = train(command, observer)
        if done.technique and self._is_loaded(command.model):
            done = replace(done, info=self._model.look_for_weights(observer.check))
        observer.post(done)

    def _run_study(self, command: RunStudy, observer: StudyObserver) -> None:
        # Imported on use: few sessions run studies.
        from engine.studies import definition
        from engine.studies.adopting import adopt
        from engine.studies.cluster import Cluster
        from engine.studies.running import FINISHED, PAUSED, LocalExecutor, run
        from engine.studies.store import Store
        from engine.studies.study import results_folder

        study = definition.read(command.file)
        folder = Path(command.folder) if command.folder else results_folder(command.file)
        here = self._model if self._serves(study) else None
        executor = Cluster(command.ray, command.workers, self._load) if command.ray else LocalExecutor(self._load, here)
        with Store(folder) as store:
            store.begin(study, command.file)
            observer.begin(str(folder), study.title)
            state = run(study, store, executor, observer)
            adopted = adopt(study, store) if state == FINISHED else None
        log = (*executor.log(), *([adopted.sentence] if adopted else ()))
        if adopted is not None and adopted.record is not None:
            self._tell_layers(command.job, adopted.record, adopted.path, observer)
        observer.post(StudyEnded(command.job, str(folder), state == PAUSED, observer.made, log))

    def _tell_layers(self, job: int, record: ImportanceRecord, path: Path, observer: JobObserver) -> None:
        """Let the loaded model know what was measured of its layers, if it is of this one."""
        if self._model is not None and self._model.info.fingerprint == record.checkpoint:
            info = self._model.look_for_weights(observer.check)
            observer.post(LayersMeasured(job, record, str(path), info))

    def _serves(self, study: Study) -> bool:
        """Whether the loaded model is the one that a study wants, on the device that it wants."""
        if self._model is None or self._model.info.id != study.model or study.folder or study.variant:
            return False
        usual = entry(study.model).folder
        return (
            Path(self._model.info.checkpoint).is_relative_to(usual) and str(device.choose(study.device)) == self.device
        )

    @staticmethod
    def _export(command: ExportProfile, observer: JobObserver) -> None:
        # Imported on use: few sessions export.
        from engine.export.exporting import export

        written = export(command.profile, command.target, Path(command.folder), observer, command.model_folder)
        names = tuple(path.name for path in written)
        observer.post(ProfileExported(command.job, command.target, command.folder, names))

    @staticmethod
    def _export_weights(command: ExportWeights, observer: JobObserver) -> None:
        from engine.export.language import LanguageExport, export_language

        folder = Path(command.folder)
        job = LanguageExport(command.model, command.kind, folder, command.file, command.settings, command.model_folder)
        names = tuple(path.relative_to(folder).as_posix() for path in export_language(job, observer))
        observer.post(WeightsExported(command.job, command.kind, command.folder, names))

    def _measure_importance(self, command: MeasureImportance, observer: MeasuringObserver) -> None:
        from engine.models.families.language import LanguageSpeech
        from engine.models.files.language_weights import own_place, places_of
        from engine.techniques.spade.measuring import measure_layers

        model = self._model_for(command.setting)
        if not isinstance(model, LanguageSpeech):
            raise SettingError(f"{model.info.title} is no language model: its layers are not measured like this.")
        folder = own_place(model.info.id)
        earlier = read_record(places_of(model.info), model.info.fingerprint)
        record = measure_layers(model, command.utterances, command.setting, command.measures, observer, earlier)
        record.write(folder / FILE)
        self._tell_layers(command.job, record, folder / FILE, observer)

    def _measure_roofline(self, command: MeasureRoofline, observer: MeasuringObserver) -> None:
        # Imported on use: torch's profiler takes its time.
        from engine.measure.roofline.measuring import RooflineTarget, measure_roofline

        target = RooflineTarget(self._model_for(command.setting), command.utterance, command.setting, command.artefacts)
        trace = Path(command.trace) if command.trace else None
        observer.post(RooflineMeasured(command.job, measure_roofline(target, observer, command.again, trace=trace)))

    def _is_loaded(self, model: str) -> bool:
        return self._model is not None and self._model.info.id == model

    def _model_for(self, setting: Setting) -> SpeechModel:
        if self._model is None:
            raise SettingError(f"No model is loaded; load {setting.model!r} first.")
        if self._model.info.id != setting.model:
            raise SettingError(
                f"The setting is for the model {setting.model!r}, but {self._model.info.id!r} is loaded; "
                f"load {setting.model!r} first."
            )
        return self._model

    def _audible(self, samples: np.ndarray, what: str, setting: Setting) -> np.ndarray:
        """``samples`` as float32. Raises :class:`PlainError` when they cannot be played."""
        if not np.isfinite(samples).all():
            raise PlainError(self._invalid(what, setting))
        return np.ascontiguousarray(samples, dtype=np.float32)

    def _invalid(self, what: str, setting: Setting) -> str:
        steps, precision = setting.options.get("steps"), self._model.info.precision
        remedies = ["more steps" if steps is not None else "other options"]
        if self._model.info.family == FLOW:
            remedies.append("less guidance")
        if precision != "float32":
            remedies.append("full precision (float32)")
        at = f" at {steps} steps" if steps is not None else ""
        return (
            f"The model put out invalid numbers (NaN) for {what}{at} in {precision}; "
            f"try {' or '.join(remedies)}, or fetch the checkpoint again."
        )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
