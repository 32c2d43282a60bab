"""Kind of study: layer importance by word errors."""

from collections.abc import Mapping

from paretone.measure.metrics import metric
from paretone.models.base import ModelInfo
from paretone.techniques.spade import TECHNIQUE
from paretone.techniques.spade.importance import LAYERS, LEAVE_OUT
from paretone_app.features.studies.forms import StudyKind


def _fields(info: ModelInfo) -> Mapping[str, object] | None:
    if info.family not in TECHNIQUE.families or info.layers < 2:
        return None
    return {LEAVE_OUT: True, LAYERS: info.layers}


KIND = StudyKind(
    name="layers",
    title="Leave out each layer once",
    tip="Layer importance by word errors",
    about="The model speaks with all layers, then without each one. After the study, the word "
    "error rates become the model's layer importance, which the panel Layers uses.",
    proposal="Word errors without each layer of {model}",
    judges=(metric("word_error_rate").judge,),
    fields=_fields,
    missing="Load a speech language model first.",
)
