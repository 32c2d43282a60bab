"""What a synthesis under the selected setting will cost: whole sentences, each of which can be translated as it is."""

from __future__ import annotations

from paretone.models import catalogue
from paretone.models.base import FLOW, LANGUAGE
from paretone.setting.plan import LanguagePlan
from paretone_app.numbers import fixed, percent, rough_duration
from paretone_app.state.app_state import AppState
from paretone_app.state.differences import prepared_entry


def cost_line(state: AppState) -> str:
    """Rich text of one line: the share of the work that is left, and how long the whole text will take."""
    if state.selection.candidate:
        wanted = catalogue.entry(state.selection.candidate).title
        return f"<b>Cost</b> is shown once {wanted} is loaded."
    said = (_of_tokens if state.selection.entry.family == LANGUAGE else _of_steps)(state)
    return " ".join(["<b>Cost</b>", *said, *_expected(state)])


def _of_steps(state: AppState) -> list[str]:
    """Sentences on a model that samples in steps."""
    steps = state.selection.options_in_force.get("steps")
    said = [f"It samples in {steps} steps." if steps is not None else "It samples in the model's own number of steps."]
    if not state.selection.setting.techniques:
        return [*said, "Every module is computed; no technique in use."]
    problem, ratio = state.availability.why_not_accelerate(), state.cost.ops_ratio
    if problem and state.selection.ready and state.artefacts.at_hand:
        return [*said, problem]
    if ratio is not None:
        left, gain = percent(ratio, 1), fixed(1 / ratio, 2)
        return [*said, f"<b>{left}</b> of the baseline's operations are left, which allows {gain}× the speed."]
    if state.selection.entry.family != FLOW or state.cost.operations is not None:
        return [*said, "The saving is shown after a run."]
    if prepared_entry(state.selection.setting) is None:
        return [*said, "The saving is shown after one baseline."]
    return [*said, "The saving is shown after calibration and one baseline."]


def _of_tokens(state: AppState) -> list[str]:
    """Sentences on a model that speaks token by token."""
    if not state.selection.setting.techniques:
        return ["Each token takes one pass of the whole language model; no technique in use."]
    problem, plan = state.availability.why_not_accelerate(), state.cost.plan
    if problem or not isinstance(plan, LanguagePlan):
        return [problem] if problem else []
    layers = state.selection.loaded.layers
    kept = plan.weights.depth if plan.weights is not None else len(plan.layers or range(layers))
    if plan.draft is None and plan.decoding is None:
        if kept == layers:
            return ["Each token takes a pass over all layers."]
        return [f"Each token takes a pass over {kept} of {layers} layers."]
    if kept == layers:
        return ["Each draft takes a pass over all layers; Decoding shows the number of accepted tokens."]
    return [f"Each draft takes a pass over {kept} of {layers} layers; Decoding shows the number of accepted tokens."]


def _expected(state: AppState) -> list[str]:
    """How long the whole text will take: a sentence, or none if that is not known."""
    plain = state.cost.expected_seconds(state.selection.baseline_setting)
    if plain is None or not state.selection.text.strip():
        return []
    setting = state.selection.setting
    if not setting.techniques or state.availability.why_not_accelerate():
        return [f"The whole text takes about {rough_duration(plain)}."]
    fast = state.cost.expected_seconds(setting)
    if fast is None or fast == plain:  # What the techniques save is not known yet.
        return [f"The whole text takes about {rough_duration(plain)} without techniques."]
    return [f"The whole text takes about {rough_duration(fast)}, against {rough_duration(plain)} without techniques."]
