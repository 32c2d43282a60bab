"""Guidance: tells Setup why its strength has no effect if guidance is in the weights."""

from paretone.techniques.guidance_free import TECHNIQUE
from paretone_app.features.presenter import Presenter, Services
from paretone_app.numbers import fixed, general
from paretone_app.state.selection import Selection

NAME, TITLE = TECHNIQUE.name, TECHNIQUE.title


class GuidancePresenter(Presenter):
    def __init__(self, services: Services) -> None:
        super().__init__(services)
        state = services.state
        state.availability.explain("guidance", lambda: why_no_guidance(state.selection))


def why_no_guidance(selection: Selection) -> str:
    """Why the strength of guidance has no effect on accelerated takes, as a sentence, or ``""``."""
    info, options = selection.info, selection.options
    if "guidance" not in options:
        return ""
    if info is not None and info.trained_guidance is not None:
        return (
            f"{info.title} is {TITLE} (w = {fixed(info.trained_guidance, 2)}): its guidance is in its weights, and "
            "one branch runs."
        )
    if selection.is_used(NAME):
        return (
            f"{TITLE} has its guidance in its weights, and its own knob for more. Only the baseline is guided, by "
            f"{general(options['guidance'])}; switch off {TITLE} to change that."
        )
    return ""
