"""SPADE's preparations as jobs: see :class:`paretone.techniques.base.Job`."""

from __future__ import annotations

from paretone.errors import SettingError
from paretone.models.families.language import LanguageSpeech
from paretone.models.files.language_weights import places_of
from paretone.models.files.layer_importance import FILE, read_record
from paretone.paths import own_place
from paretone.techniques.base import JobTask
from paretone.techniques.spade.measuring import measure_layers
from paretone.techniques.spade.requests import LayersMeasured
from paretone.techniques.spade.training import Student
from paretone.training.companions import train_companion
from paretone.training.reporting import Reporting, use_threads
from paretone.training.requests import Trained


def importance(task: JobTask) -> LayersMeasured:
    """Do an :class:`paretone.techniques.spade.requests.ImportanceRequest`."""
    model, request = task.loaded, task.request
    if not isinstance(model, LanguageSpeech):
        raise SettingError(f"{model.info.title} is not a language model: its layers are not measured like this.")
    path = own_place(model.info.id) / FILE
    earlier = read_record(places_of(model.info), model.info.fingerprint)
    record = measure_layers(model, request.utterances, request.setting, request.measures, task.observer, earlier)
    record.write(path)
    return LayersMeasured(record, str(path))


def train(task: JobTask) -> Trained:
    """Do a :class:`paretone.techniques.spade.requests.StudentRequest`."""
    use_threads(task.request)
    return train_companion(task.request, Student.of(task.request), Reporting(task.observer))
