"""Commands without synthesis: loading, installing, exporting, judging, preparing, studies.

Each is a function ``(command, executor, job) -> Event | None``: it carries out the command, reports progress to the
job, and returns the result event. It raises its errors, and :class:`paretone.errors.Cancelled` soon after the job is
cancelled. Commands with synthesis are in :mod:`paretone.session.synthesis`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paretone import device
from paretone.checks.beforehand import collapses, prompt_faults
from paretone.checks.faults import checked as checked_for_faults
from paretone.checks.speech import Speech, prompt_of
from paretone.errors import SettingError, StudyError
from paretone.extras import extra, install, require_serving
from paretone.measure.evaluation.judges import judge_named
from paretone.measure.evaluation.judging import judged_figures, reply_figures
from paretone.models.base import ModelInfo
from paretone.models.catalogue import entry
from paretone.models.files.releases import download
from paretone.observer import stoppable
from paretone.session import commands, events
from paretone.session.executor import Executor, JobObserver, MeasuringObserver, PreparationObserver, RunningJob
from paretone.setting.knobs import Values
from paretone.setting.plan import Part
from paretone.studies import definition
from paretone.studies.cluster import Cluster
from paretone.studies.hooks import Finding, hooks
from paretone.studies.running import FINISHED, PAUSED, LocalExecutor, StudyFollower, TaskExecutor, run
from paretone.studies.store import Store, StoredTake
from paretone.studies.study import Equipment, Study, results_folder
from paretone.studies.verifying import verify
from paretone.techniques.base import Job as Preparation
from paretone.techniques.base import JobTask
from paretone.techniques.registry import plug_in, technique
from paretone.techniques.resolving import foreseen, known
from paretone.training.requests import TrainingRequest, has_run

if TYPE_CHECKING:
    from paretone.studies.execution import TaskRunner


def load_model(command: commands.LoadModel, executor: Executor, job: RunningJob) -> events.ModelLoaded:
    started = time.perf_counter()
    info = executor.load_model(command, JobObserver(job))
    return events.ModelLoaded(command.job, info, time.perf_counter() - started)


def download_model(command: commands.DownloadModel, executor: Executor, job: RunningJob) -> events.ModelDownloaded:
    observer = JobObserver(job)
    files = download(
        entry(command.model).published, Path(command.folder), command.licence, observer.progress, observer.check
    )
    return events.ModelDownloaded(command.job, tuple(map(str, files)))


def install_extra(command: commands.InstallExtra, executor: Executor, job: RunningJob) -> events.ExtraInstalled:
    observer = JobObserver(job)

    def tell(phase: int, phases: int, line: str) -> None:
        # No estimate: phases differ in length.
        job.post(events.Progress(command.job, phase, phases, None, line))

    return events.ExtraInstalled(command.job, command.extra, install(extra(command.extra), tell, observer.check))


def export_profile(command: commands.ExportProfile, executor: Executor, job: RunningJob) -> events.ProfileExported:
    # Imported on use, as below: loading a model needs no export.
    from paretone.export.targets import export

    folder = Path(command.folder)
    written = export(command.profile, command.target, folder, JobObserver(job), command.model_folder)
    names = tuple(path.relative_to(folder).as_posix() for path in written)
    return events.ProfileExported(command.job, command.target, command.folder, names)


def export_weights(command: commands.ExportWeights, executor: Executor, job: RunningJob) -> events.WeightsExported:
    from paretone.export.language import LanguageExport, export_language

    folder = Path(command.folder)
    wanted = LanguageExport(command.model, command.kind, folder, command.file, command.settings, command.model_folder)
    source, paths = export_language(wanted, JobObserver(job))
    names = tuple(path.relative_to(folder).as_posix() for path in paths)
    return events.WeightsExported(command.job, command.kind, command.folder, names, source)


def judge_take(command: commands.JudgeTake, executor: Executor, job: RunningJob) -> events.TakeJudged:
    """Ask the installed judges; their networks stay loaded."""
    check = JobObserver(job).check
    figures = judged_figures(command.samples, command.sample_rate, command.prompt, check)
    if not command.text:
        return events.TakeJudged(command.job, command.take, figures)
    prompt = prompt_of(command.prompt, command.transcript) if command.prompt else None
    likeness = figures.get("voice_similarity")
    speech = Speech(command.samples, command.sample_rate, command.text, command.seams, prompt, likeness)
    with stoppable(check):
        found = checked_for_faults(speech)
    return events.TakeJudged(command.job, command.take, {**figures, "faults": float(len(found.findings))}, found)


def measure_server(command: commands.MeasureServer, executor: Executor, job: RunningJob) -> events.ServerMeasured:
    require_serving()
    from paretone.serving.load import Measurement

    measured = Measurement(command.order, reply_figures)
    for takes, judged in measured.run(JobObserver(job)):
        job.post(events.ServerMeasured(command.job, measured.record, takes, judged))
    return events.ServerMeasured(command.job, measured.record)


def prepare(command: commands.Prepare, executor: Executor, job: RunningJob) -> events.Prepared:
    request: Any = command.request
    preparation = preparation_for(command.technique, request)
    if isinstance(request, TrainingRequest) and request.begun_again:
        request = replace(request, resume=has_run(request.work))
    model = executor.model_for(request.setting) if preparation.on_loaded_model else None
    observer = PreparationObserver(job, command.technique, preparation.title)
    task = JobTask(request, observer, model, executor.machine, datetime.now(UTC).isoformat(timespec="milliseconds"))
    result = Part(preparation.run, owner=plug_in(command.technique)).make(task)
    info = _info(executor, request, observer) if preparation.finds_weights else None
    return events.Prepared(command.job, command.technique, result, info)


def preparation_for(name: str, request: object) -> Preparation:
    """Job of the technique ``name`` for ``request``. Raises :class:`SettingError` if there is none."""
    declared, kind = technique(name), type(request)
    wanted = f"{kind.__module__}:{kind.__qualname__}"
    found = next((one for one in declared.jobs if one.request == wanted), None)
    if found is None:
        raise SettingError(f"{declared.title} has no preparation that takes a {kind.__qualname__}.")
    return found


def _info(executor: Executor, request: Any, observer: PreparationObserver) -> ModelInfo | None:
    """The loaded model's information after looking for new weights, if the preparation was for it."""
    model = executor.model
    if model is None or getattr(request, "model", model.info.id) != model.info.id:
        return None
    return model.look_for_weights(observer.check)


class StudyObserver(MeasuringObserver, StudyFollower):
    """Observes a study; progress is counted in its tasks."""

    def __init__(self, job: RunningJob) -> None:
        super().__init__(job)
        self.made = 0
        self._pausing = job.pausing
        self._folder = ""
        self._seconds_left: float | None = None
        self._under_way = 0, 0, ""
        self._percent = 0

    def begin(self, folder: str, title: str) -> None:
        self._folder = folder
        self.post(events.StudyBegun(self.job, folder, title))

    def begun(self, title: str, done: int, total: int) -> None:
        self._under_way, self._percent = (done, total, title), 0
        self._tell(title)

    def progress(self, done: int, total: int, text: str = "") -> None:
        """Report the current calibration's progress in per cent: its units are not the study's."""
        self.check()
        percent = 100 * done // max(1, total)
        if percent > self._percent:
            self._percent = percent
            self._tell(f"{self._under_way[2]} ({percent} %)")

    def _tell(self, title: str) -> None:
        done, total, _ = self._under_way
        text = f"Study: {done} of {total}, now {title}"
        self.post(events.Progress(self.job, done, total, self._seconds_left, text, title))

    def advanced(self, done: int, total: int, seconds_left: float | None) -> None:
        self._seconds_left = seconds_left
        self.post(events.Progress(self.job, done, total, seconds_left, f"Study: {done} of {total}"))
        self.check()  # After what it kept was counted.

    def pausing(self) -> bool:
        return self._pausing.is_set()

    def take(self, take: StoredTake) -> None:
        self.made += 1
        self.post(events.StudyTakeDone(self.job, self._folder, take))


def run_study(command: commands.RunStudy, executor: Executor, job: RunningJob) -> events.StudyEnded:
    folder = Path(command.folder) if command.folder else results_folder(command.file)
    study = definition.read(command.file, folder)
    workers: TaskExecutor
    if command.ray:
        if study.batch > 1:
            raise StudyError("Takes are spoken at once on this machine only; leave batch or the cluster out.")
        workers = Cluster(command.ray, command.workers, executor.load)
    else:
        # Before the model is loaded. On a cluster the workers need the judges instead.
        for problem in filter(None, (judge_named(name).problem() for name in study.judges)):
            raise StudyError(problem)
        workers = LocalExecutor(executor.load, executor.model if _serves(executor, study) else None)
    observer = StudyObserver(job)
    for sentence in _cautions(study, executor):
        observer.caution(sentence)
    with Store(folder) as store:
        store.begin(study, command.file)
        observer.begin(str(folder), study.title)
        state = run(study, store, workers, observer)
        found = []
        if state == FINISHED:
            _require_a_take(store)
            findings = ((owner.name, finished(study, store)) for owner, finished in hooks("finished"))
            found = [(name, finding) for name, finding in findings if finding is not None]
    for name, finding in found:
        _tell(name, finding, executor, observer)
    sentences = tuple(one.sentence for _, one in found)
    fields = Values({name: value for _, one in found for name, value in one.fields})
    words = study.evaluation.words if study.evaluation is not None else ""
    log = tuple(workers.log())
    return events.StudyEnded(command.job, str(folder), state == PAUSED, observer.made, log, sentences, words, fields)


def _cautions(study: Study, executor: Executor) -> Iterator[str]:
    """What should be said about the settings and the voices of a study before it begins, each sentence once."""
    info, said = replace(known(study.model), lacking=device.lacking(executor.device)), Counter[str]()
    for one in study.candidates:
        with suppress(SettingError):
            said.update(collapses(foreseen(one.setting, info), info))
    yield from (f"{count} of {len(study.candidates)} settings: {sentence}" for sentence, count in said.items())
    there = len(study.utterances if study.evaluation else {one.text for one in study.utterances})
    if (asked := study.definition.get("count", 0)) > there:
        yield f"The study's count is {asked}, and it has no more sentences than {there}: all are spoken."
    voices = {one.voice.id: one.voice for one in study.utterances}
    yield from (sentence for voice in voices.values() for sentence in prompt_faults(voice))


def verify_study(command: commands.VerifyStudy, executor: Executor, job: RunningJob) -> events.StudyVerified:
    observer = JobObserver(job)

    def equip(equipment: Equipment) -> TaskRunner:
        from paretone.studies.execution import TaskRunner

        model = executor.model if _serves(executor, equipment) else None
        return TaskRunner(equipment, executor.load, model)

    with Store(command.folder, read_only=True) as store:
        return events.StudyVerified(command.job, command.folder, verify(store, equip, command.takes, observer))


def _require_a_take(store: Store) -> None:
    """Raise :class:`StudyError` for a study without any take."""
    if store.takes():
        return
    reasons = [*store.failures().values(), *(one.problem for one in store.settings() if one.problem)]
    first = reasons[0] if reasons else "there was none to make."
    raise StudyError(
        f"No take of the study could be made; the first because: {first} Once that is put right, run the study again."
    )


def _tell(technique: str, finding: Finding, executor: Executor, observer: StudyObserver) -> None:
    """Update the loaded model with a finding about it."""
    model = executor.model
    if finding.result is not None and model is not None and model.info.all_weights == finding.checkpoint:
        info = model.look_for_weights(observer.check)
        observer.post(events.Prepared(observer.job, technique, finding.result, info))


def _serves(executor: Executor, study: Study | Equipment) -> bool:
    """Whether the loaded model and its device suit a study."""
    model, loaded = executor.model, executor.loaded
    if model is None or model.info.id != study.model or str(device.choose(study.device)) != executor.device:
        return False
    if loaded is not None and loaded.vocoder != study.vocoder:
        return False
    if study.folder or study.variant:
        place = Path(study.folder).absolute(), study.variant
        return loaded is not None and (Path(loaded.folder).absolute(), loaded.variant) == place
    return Path(model.info.checkpoint).is_relative_to(entry(study.model).folder)
