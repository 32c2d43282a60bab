"""Running studies."""

from __future__ import annotations

from pathlib import Path

from engine import device
from engine.errors import StudyError
from engine.measure.evaluation.judges import judge_named
from engine.models.catalogue import entry
from engine.session.executor import Executor
from engine.session.messages import LayersMeasured, RunStudy, StudyEnded
from engine.session.observers import Job, StudyObserver
from engine.studies import definition
from engine.studies.adopting import Adoption, adopt
from engine.studies.cluster import Cluster
from engine.studies.running import FINISHED, PAUSED, LocalExecutor, run
from engine.studies.store import Store
from engine.studies.study import Study, results_folder


def run_study(command: RunStudy, executor: Executor, job: Job) -> StudyEnded:
    """Do what is left of a study."""
    study = definition.read(command.file)
    folder = Path(command.folder) if command.folder else results_folder(command.file)
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
        adopted = adopt(study, store) if state == FINISHED else None
    _tell_layers(adopted, executor, observer)
    found = () if adopted is None else (adopted.sentence,)
    kept = "" if adopted is None or adopted.record is None else str(adopted.path)
    return StudyEnded(command.job, str(folder), state == PAUSED, observer.made, tuple(workers.log()), found, kept)


def _require_judges(study: Study) -> None:
    """Before the model is loaded. On a cluster it is the workers that need them."""
    for problem in (judge_named(name).problem() for name in study.judges):
        if problem:
            raise StudyError(problem)


def _tell_layers(adopted: Adoption | None, executor: Executor, observer: StudyObserver) -> None:
    """Let the loaded model know what was measured of its layers, if it is of this one."""
    model = executor.model
    if adopted is None or adopted.record is None or model is None:
        return
    if model.info.fingerprint == adopted.record.checkpoint:
        info = model.look_for_weights(observer.check)
        observer.post(LayersMeasured(observer.job, adopted.record, str(adopted.path), info))


def _serves(executor: Executor, study: Study) -> bool:
    """Whether the loaded model is the one that a study wants, on the device that it wants."""
    model = executor.model
    if model is None or model.info.id != study.model or study.folder or study.variant:
        return False
    usual = entry(study.model).folder
    return Path(model.info.checkpoint).is_relative_to(usual) and str(device.choose(study.device)) == executor.device
