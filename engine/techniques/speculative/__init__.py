"""SSD: speech speculative decoding. How it decodes: :mod:`engine.sampling.speculative`. Torch-free."""

from __future__ import annotations

from engine.setting.knobs import Choice, Number, Switch, Values
from engine.techniques.base import Job, Paper, Technique

NAME = "speculative"
BY_BLOCK, BY_TOKEN = "block", "token"


def describe(knobs: Values) -> str:
    """What the tolerance means."""
    tolerance = knobs["tolerance"]
    exact = "exactly the target's distribution" if tolerance == 0 else "relaxed: speech may drift from the target's"
    if tolerance == 0 and knobs["verification"] == BY_BLOCK:
        exact += ", verified as a whole"
    length = "as many tokens as pay" if knobs["adaptive"] else f"{knobs['draft_length']} tokens"
    return f"drafts {length} at a time; β = {tolerance:g} is {exact}"


TECHNIQUE = Technique(
    name=NAME,
    title="SSD (speculative decoding)",
    summary="A small draft model proposes several speech tokens, and the model checks all of them in one pass.",
    paper=Paper(
        "Accelerating Autoregressive Speech Synthesis Inference With Speech Speculative Decoding",
        "arXiv 2505.15380",
    ),
    families=("language",),
    place=160,
    benches=(("ssd", "engine.techniques.speculative.benches.ssd"),),
    views=("engine.techniques.speculative.views.speculation",),
    commands=("engine.techniques.speculative.commands.export_model", "engine.techniques.speculative.commands.train"),
    jobs=(
        Job(
            "train",
            "Preparing speech",
            "engine.techniques.speculative.requests:DraftRequest",
            "engine.techniques.speculative.jobs:train",
            on_loaded_model=False,
            finds_weights=True,
        ),
    ),
    prepared_by="training",
    knobs=(
        Number(
            "tolerance",
            "Tolerance",
            "Added to the probability with which a drafted token is accepted. At 0 the speech is distributed exactly "
            "as without drafting; the paper's 0.4 accepts more and lets the speech drift. Ids that end speech, and ids "
            "that the model would never draw, do not profit.",
            default=0.0,
            symbol="β",
            minimum=0.0,
            maximum=1.0,
            step=0.05,
        ),
        Number(
            "draft_length",
            "Draft length",
            "How many tokens are drafted before the model checks them; where it adapts, what it begins with. Turn that "
            "off to draft always as many.",
            default=3,
            symbol="L_d",
            unit="tokens",
            minimum=1,
            maximum=8,
            whole=True,
        ),
        Switch(
            "adaptive",
            "Adapt the draft length",
            "Follows what is accepted and what drafting takes, from cycle to cycle and sentence to sentence. The same "
            "seed then may speak otherwise at another time, as the length depends on measured times.",
            default=True,
        ),
        Choice(
            "verification",
            "Verification",
            "How a draft is checked at β = 0: token by token, as the paper has it, or as a whole (block verification, "
            "Sun et al., arXiv 2403.10444), where a token that the model likes better makes up for one that it likes "
            "less. Both are exact; as a whole more tokens stay. With a tolerance it is always token by token.",
            default=BY_BLOCK,
            values=(BY_BLOCK, BY_TOKEN),
            titles=("As a whole", "Token by token"),
        ),
        Choice(
            "draft",
            "Draft",
            "Which model drafts: the one trained for it, or a SPADE student.",
            default="trained",
            values=("trained", "student"),
            titles=("Trained draft", "SPADE student"),
        ),
    ),
    describe=describe,
)
