"""A new study within ranges: knobs that vary as far as was brushed, figures that stay within bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from paretone_app.features.studies.forms import Bound, Varied

if TYPE_CHECKING:
    from paretone_app.features.studies.maker import StudyMaker


@dataclass(frozen=True)
class Span:
    """How far a knob varies."""

    technique: str
    """Its name, or ``""`` for an option of the model."""
    knob: str
    values: tuple[float, ...]
    """Those that there are, ascending."""
    without: bool = False
    """Whether the technique is left out as well."""

    def varied(self, searching: bool) -> Varied:
        """The line of the form: from end to end in a search, else value by value."""
        low, high = self.values[0], self.values[-1]
        if searching and low < high:
            return Varied(self.technique, self.knob, f"{low:.6g}..{high:.6g}", self.without)
        return Varied(self.technique, self.knob, ", ".join(f"{one:.6g}" for one in self.values), self.without)


@dataclass(frozen=True)
class Within:
    """What a study is to stay within."""

    model: str
    """Its id."""
    spans: tuple[Span, ...]
    bounds: tuple[Bound, ...]


def fill_in(maker: StudyMaker, within: Within) -> None:
    """Fill the dialog in: as a search, for only searches have bounds; without what searches need, as all values."""
    from paretone.extras import why_no_search
    from paretone_app.features.studies.maker import SEARCH

    searching = not why_no_search()
    maker.title.setText("Within ranges")
    maker.title.selectAll()
    maker.model.setCurrentIndex(maker.model.findData(within.model))
    if searching:
        maker.kind.setCurrentIndex(maker.kind.findData(SEARCH))
    maker.axes.replace([one.varied(searching) for one in within.spans])
    maker.goals.replace(within.bounds)
