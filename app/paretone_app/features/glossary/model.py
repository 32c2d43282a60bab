"""All terms of techniques, trainings, views, models, metrics and features, and their search."""

from collections.abc import Iterable, Iterator, Sequence

from paretone.measure.metrics import HIGHER, LOWER, METRICS
from paretone.models import catalogue
from paretone.setting.knobs import Knob, Number
from paretone.techniques import techniques
from paretone.training.forms import training_forms
from paretone.views import views
from paretone_app.shell.entries import Term

_BETTER = {LOWER: " Lower is better.", HIGHER: " Higher is better."}


def all_terms(of_features: Iterable[Term]) -> tuple[Term, ...]:
    """All terms in alphabetical order; of several with the same key, only the first."""
    found: dict[str, Term] = {}
    for term in (*of_features, *_declared()):
        found.setdefault(term.key.casefold(), term)
    return tuple(sorted(found.values(), key=lambda one: (one.title.casefold(), one.owner.casefold())))


def search(terms: Sequence[Term], words: str) -> tuple[Term, ...]:
    """Terms with all ``words``; first those whose title begins with them, or whose symbol they are."""
    wanted = words.casefold().split()
    found = [one for one in terms if all(word in _searched(one) for word in wanted)]
    start = words.casefold().strip()
    return tuple(sorted(found, key=lambda one: not (one.title.casefold().startswith(start) or one.symbol == words)))


def lookup(terms: Sequence[Term], name: str) -> Term | None:
    """The term with this key, title or symbol, else the one with the longest title contained in ``name`` as words."""
    if not (asked := name.casefold().strip()):
        return None
    for named in (lambda one: one.key.casefold(), lambda one: one.title.casefold(), lambda one: one.symbol):
        if (exact := next((one for one in terms if named(one) == asked), None)) is not None:
            return exact
    spoken = _spaced(asked)
    inside = [one for one in terms if _spaced(one.title.casefold()) in spoken]
    return max(inside, key=lambda one: len(one.title), default=None)


def _spaced(text: str) -> str:
    return f" {' '.join(''.join(letter if letter.isalnum() else ' ' for letter in text).split())} "


def _searched(term: Term) -> str:
    return " ".join((term.title, term.owner, term.symbol, term.unit, term.text)).casefold()


def _declared() -> Iterator[Term]:
    for metric in METRICS:
        yield Term(metric.title, f"{metric.definition}{_BETTER.get(metric.better, '')}", unit=metric.unit)
    owned: list[tuple[str, str, Sequence[Knob]]] = []
    for one in techniques():
        paper = f"{one.paper.title}, {one.paper.reference}"
        yield Term(one.title, one.summary, source=paper)
        owned.append((one.title, paper, one.knobs))
    owned += [(form.title, "", form.knobs) for form in training_forms()]
    owned += [(view.title, "", view.knobs(8)) for view in views()]  # Any number of layers gives the same knobs.
    owned += [("Sampler", "", entry.options) for entry in catalogue.models()]
    for owner, source, knobs in owned:
        for knob in knobs:
            text = knob.meaning
            if isinstance(knob, Number) and abs(knob.minimum) < 1e9 and abs(knob.maximum) < 1e9:
                text += f" From {knob.minimum:g} to {knob.maximum:g}."
            text += f" Takes effect {knob.effect.value}."
            yield Term(knob.title, text, knob.symbol, knob.unit, source, owner)


TERMS = (
    Term("A and B", "The two takes that are compared. A is usually the baseline, B the accelerated take."),
    Term("Accelerated take", "A take made with the techniques in use, from the same noise as the baseline."),
    Term("Baseline", "A take made without any technique: every module of the network is computed at every step."),
    Term("Branch", "One of the evaluations of a step. Guidance needs two: with the text and voice, and without."),
    Term("Front", "The points that no other beats on both axes, also called the Pareto front."),
    Term("In use", "A technique that is ticked in Setup takes part in accelerated takes."),
    Term("Layer", "One block of the network, with attention and feed-forward modules; l of L, counted from the input."),
    Term("Level match", "Both takes play equally loud, so that louder is not taken for better (ITU-R BS.1770)."),
    Term("Model", "A system that turns text into speech: a network, its weights, and what prepares its input."),
    Term("Profile", "A setting in a file, with its strategy table and what was measured; it runs on other machines."),
    Term("Sampler", "The method that turns noise into speech, or draws tokens one after the other."),
    Term("Seed", "The number that the noise is drawn from: the same seed gives the same take."),
    Term("Setting", "Model, sampler options and techniques with their knobs: one point of the trade-off."),
    Term("Step", "One of the solver's moves from noise to speech; the fewer there are, the faster and rougher."),
    Term("Study", "Many settings spoken on many sentences, with intervals over the sentences."),
    Term("Take", "One synthesis: its sound, its setting and what was measured."),
    Term("Technique", "One way to make synthesis faster, published in a paper or an experiment."),
    Term("Voice", "A recording of some seconds with its words, which the model imitates."),
)
