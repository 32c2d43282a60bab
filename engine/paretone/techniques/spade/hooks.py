"""What studies and exports ask of SPADE: see :mod:`paretone.studies.hooks` and :mod:`paretone.export.targets`.
Torch-free."""

from __future__ import annotations

from collections.abc import Iterator

from paretone.export.accounts import FEWER_LAYERS, Carried, whole_line
from paretone.export.targets import Target, lacking
from paretone.fields import Fields
from paretone.models.files.layer_importance import FILE
from paretone.setting.knobs import Values, checked
from paretone.setting.setting import Setting, UsedTechnique
from paretone.studies.hooks import Finding
from paretone.studies.store import Store
from paretone.studies.study import Study
from paretone.techniques.spade import NAME, NONE, TECHNIQUE, LayersMeasured
from paretone.techniques.spade.importance import adopt, importance

LEAVE_OUT = "leave_one_layer_out"
"""The field of a study's file that asks for one setting for each layer, without it."""
LAYERS = "layers"
"""The field with the number of these layers."""


def settings(fields: Fields, model: str, options: Values) -> Iterator[tuple[Setting, str]]:
    """One setting for each layer of a language model, without it: what importance by words is measured on."""
    if not fields.flag(LEAVE_OUT):
        return
    layers = fields.whole(LAYERS, 0, minimum=2)
    for layer in range(layers):
        kept = ",".join(str(one) for one in range(layers) if one != layer)
        knobs = checked(TECHNIQUE.knobs, {"recovery": NONE, "layers": kept}, TECHNIQUE.title)
        yield Setting(model, options, (UsedTechnique(NAME, knobs),)), f"without layer {layer}"


def files(store: Store) -> dict[str, str]:
    """The importance of layers, as SPADE reads it."""
    found = importance(store)
    return {} if found is None else {FILE: found.to_json()}


def finished(study: Study, store: Store) -> Finding | None:
    """Put the importance that was found into the model's own record."""
    adopted = adopt(study, store)
    if adopted is None:
        return None
    if adopted.record is None:
        return Finding(adopted.sentence, (("layers", ""),))
    path = str(adopted.path)
    result = LayersMeasured(adopted.record, path)
    return Finding(adopted.sentence, (("layers", path),), result, adopted.record.checkpoint)


KIND = "student"


def carried(target: Target, entry: UsedTechnique, artefact: object) -> Carried:
    """The student goes in place of the model, where the target runs language models."""
    if FEWER_LAYERS not in target.takes:
        return lacking(target, entry)
    return Carried((whole_line(entry, "the model that is written has these layers"),))
