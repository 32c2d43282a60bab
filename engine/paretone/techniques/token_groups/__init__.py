"""Principled coarse-graining (PCG): drafted tokens are accepted in groups that sound alike.

The verification: :mod:`paretone.sampling.verification`. ``groups`` is the artefact, ``finding`` makes and plays it.
Works with every drafting technique. Torch-free.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from paretone.errors import ProfileError
from paretone.figures.glyphs import Mark
from paretone.models.base import SpeechModel, Utterance
from paretone.observer import Observer
from paretone.setting.knobs import Choice, Effect, Switch, Values, amount, count
from paretone.setting.plan import LanguagePlan, NotPrepared, Part, imported
from paretone.setting.setting import Published, Setting
from paretone.techniques.base import ArtefactFile, ArtefactType, Conflict, Context, Job, Paper, Technique, to_type
from paretone.techniques.token_groups.groups import SPACES, Groups, check, fixed_knobs

NAME = "token_groups"


_MADE_BY = "group-tokens --out groups.json"


def resolve(context: Context, knobs: Values, plan: LanguagePlan) -> LanguagePlan:
    if plan.decoding is None:
        plan = plan.noted("Nothing is drafted, so there is nothing to accept in groups; use a draft as well.")
    elif tolerance := dict(plan.decoding.arguments).get("tolerance"):
        raise Conflict(
            f"Acceptance in groups replaces the tolerance β = {tolerance:g} of {context.title_in('draft')}; set β to "
            "0, or do without groups.",
            "draft",
        )
    groups = context.artefact
    if not isinstance(groups, Groups):
        raise NotPrepared(
            f"{TECHNIQUE.title} has no token groups yet; find them first, or give a file of them.",
            plan,
            to_type(_MADE_BY, context.info),
        )
    if reason := groups.mismatch(context.compatibility(plan)):
        raise ProfileError(f"The token groups cannot be used here: {reason}. Find them again.")
    accepting = Part.of(f"{__name__}.finding:rule", groups=groups, within=bool(knobs["within"]))
    return replace(plan, acceptance=accepting).noted(
        "Drafts are accepted in groups: groups of tokens are distributed as without drafting, tokens are not."
    )


def describe(knobs: Values) -> str:
    member = "tokens that the model may draw" if knobs["within"] else "any member, as published"
    return (
        f"groups of {knobs['smallest']} to {knobs['largest']} tokens with a similarity from {knobs['cosine']:g}; "
        f"a group is kept by {member}"
    )


TECHNIQUE = Technique(
    name=NAME,
    title="PCG (acceptance in groups)",
    summary="Accepts a drafted token if its group of tokens that sound alike would have been as likely.",
    benefit="More drafts accepted; exact for groups",
    paper=Paper("Principled Coarse-Grained Acceptance for Speculative Decoding in Speech", "arXiv 2511.13732"),
    families=("language",),
    slot="draft:acceptance",
    needs_single_codes=True,
    place=165,
    mark=Mark("orange", "circle"),
    study=__name__,
    views=(f"{__name__}.view",),
    commands=(f"{__name__}.command",),
    artefact=ArtefactType("groups", Groups, Groups.from_json, Groups.to_json, check, fixed_knobs),
    artefact_file=ArtefactFile(
        "groups",
        "file of token groups",
        "groups of tokens that sound alike, in which drafts are accepted (paretone group-tokens writes them)",
        f"{__name__}.command:with_groups",
        ("within",),
        _MADE_BY,
    ),
    jobs=(
        Job("find", "Finding token groups", f"{__name__}.groups:FindGroups", f"{__name__}.finding:find"),
        Job("hear", "Decoding the group's tokens", f"{__name__}.groups:HearGroup", f"{__name__}.finding:hear"),
    ),
    published=(Published("published", "acceptance", (), Values(within=False)),),
    resolve=resolve,
    describe=describe,
    knobs=(
        amount(
            "cosine",
            "Similarity",
            "Least cosine of a token's row to that of the group's centre. Every token is the centre of one group.",
            default=0.5,
            between=(0.0, 1.0),
            symbol="θ",
            effect=Effect.AFTER_CALIBRATION,
            step=0.05,
        ),
        count(
            "largest",
            "Largest group",
            "Most tokens of a group: the centre and those that are most similar to it.",
            default=8,
            unit="tokens",
            effect=Effect.AFTER_CALIBRATION,
            between=(2, 256),
        ),
        count(
            "smallest",
            "Smallest group",
            "Groups of fewer tokens are dropped; tokens that are then in none are accepted one by one.",
            default=2,
            unit="tokens",
            effect=Effect.AFTER_CALIBRATION,
            between=(2, 256),
        ),
        Choice(
            "space",
            "Compared by",
            "Rows of the table that scores tokens, less their mean, which no probability depends on, or rows of the "
            "table that embeds them. The paper's models use one table for both.",
            default=SPACES[0],
            effect=Effect.AFTER_CALIBRATION,
            values=SPACES,
            titles=("Table of scores", "Table of embeddings"),
        ),
        Switch(
            "within",
            "Only what the model may draw",
            "Reject drafted tokens with probability 0 under the model. Off, as published, they may stand for their "
            "group. Groups are distributed exactly either way.",
            default=True,
        ),
    ),
)


def preparer() -> Callable[[SpeechModel, Sequence[Utterance], Setting, Observer], Groups]:
    """Finder of groups on one worker. Groups depend on the model's tables, not on its speech."""

    def prepare(model: SpeechModel, utterances: Sequence[Utterance], setting: Setting, observer: Observer) -> Groups:
        # Imported by name, because it imports torch.
        found: Groups = imported(f"{__name__}.finding:find_groups")(model, setting, observer)
        return found

    return prepare
