"""SSD: speech speculative decoding. The decoding: :mod:`paretone.sampling.speculative`. Torch-free."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from paretone.errors import SettingError
from paretone.export.accounts import ADAPTIVE_DRAFT, DRAFT, Carried, Line, knob_lines, whole_line
from paretone.export.targets import Target, lacking
from paretone.figures.glyphs import Mark
from paretone.models.base import DraftWeights, FeatureDraftWeights, ModelInfo, StudentWeights
from paretone.models.catalogue import entry
from paretone.paths import in_own_place
from paretone.setting.knobs import Choice, Effect, Switch, Values, amount, count
from paretone.setting.plan import LanguagePlan, NotPrepared, Part
from paretone.setting.setting import Published, UsedTechnique
from paretone.techniques import knobs_of
from paretone.techniques.base import (
    Conflict,
    Context,
    Paper,
    Technique,
    Weights,
    named_weights,
    other_checkpoint,
    to_type,
    training_job,
)
from paretone.training import forms
from paretone.training.requests import CompanionRequest, why_no_teacher


def fitting_upper(layers: int) -> int:
    """Default number of topmost layers of a draft for a model of ``layers``: a quarter, as published; none up to a
    dozen layers, where they dominate the cost of a draft."""
    return 0 if layers <= 12 else layers // 4


@dataclass(frozen=True, kw_only=True)
class OfLayers:
    """Choices of a draft of the model's own layers."""

    lower: int = 2
    """Number of lowest layers, which are trained."""
    upper: int | None = None
    """Number of topmost layers, which stay frozen; ``None``: :func:`fitting_upper`."""
    spoken_share: float = 0.2
    """Share of the cross-entropy in the loss; the rest is the divergence from the target. 1 is the published loss."""
    overlap_share: float = 0.5
    """Share of the rejection rate, one minus the overlap of the distributions, in the rest of the loss."""


@dataclass(frozen=True, kw_only=True)
class DraftRequest(OfLayers, CompanionRequest):
    """Request to train a draft of the model's lowest and topmost layers, of which the lowest and the head are trained,
    or one on ``features``, the model's hidden states (EAGLE-3); layers and shares then do not count. The result is
    :class:`paretone.training.requests.Trained`."""

    features: bool = False
    initial: str = ""
    """File of a draft with the same layers to start from."""


NAME = "speculative"
BY_BLOCK, BY_TOKEN = "block", "token"
GUARDED, PUBLISHED = "guarded", "published"
"""Values of the knob ``tolerated``: ids to which the tolerance applies."""
TRAINED_DRAFT, ON_FEATURES, OF_LAYERS, DRAFT_BY_STUDENT = "trained", "features", "layers", "student"
"""Values of the knob ``draft``: the best trained one, one on hidden states, one of some layers, a shallower student."""


def resolve(context: Context, knobs: Values, plan: LanguagePlan) -> LanguagePlan:
    if knobs["alone"]:
        if plan.weights is not None or plan.layers is not None:
            title = context.title_in("weights:language")
            raise Conflict(f"A draft of the whole model speaks alone; do without {title}.", "weights:language")
        if knobs["draft"] == ON_FEATURES:
            raise SettingError("A draft on features cannot speak alone: it reads what the model computes.")
        if not context.loaded:
            return plan
        alone = _draft(context, knobs, plan)
        assert not isinstance(alone, FeatureDraftWeights)
        return replace(plan, weights=alone)
    tolerance = float(knobs["tolerance"])
    decoding = Part.of(
        f"{__name__}.decoding:speculative",
        tolerance=tolerance,
        draft_length=int(knobs["draft_length"]),
        adaptive=bool(knobs["adaptive"]),
        block=tolerance == 0 and knobs["verification"] == BY_BLOCK,
        guarded=knobs["tolerated"] == GUARDED,
    )
    plan = replace(plan, decoding=decoding)
    return replace(plan, draft=_draft(context, knobs, plan)) if context.loaded else plan


def _draft(context: Context, knobs: Values, plan: LanguagePlan) -> DraftWeights | FeatureDraftWeights | StudentWeights:
    info, kind = context.info, KINDS.get(knobs["draft"], "draft")
    there = fitting_drafts(info, knobs)
    if knobs["alone"] or plan.weights is not None or plan.layers is not None:
        if knobs["draft"] == ON_FEATURES:
            title = context.title_in("weights:language")
            raise Conflict(
                f"A draft on features reads the whole model's layers; do without {title}.", "weights:language"
            )
        there = tuple(one for one in there if not isinstance(one, FeatureDraftWeights))
    if context.entry.artefact:
        draft = named_weights(there, context.entry.artefact, kind, info)
    elif there:
        draft = there[0]
    else:
        raise NotPrepared(
            f"{info.title} has no trained {kind} to propose tokens; train one first."
            f"{other_checkpoint(info, 'students' if kind == 'student' else 'drafts')}",
            # Students belong to another technique.
            command="paretone train --help"
            if kind == "student"
            else to_type(
                f"train draft {'--features ' if knobs['draft'] == ON_FEATURES else ''}"
                f"--minutes {_minutes(info):.0f} --work runs/draft",
                info,
            ),
        )
    if draft.fingerprint == plan.fingerprint:
        raise Conflict(
            "The student cannot propose tokens for itself; choose the trained draft, or do without "
            f"{context.title_in('weights:language')}.",
            "weights:language",
        )
    return draft


KINDS = {DRAFT_BY_STUDENT: "student", ON_FEATURES: "draft on features", OF_LAYERS: "draft of layers"}
"""Words for the drafting weights, by the knob ``draft``."""


def fitting_drafts(info: ModelInfo, knobs: Values) -> tuple[DraftWeights | FeatureDraftWeights | StudentWeights, ...]:
    """Drafts of the loaded model by ``knobs``, on features first, or its students, recovered and shallow first; but
    the user's own last."""
    on_features = () if knobs["draft"] == OF_LAYERS else info.feature_drafts
    found: Iterable[Any] = on_features if knobs["draft"] == ON_FEATURES else (*on_features, *info.drafts)
    if knobs["draft"] == DRAFT_BY_STUDENT:
        found = sorted(info.students, key=lambda one: (not one.recovered, one.depth))
    return tuple(sorted(found, key=lambda one: in_own_place(one.path, info.id)))


def idle(knobs: Values, plan: LanguagePlan) -> str:
    if knobs["alone"]:
        return ""
    return "the model accepted none of the drafted tokens; draft fewer, or train the draft longer"


def describe(knobs: Values) -> str:
    if knobs["alone"]:
        return "the draft speaks alone, and nothing verifies its tokens"
    tolerance = knobs["tolerance"]
    exact = "exactly the target's distribution" if tolerance == 0 else "relaxed: speech may drift from the target's"
    if tolerance == 0 and knobs["verification"] == BY_BLOCK:
        exact += ", verified as a whole"
    if tolerance and knobs["tolerated"] == PUBLISHED:
        exact += "; it applies to every id, as published"
    length = "an adaptive number of tokens" if knobs["adaptive"] else f"{knobs['draft_length']} tokens"
    return f"drafts {length} at a time; β = {tolerance:g} is {exact}"


def drafting(weights: object) -> str:
    """The knob ``draft`` for these weights."""
    if isinstance(weights, StudentWeights):
        return DRAFT_BY_STUDENT
    return ON_FEATURES if isinstance(weights, FeatureDraftWeights) else OF_LAYERS


LENGTH = 3  # The paper's draft length.
TOLERANCES = (0.0, 0.1, 0.2, 0.3, 0.4)
"""Tolerances of the paper's table 3."""
_BY_PAPER = Values(
    tolerated=PUBLISHED, draft_length=LENGTH, adaptive=False, verification=BY_TOKEN, draft=OF_LAYERS, alone=False
)
_DRAFT = (
    "The paper's draft has 2 + 6 of 24 layers and learns recordings by cross-entropy alone: paretone train draft "
    "--upper 6 --spoken-share 1 --sentences 0 --manifest FILE --epochs N --work FOLDER."
)
_PUBLISHED = (
    *(
        Published(
            f"beta={tolerance:g}",
            "table 3",
            ("CosyVoice2-0.5B",),
            _BY_PAPER.replace(tolerance=tolerance),
            main=tolerance == TOLERANCES[-1],
            remark=_DRAFT,
        )
        for tolerance in TOLERANCES
    ),
    Published("draft-alone", "table 1", ("CosyVoice2-0.5B",), Values(alone=True, draft=OF_LAYERS), remark=_DRAFT),
)
TECHNIQUE = Technique(
    name=NAME,
    title="SSD (speculative decoding)",
    summary="A small draft model proposes several speech tokens, and the model verifies all of them in one pass.",
    benefit="A small draft proposes tokens; exact at β = 0",
    paper=Paper(
        "Accelerating Autoregressive Speech Synthesis Inference With Speech Speculative Decoding", "arXiv 2505.15380"
    ),
    families=("language",),
    needs_single_codes=True,
    fixed_by_seed=lambda knobs: not knobs.get("adaptive", True),
    slot="draft",
    place=160,
    mark=Mark("blue", "square"),
    exports=__name__,
    benches=(("ssd", f"{__name__}.ssd_bench"),),
    views=(f"{__name__}.view",),
    commands=(f"{__name__}.commands:TRAIN", f"{__name__}.commands:EXPORT"),
    jobs=(training_job(__name__, "DraftRequest", "training"),),
    knobs=(
        amount(
            "tolerance",
            "Tolerance",
            "Added to the acceptance probability of a drafted token. At 0 the speech has exactly the same distribution "
            "as without drafting; the paper's 0.4 accepts more and lets the speech drift.",
            default=0.0,
            between=(0.0, 1.0),
            symbol="β",
            step=0.05,
        ),
        Choice(
            "tolerated",
            "Tolerance applies to",
            "Ids that may profit from the tolerance. As published, all do, even ids that the model would not draw and "
            "ids that end speech, which can cut it short. Guarded, these two never do.",
            default=GUARDED,
            values=(GUARDED, PUBLISHED),
            titles=("Ids that the model may draw", "Every id (as published)"),
            later=True,
        ),
        count(
            "draft_length",
            "Draft length",
            "Number of tokens drafted before the model verifies them; the initial value if it adapts. Turn that "
            "off for a fixed draft length.",
            default=3,
            symbol="L_d",
            unit="tokens",
            between=(1, 8),
        ),
        Switch(
            "adaptive",
            "Adapt the draft length",
            "Adapt to acceptance and drafting time, from cycle to cycle and sentence to sentence. Another take of the "
            "same seed may then differ, as the length depends on measured times.",
            default=True,
        ),
        Choice(
            "verification",
            "Verification",
            "Verification of a draft at β = 0: token by token, as in the paper, or as a whole (block verification, "
            "Sun et al., arXiv 2403.10444), where a token that the model rates higher compensates for one that it "
            "rates lower. Both are exact; as a whole accepts more tokens. With a tolerance, always token by token.",
            default=BY_BLOCK,
            values=(BY_BLOCK, BY_TOKEN),
            titles=("As a whole", "Token by token"),
        ),
        Choice(
            "draft",
            "Draft",
            "The drafting model: one that reads the model's hidden states (on features; EAGLE-3, arXiv 2503.01840), "
            "one of some of its layers, as in the paper, or a student with fewer layers. Trained: the one on features "
            "if there is one, else the one of layers.",
            default=TRAINED_DRAFT,
            values=(TRAINED_DRAFT, ON_FEATURES, OF_LAYERS, DRAFT_BY_STUDENT),
            titles=("Trained draft", "Draft on features", "Draft of layers", "Shallower student"),
        ),
        Switch(
            "alone",
            "Draft alone",
            "The draft speaks by itself and nothing is verified, as in the first row of the paper's table 1 (word "
            "error rate 16.13 %, with verification 5.70 %). Tolerance, length and verification have no effect.",
            default=False,
            later=True,
        ),
    ),
    # Also under CosyVoice 2's rule for repeated tokens when the paper was written.
    published=(*_PUBLISHED, *(replace(one, options=Values(repeats="2025")) for one in _PUBLISHED)),
    resolve=resolve,
    describe=describe,
    idle=idle,
    weights=Weights(
        all_of=lambda info: (*info.drafts, *info.feature_drafts, *info.students),
        fitting=fitting_drafts,
        knobs_of=lambda one: {"draft": drafting(one)},
        of=lambda plan: plan.draft or plan.weights,
    ),
)


_minutes = forms.minutes_by_size(15.0)


def _ready(figures: Mapping[str, object]) -> tuple[Mapping[str, object], str]:
    if "reads" in figures:
        return {"draft": ON_FEATURES}, "A draft on features is ready: switch SSD on."
    return {"draft": OF_LAYERS}, f"A draft with {figures['layers']} layers is ready: switch SSD on."


FORM = forms.TrainingForm(
    name=TECHNIQUE.name,
    title="Draft for SSD",
    families=TECHNIQUE.families,
    intro="Trains a small draft of the loaded model, which proposes tokens for speculative decoding. Its lowest layers "
    "and the head are trained, the topmost layers stay frozen. It learns from speech that the model generates; "
    "a manifest of recordings (a CSV file with the columns audio and text) is optional.",
    knobs=(
        Choice(
            "kind",
            "Kind",
            "Layers: some of the model's own. On features: one layer that reads the model's hidden states (EAGLE-3, "
            "arXiv 2503.01840); the numbers of layers then do not count.",
            default=OF_LAYERS,
            values=(OF_LAYERS, ON_FEATURES),
            titles=("Layers of the model", "On features"),
            effect=Effect.AFTER_TRAINING,
        ),
        forms.count_knob("lower", "Lowest layers, trained", "Number of the lowest layers in the draft.", 2, 16, 1),
        forms.count_knob(
            "upper", "Topmost layers, kept", "Number of the topmost layers in the draft, unchanged.", 0, 16
        ),
        forms.SENTENCES,
    ),
    found=(forms.Figure("acceptance", "drafts accepted"), *forms.TOKEN_FIGURES),
    progress="At step {step} the model would accept {found} of the drafted tokens.",
    request=lambda place, plan: DraftRequest(
        features=plan.knobs["kind"] == ON_FEATURES,
        lower=int(plan.knobs["lower"]),
        upper=int(plan.knobs["upper"]),
        **forms.companion_arguments(place, plan),
    ),
    minutes=_minutes,
    folder=lambda model, knobs: (
        f"{model}-draft-" + ("features" if knobs["kind"] == ON_FEATURES else f"{knobs['lower']}-{knobs['upper']}")
    ),
    fitting=lambda info: {"upper": fitting_upper(info.layers)},
    why_not=lambda info: TECHNIQUE.not_offered(info) or why_no_teacher(entry(info.id)),
    estimate=lambda info, spoken: forms.scaled_estimate(info, _minutes(info)),
    ready=_ready,
)


KIND = "draft"
SETTINGS_FILE = "speculative.json"


def carried(target: Target, entry: UsedTechnique, artefact: object) -> Carried:
    """Carry the draft and its length; other programs verify tokens exactly."""
    if DRAFT not in target.takes:
        return lacking(target, entry)
    knobs = knobs_of(entry)
    if knobs["alone"]:
        return Carried(drops=(whole_line(entry, f"{target.program} has no draft that speaks alone"),))
    adapts = bool(knobs["adaptive"]) and ADAPTIVE_DRAFT in target.takes
    honours = [
        *knob_lines(entry, "one of layers is written next to the model", ("draft",)),
        *knob_lines(entry, "that many tokens are proposed at a time", ("draft_length",)),
    ]
    drops: list[Line] = []

    def put(name: str, honoured: bool, how: str) -> None:
        (honours if honoured else drops).extend(knob_lines(entry, how, (name,)))

    if knobs["draft"] == ON_FEATURES:
        return Carried(drops=(whole_line(entry, f"{target.program} has no draft that reads hidden states"),))
    exact = f"{target.program} checks tokens exactly, which is β = 0"
    put("alone", True, f"{target.program} verifies every draft")
    put("tolerance", not knobs["tolerance"], exact)
    put("tolerated", False, exact)
    put("verification", False, f"{target.program} checks token by token")
    if knobs["adaptive"]:
        rule = "two more after full acceptance, one less after any other: not by measured times"
        put("adaptive", adapts, rule if adapts else f"{target.program} proposes a fixed number")
    else:
        put("adaptive", True, "a fixed number")
    return Carried(tuple(honours), tuple(drops), {"draft": {"length": int(knobs["draft_length"]), "adaptive": adapts}})
