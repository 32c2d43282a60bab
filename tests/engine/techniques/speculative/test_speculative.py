"""The technique as it is declared."""

from argparse import Namespace

import numpy as np
import pytest
import torch

from paretone.errors import SettingError
from paretone.models.catalogue import entry
from paretone.models.files.checkpoints import fingerprint
from paretone.models.files.trained_weights import LanguageWeights, find_language_weights
from paretone.models.minis.lm_mini import LmMiniFolder, LmMiniSpeech
from paretone.setting.knobs import defaults
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques import foreseen, knobs_of, technique
from paretone.techniques.speculative import NAME, TECHNIQUE, random_bench
from paretone.techniques.speculative import view as sweep
from paretone.techniques.speculative.view import PAPER, TOLERANCES, paired_speed_up, speculating
from paretone.techniques.speculative.view import knobs as sweep_knobs
from paretone.views.figure import Lines
from tests.engine.models.small_causal import LLAMA
from tests.engine.speaking import view
from tests.workload import workload

FOLDER = entry("lm-mini").folder
LAYERS = LmMiniFolder(FOLDER).config().layers


def test_it_is_exact_by_default() -> None:
    assert technique(NAME) is TECHNIQUE and TECHNIQUE.families == ("language",)
    knobs = knobs_of(UsedTechnique(NAME))
    assert knobs == defaults(TECHNIQUE.knobs)
    assert (knobs["tolerance"], knobs["draft_length"], knobs["draft"]) == (0.0, 3, "trained")
    assert TECHNIQUE.describe(knobs).endswith("β = 0 is exactly the target's distribution, verified as a whole")
    by_token = TECHNIQUE.describe(knobs.replace(verification="token"))
    assert by_token.endswith("β = 0 is exactly the target's distribution")


def test_the_published_tolerance_is_a_labelled_choice() -> None:
    knobs = defaults(TECHNIQUE.knobs).replace(tolerance=0.4)
    assert knobs["tolerated"] == "guarded" and "β = 0.4 is relaxed: speech may drift" in TECHNIQUE.describe(knobs)
    assert TECHNIQUE.describe(knobs.replace(tolerated="published")).endswith("it applies to every id, as published")
    exact = knobs.replace(tolerance=0.0)
    assert TECHNIQUE.describe(exact.replace(tolerated="published")) == TECHNIQUE.describe(exact)
    for wrong in ({"tolerance": 1.5}, {"draft": "none"}):
        with pytest.raises(SettingError):
            knobs_of(UsedTechnique(NAME, defaults(TECHNIQUE.knobs).replace(**wrong)))


@pytest.fixture(scope="module")
def found() -> LanguageWeights:
    return find_language_weights((FOLDER,), fingerprint(LmMiniFolder(FOLDER).weights_path))


def test_all_that_ships_belongs_to_the_model_that_ships(found: LanguageWeights) -> None:
    assert found.foreign == ()
    (of_layers,), (on_features,) = found.drafts, found.feature_drafts
    assert of_layers.retained == of_layers.trained == (0, 1) and of_layers.head
    assert on_features.reads == (2, LAYERS // 2)
    assert len(found.students) == 2 and sorted(found.layer_order) == list(range(LAYERS))


def test_the_sweep_has_every_tolerance_and_every_length(language_model: LmMiniSpeech, monkeypatch: pytest.MonkeyPatch):
    tolerances = workload(TOLERANCES, (0.0, 0.2))
    monkeypatch.setattr(sweep, "TOLERANCES", tolerances)
    figure = view(language_model, "speculation", sentences=1, longest=2, tolerance=0.2)
    tolerance, length = figure.panels[:2]
    assert isinstance(tolerance, Lines)
    measured, predicted, ideal, paper, plain = tolerance.curves
    assert measured.x == tolerances
    assert paper.y == pytest.approx(tuple(PAPER.values()))
    assert plain.y == (1.0, 1.0)
    assert all(value > 0 for value in (*measured.y, *predicted.y, *ideal.y))
    assert all(low <= value <= high for low, value, high in zip(measured.low, measured.y, measured.high, strict=True))
    assert length.curves[0].x == (1.0, 2.0)
    assert all("accepted, v " in note for note in measured.notes)
    # The parts of the time explain what was measured, whatever is drafted.
    tokens, time = (panel.curves for panel in figure.panels[-2:])
    verifying, drafting, prompt, rest, alone = time
    for place, speed in enumerate(length.curves[0].y):
        spent = verifying.y[place] + drafting.y[place] + prompt.y[place] + rest.y[place]
        assert alone.y[0] / spent == pytest.approx(speed, rel=0.25)
        assert length.curves[1].y[place] == pytest.approx(1 / (verifying.y[place] + drafting.y[place]))
        assert (length.curves[2].y[place] > length.curves[1].y[place]) == (verifying.y[place] * tokens[0].y[place] > 1)
    tokens = tokens[0]
    assert all(1 <= each <= most + 1 for most, each in zip((1, 2), tokens.y, strict=True))
    assert f"{measured.y[0]:.2f}× as fast at β = 0" in figure.caption
    assert figure.caption.startswith("The tolerance applies to every id, as published.")


@pytest.mark.parametrize(("rule", "guarded"), [({}, False), ({"tolerated": "guarded"}, True)])
def test_the_sweep_accepts_as_published_unless_asked_otherwise(rule: dict[str, str], guarded: bool) -> None:
    knobs = defaults(sweep_knobs(LAYERS)).replace(**rule)
    assert knobs["draft"] == "layers"
    plan = foreseen(speculating(Setting("lm-mini", entry("lm-mini").options_with()), knobs, 0.4, 3))
    way = dict(plan.decoding.arguments)
    assert way == {"tolerance": 0.4, "draft_length": 3, "adaptive": False, "block": False, "guarded": guarded}


def test_speed_ups_are_paired_by_sentence() -> None:
    reference = np.array([0.4, 0.8, 0.2])
    found, low, high = paired_speed_up(reference / 2, reference)
    assert (found, low, high) == pytest.approx((2.0, 2.0, 2.0)), "every sentence is twice as fast, whichever is drawn"


def test_released_sizes_are_measured_with_random_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random_bench, "ACCEPTANCES", (0.4, 0.9))
    plain, *rows = random_bench.measured(random_bench.Size(LLAMA, 20, 2), torch.device("cpu"), 1, (6,), 4).rows
    assert plain["ms per token"] > 0 and len(rows) == 2 + 3
    for row in rows:
        assert row["predicted"] == pytest.approx(row["speed-up"] / row["of predicted"]) and row["v"] > 0 < row["c"]
    by_way = {row["way"]: row for row in rows}
    few, many = (by_way[f"draft on features, K = 6, α = {one}"]["E"] for one in (0.4, 0.9))
    assert 1 <= few < many <= 7, "as many are accepted as asked for"
    with pytest.raises(SettingError, match="cosyvoice2 and llasa"):
        random_bench.run(Namespace(model="lm-mini"))
