"""What a setting means on a loaded speech language model; see :mod:`engine.techniques.engagement`. Torch-free."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from engine.errors import SettingError
from engine.models.base import DraftWeights, ModelInfo, StudentWeights
from engine.setting.knobs import Values, checked
from engine.setting.setting import Engaged, Setting
from engine.techniques import in_force, knobs_of, remarks, require_family, spade, speculative
from engine.techniques.launching import PLAIN, Launching, launching
from engine.techniques.spade import NONE, PARTLY, parsed_layers

Weights = TypeVar("Weights", DraftWeights, StudentWeights)
TRAINED_DRAFT, DRAFT_BY_STUDENT = "trained", "student"
"""Values of the knob ``draft``: which kind of weights proposes tokens, a draft or a SPADE student."""


@dataclass(frozen=True)
class Speculation:
    """How speech is decoded speculatively."""

    draft: DraftWeights | StudentWeights
    tolerance: float
    """β: what is added to the probability of accepting a drafted token."""
    draft_length: int
    """Tokens of a draft; where ``adaptive``, of the first one."""
    adaptive: bool
    block: bool = False
    """Whether a draft is verified as a whole, which is for no tolerance."""


@dataclass(frozen=True)
class LanguageEngagement:
    """What one synthesis is carried out with."""

    options: Values
    """The sampler options in force."""
    student: StudentWeights | None = None
    """What takes the place of the model's own weights."""
    retained: tuple[int, ...] | None = None
    """Which of the model's layers run, in order, if it is pruned without having learnt to do without the others."""
    speculation: Speculation | None = None
    notes: tuple[str, ...] = ()
    """What belongs on a take: sentences about where the result is not what it may be taken for."""
    launching: Launching = PLAIN
    """How passes are launched."""


def engage(info: ModelInfo, setting: Setting) -> LanguageEngagement:
    """Resolve ``setting`` on the loaded model that ``info`` describes.

    Raises :class:`SettingError` that says why it cannot be used.
    """
    require_family(info, setting)
    reference = checked(info.knobs, setting.options, info.title)
    options = in_force(info, setting, reference)
    pruned, drafted = setting.engaged(spade.NAME), setting.engaged(speculative.NAME)
    student, retained = (None, None) if pruned is None else _shallower(info, pruned)
    speculation = None if drafted is None else _speculation(info, drafted, student)
    noted = remarks(setting, options)
    return LanguageEngagement(options, student, retained, speculation, noted, launching(info, setting))


def language_artefact(info: ModelInfo, setting: Setting, technique: str) -> str:
    """The fingerprint of the draft or student that ``technique`` comes to in ``setting``, or ``""`` if it takes
    none. Raises :class:`SettingError`."""
    engagement = engage(info, setting)
    chosen = engagement.student if technique == spade.NAME else None
    if technique == speculative.NAME and engagement.speculation is not None:
        chosen = engagement.speculation.draft
    return chosen.fingerprint if chosen else ""


def _shallower(info: ModelInfo, entry: Engaged) -> tuple[StudentWeights | None, tuple[int, ...] | None]:
    """The student that ``entry`` engages, or the layers that it keeps of the model's own."""
    knobs = knobs_of(entry)
    by_hand = parsed_layers(str(knobs["layers"]))
    _require_layers(info, by_hand)
    depth = len(by_hand) or int(knobs["depth"])
    if depth > info.layers:
        raise SettingError(f"{info.title} has {info.layers} layers, so it cannot keep {depth}; choose fewer.")
    if knobs["recovery"] == NONE:
        return None, by_hand or _most_important(info, depth)
    if entry.artefact:
        return _named(info.students, entry.artefact, f"student with {_layers(depth)}", info), None
    if depth == info.layers:
        raise SettingError(f"All {depth} layers of {info.title} are kept: there is nothing to prune; choose fewer.")
    fitting = fitting_students(info, knobs)
    if not fitting:
        raise SettingError(_no_student(info, depth, by_hand, knobs["recovery"] == PARTLY))
    return fitting[0], None


def fitting_students(info: ModelInfo, knobs: Values) -> tuple[StudentWeights, ...]:
    """The loaded model's students that have what SPADE's ``knobs`` ask for; what learnt longest first."""
    if knobs["recovery"] == NONE:
        return ()
    partly, by_hand = knobs["recovery"] == PARTLY, parsed_layers(str(knobs["layers"]))
    found = [
        one
        for one in info.students
        if one.recovered != partly and (one.retained == by_hand if by_hand else one.depth == int(knobs["depth"]))
    ]
    return tuple(sorted(found, key=lambda one: -one.minutes))


def fitting_drafts(info: ModelInfo, knobs: Values) -> tuple[DraftWeights | StudentWeights, ...]:
    """The loaded model's drafts or, where SSD's ``knobs`` say so, its students; recovered and shallow ones first."""
    if knobs["draft"] == DRAFT_BY_STUDENT:
        return tuple(sorted(info.students, key=lambda one: (not one.recovered, one.depth)))
    return info.drafts


def _require_layers(info: ModelInfo, layers: Sequence[int]) -> None:
    beyond = [one for one in layers if one >= info.layers]
    if beyond:
        raise SettingError(
            f"{info.title} has no layer {beyond[0]}: its {info.layers} layers are numbered from 0 to {info.layers - 1}."
        )


def _most_important(info: ModelInfo, depth: int) -> tuple[int, ...]:
    if not info.layer_order:
        raise SettingError(
            f"Which layers of {info.title} matter has not been measured yet; measure it in the Layers panel, or name "
            "the layers to keep by hand."
        )
    return tuple(sorted(info.layer_order[:depth]))


def _no_student(info: ModelInfo, depth: int, by_hand: tuple[int, ...], partly: bool) -> str:
    which = f"the layers {', '.join(map(str, by_hand))}" if by_hand else _layers(depth)
    state = "partly recovered" if partly else "recovered"
    there = ", ".join(f"{one.depth} ({one.stage})" for one in info.students)
    has = f"; there are some with {there}" if there else ""
    return (
        f"No {state} student of {info.title} with {which} has been trained yet{has}; train one, or hear it "
        f"pruned only.{_foreign(info, 'students')}"
    )


def _layers(count: int) -> str:
    return f"{count} layer" if count == 1 else f"{count} layers"


def _speculation(info: ModelInfo, entry: Engaged, target: StudentWeights | None) -> Speculation:
    knobs = knobs_of(entry)
    there = fitting_drafts(info, knobs)
    kind = "student" if knobs["draft"] == DRAFT_BY_STUDENT else "draft"
    if entry.artefact:
        draft = _named(there, entry.artefact, kind, info)
    elif there:
        draft = there[0]
    else:
        raise SettingError(
            f"No {kind} that could propose tokens for {info.title} has been trained yet; train one first."
            f"{_foreign(info, f'{kind}s')}"
        )
    if target is not None and draft.fingerprint == target.fingerprint:
        raise SettingError(
            "The student cannot propose tokens for itself; choose the trained draft, or do without "
            f"{spade.TECHNIQUE.title}."
        )
    tolerance = float(knobs["tolerance"])
    block = tolerance == 0 and knobs["verification"] == speculative.BY_BLOCK
    return Speculation(draft, tolerance, int(knobs["draft_length"]), bool(knobs["adaptive"]), block)


def _named(there: Sequence[Weights], fingerprint: str, kind: str, info: ModelInfo) -> Weights:
    for one in there:
        if one.fingerprint == fingerprint:
            return one
    raise SettingError(
        f"The {kind} {fingerprint[:12]!r} is not among those of {info.title} here; put its file beside the others, or "
        "train one of your own."
    )


def _foreign(info: ModelInfo, folder: str) -> str:
    """That there is one of another checkpoint, if there is."""
    path = next((Path(one) for one in info.foreign if Path(one).parent.name == folder), None)
    if path is None:
        return ""
    return f" {path} was made from another checkpoint than {info.title}'s and cannot be used with it."
