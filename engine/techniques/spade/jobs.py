"""SPADE's preparations as jobs: see :class:`engine.techniques.base.Job`."""

from __future__ import annotations

from engine.errors import SettingError
from engine.models.families.language import LanguageSpeech
from engine.models.files.language_weights import places_of
from engine.models.files.layer_importance import FILE, read_record
from engine.paths import own_place
from engine.techniques.base import JobTask
from engine.techniques.spade.measuring import measure_layers
from engine.techniques.spade.requests import LayersMeasured
from engine.techniques.spade.training import Student
from engine.training.companions import train_companion
from engine.training.reporting import Reporting, use_threads
from engine.training.requests import Trained


def importance(task: JobTask) -> LayersMeasured:
    """Do an :class:`engine.techniques.spade.requests.ImportanceRequest`."""
    model, request = task.loaded, task.request
    if not isinstance(model, LanguageSpeech):
        raise SettingError(f"{model.info.title} is not a language model: its layers are not measured like this.")
    path = own_place(model.info.id) / FILE
    earlier = read_record(places_of(model.info), model.info.fingerprint)
    record = measure_layers(model, request.utterances, request.setting, request.measures, task.observer, earlier)
    record.write(path)
    return LayersMeasured(record, str(path))


def train(task: JobTask) -> Trained:
    """Do a :class:`engine.techniques.spade.requests.StudentRequest`."""
    use_threads(task.request)
    return train_companion(task.request, Student.of(task.request), Reporting(task.observer))
