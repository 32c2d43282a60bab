"""Running studies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from paretone import device
from paretone.errors import StudyError
from paretone.measure.evaluation.judges import judge_named
from paretone.models.catalogue import entry
from paretone.observer import StepReport
from paretone.session.commands import RunStudy
from paretone.session.events import Prepared, Progress, StudyBegun, StudyEnded, StudyTakeDone
from paretone.session.executor import Executor
from paretone.session.observers import JobObserver, RunningJob
from paretone.setting.knobs import Values
from paretone.studies import definition
from paretone.studies.cluster import Cluster
from paretone.studies.hooks import Finding, hooks
from paretone.studies.running import FINISHED, PAUSED, LocalExecutor, StudyFollower, TaskExecutor, run
from paretone.studies.store import Store
from paretone.studies.stored import StoredTake
from paretone.studies.study import Study, results_folder


class StudyObserver(JobObserver, StudyFollower):
    """Follows a study. Its progress is counted in takes and such."""

    def __init__(self, job: RunningJob) -> None:
        super().__init__(job)
        self.made = 0
        """Takes of this run."""
        self._pausing = job.pausing
        self._folder = ""
        self._seconds_left: float | None = None
        self._under_way = 0, 0, ""
        self._percent = 0

    def begin(self, folder: str, title: str) -> None:
        """Say which study it is."""
        self._folder = folder
        self.post(StudyBegun(self.job, folder, title))

    def step(self, report: StepReport) -> None:
        """A chance to stop."""
        self.check()

    def begun(self, title: str, done: int, total: int) -> None:
        """Tell what is being made."""
        self._under_way, self._percent = (done, total, title), 0
        self._tell(title)

    def progress(self, done: int, total: int, text: str = "") -> None:
        """Tell how far the calibration under way is, by the hundredth: its units are not the study's."""
        self.check()
        percent = 100 * done // max(1, total)
        if percent > self._percent:
            self._percent = percent
            self._tell(f"{self._under_way[2]} ({percent} %)")

    def _tell(self, title: str) -> None:
        done, total, _ = self._under_way
        self.post(Progress(self.job, done, total, self._seconds_left, f"Study: {done} of {total}, now {title}"))

    def advanced(self, done: int, total: int, seconds_left: float | None) -> None:
        """Tell how far it is, with the study's own estimate."""
        self.check()
        self._seconds_left = seconds_left
        self.post(Progress(self.job, done, total, seconds_left, f"Study: {done} of {total}"))

    def pausing(self) -> bool:
        return self._pausing.is_set()

    def take(self, take: StoredTake) -> None:
        """Tell of a finished take."""
        self.made += 1
        self.post(StudyTakeDone(self.job, self._folder, take))


def run_study(command: RunStudy, executor: Executor, job: RunningJob) -> StudyEnded:
    """Do what is left of a study."""
    study = definition.read(command.file)
    folder = Path(command.folder) if command.folder else results_folder(command.file)
    workers: TaskExecutor
    if command.ray:
        workers = Cluster(command.ray, command.workers, executor.load)
    else:
        _require_judges(study)
        workers = LocalExecutor(executor.load, executor.model if _serves(executor, study) else None)
    observer = StudyObserver(job)
    with Store(folder) as store:
        store.begin(study, command.file)
        observer.begin(str(folder), study.title)
        state = run(study, store, workers, observer)
        if state == FINISHED:
            _require_a_take(store)
        found = [] if state != FINISHED else list(_found(study, store))
    for technique, finding in found:
        _tell(technique, finding, executor, observer)
    return StudyEnded(
        command.job,
        str(folder),
        state == PAUSED,
        observer.made,
        tuple(workers.log()),
        tuple(one.sentence for _, one in found),
        Values({name: value for _, one in found for name, value in one.fields}),
    )


def _require_a_take(store: Store) -> None:
    """A study of which nothing could be made is no finished one."""
    if store.takes():
        return
    reasons = [*store.failures().values(), *(one.problem for one in store.settings() if one.problem)]
    first = reasons[0] if reasons else "there was none to make."
    raise StudyError(
        f"No take of the study could be made; the first because: {first} Once that is put right, run the study again."
    )


def _found(study: Study, store: Store) -> Iterator[tuple[str, Finding]]:
    """Findings of techniques in a finished study."""
    for technique, finished in hooks("finished"):
        finding = finished(study, store)
        if finding is not None:
            yield technique.name, finding


def _require_judges(study: Study) -> None:
    """Before the model is loaded. On a cluster it is the workers that need them."""
    for problem in (judge_named(name).problem() for name in study.judges):
        if problem:
            raise StudyError(problem)


def _tell(technique: str, finding: Finding, executor: Executor, observer: StudyObserver) -> None:
    """Let the loaded model know what was found of it."""
    model = executor.model
    if finding.result is not None and model is not None and model.info.all_weights == finding.checkpoint:
        info = model.look_for_weights(observer.check)
        observer.post(Prepared(observer.job, technique, finding.result, info))


def _serves(executor: Executor, study: Study) -> bool:
    """Whether the loaded model is the one that a study wants, on the device that it wants."""
    model, loaded = executor.model, executor.loaded
    if model is None or model.info.id != study.model or str(device.choose(study.device)) != executor.device:
        return False
    if loaded is not None and loaded.vocoder != study.vocoder:
        return False
    if study.folder or study.variant:
        place = Path(study.folder).absolute(), study.variant
        return loaded is not None and (Path(loaded.folder).absolute(), loaded.variant) == place
    return Path(model.info.checkpoint).is_relative_to(entry(study.model).folder)
