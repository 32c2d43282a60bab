"""Measuring packed weights as a job: see :class:`paretone.techniques.base.Job`."""

from __future__ import annotations

from paretone.errors import SettingError
from paretone.models.families.language import LanguageSpeech
from paretone.techniques import resolve
from paretone.techniques.base import JobTask
from paretone.techniques.weight_only import NAME
from paretone.techniques.weight_only.measuring import ROUNDS
from paretone.techniques.weight_only.measuring import measure as measure_packed
from paretone.techniques.weight_only.packing import narrowed, require_available
from paretone.techniques.weight_only.record import INT4, INT8, Record
from paretone.techniques.weight_only.requests import WeightsMeasured


def measure(task: JobTask) -> WeightsMeasured:
    """Do a :class:`paretone.techniques.weight_only.requests.MeasureWeights`."""
    model, request = task.loaded, task.request
    if not isinstance(model, LanguageSpeech) or model.info.device_type not in ("", "cpu"):
        raise SettingError(
            f"{model.info.title} on {model.info.device} has no passes of packed weights; load a speech language model "
            "on the processor."
        )
    require_available()
    plan = resolve(model.info, request.setting.without(NAME), prepared=False)
    tokens = model.networks(plan).target.tokens
    record, found = Record.of(model.info.id), []
    ways = [(INT8, 0), *((INT4, group) for group in request.groups)]
    for number, (bits, group) in enumerate(ways):
        task.observer.status(f"Measuring {bits}{f' in groups of {group}' if group else ''} …")

        def tell(done: int, before: int = number) -> None:
            task.observer.check()
            task.observer.progress(before * ROUNDS + done, len(ways) * ROUNDS)

        one = measure_packed(tokens, narrowed(tokens, bits, group), bits, group, plan.fingerprint, tell)
        record = record.with_measured(one)
        found.append(one)
    return WeightsMeasured(tuple(found), str(record.path))
