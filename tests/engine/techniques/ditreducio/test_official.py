"""What the official code compares for MegaTTS 3, its check phase, and what becomes of older files."""

import numpy as np
import pytest
import torch
from torch import Tensor

from paretone.errors import SettingError
from paretone.sampling.calibration_target import CalibrationTarget
from paretone.sampling.flow import euler_steps, sampling_grid
from paretone.sampling.guidance import three_branch_velocity
from paretone.setting.compatibility import Compatibility
from paretone.setting.knobs import Values, defaults
from paretone.techniques.ditreducio import COMPARED, TECHNIQUE, calibrates_alike
from paretone.techniques.ditreducio.calibration import calibrate
from paretone.techniques.ditreducio.record import CALIBRATION, PRE_CALIBRATION, CalibrationRecord
from paretone.techniques.ditreducio.trajectory import comparing
from tests.engine.models.f5.plain_dit import small_dit
from tests.engine.models.megatts3.plain_dit import SMALL, random_inputs, small_mega_dit
from tests.engine.techniques.ditreducio.observing import Recorder
from tests.engine.techniques.ditreducio.test_calibration import calibration_target
from tests.peers.ditreducio_algorithm import published_calibration

STEPS = 5


def mega_target() -> CalibrationTarget:
    model, inputs, times = small_mega_dit(), random_inputs(), sampling_grid(STEPS, "uniform")
    run = model.begin(*inputs.conditions, times[:-1])

    def guide(left: Tensor) -> Tensor:
        return three_branch_velocity(model.project(left), 1.6, 2.5)

    belongs = Compatibility("small", "", "small", Values(steps=STEPS, spacing="uniform"))
    return CalibrationTarget(model, run, inputs.state, times, guide, euler_steps(times), run.branches, belongs, 6)


def calibrated(target: CalibrationTarget, **knobs: object) -> CalibrationRecord:
    chosen = defaults(TECHNIQUE.knobs).replace(**{"marked": 40.0, "metric": "relative", **knobs})
    with torch.inference_mode():
        record = calibrate([target], chosen, Recorder())
        assert record.table.actions == published_calibration(target, chosen)
    return record


def test_each_comparison_gives_the_table_of_the_plain_algorithm() -> None:
    target = mega_target()
    records = {one: calibrated(target, compare=one, threshold=0.4) for one in COMPARED}
    first = {
        name: [trial.error for trial in one.trials if trial.phase == PRE_CALIBRATION] for name, one in records.items()
    }
    assert first["combined"] == first["combined_first"] != first["branches"], "2026 combines in pre-calibration, too"
    assert first["combined"][0] != first["guided"][0], "before the last projection, by other weights"
    last = {name: [trial.error for trial in one.trials if trial.phase == CALIBRATION] for name, one in records.items()}
    assert last["combined"] != last["combined_first"], "and no longer in calibration"


def test_the_combination_is_the_official_one() -> None:
    target = mega_target()
    output = torch.randn(3, 4, SMALL.dim, generator=torch.Generator().manual_seed(1))
    c, c_txt, u = output[:1], output[1:2], output[2:]
    official = u + 2.5 * (c - u) + 1.6 * (c - c_txt)
    assert torch.equal(comparing(target, "combined", CALIBRATION)(output), official)
    assert torch.equal(comparing(target, "combined_first", PRE_CALIBRATION)(output), official)
    assert torch.equal(comparing(target, "combined_first", CALIBRATION)(output), output)
    with torch.inference_mode():
        entered = target.backbone.enter(target.noise, 0, target.run)
        assert target.backbone.evaluate(target.noise, 0, target.run).shape == entered.shape, "no latents yet"


def test_the_official_check_phase_sees_two_branches_and_heads() -> None:
    target = mega_target()
    model, state, run = target.backbone, target.noise, target.run
    record = calibrated(target, check_phase="first_half", threshold=0.2)
    with torch.inference_mode():
        for step in range(STEPS):
            seen: dict[int, Tensor] = {}

            def probe(layer: int, name: str, value: Tensor, seen: dict[int, Tensor] = seen) -> None:
                if name == "attention_input":
                    seen[layer] = value

            output = model.evaluate(state, step, run, probe=probe)
            for layer, entering in seen.items():
                attention = model.encoder.layers[layer].attention
                query, key = (part(entering[:2]).double() for part in (attention.wq, attention.wk))
                maps = (query @ key.mT / (SMALL.dim // SMALL.heads) ** 0.5).softmax(-1)
                plain = [one.trace() / (one.norm() * len(one) ** 0.5) for one in maps]
                assert record.similarities[layer, step] == pytest.approx(float(sum(plain) / 2), rel=1e-9)
            state = target.follow(state, target.guide(output), step)
    assert not np.allclose(record.similarities, calibrated(target, threshold=0.2).similarities)


def test_of_two_branches_the_first_is_seen_and_none_is_combined() -> None:
    """The official F5 code halves two branches, too."""
    calibrated(calibration_target(small_dit(depth=4)), check_phase="first_half", threshold=0.3)
    with pytest.raises(SettingError, match="needs its three branches, and 2 run here; compare all branches"):
        calibrated(calibration_target(small_dit(depth=4)), compare="combined")


def test_older_calibrations_keep_their_fingerprints() -> None:
    """A knob newer than files is written only where it is used."""
    usual = defaults(TECHNIQUE.knobs)
    assert "check_phase" not in dict(usual)
    assert calibrates_alike(Values(dict(usual)), usual), "a record without the knob has its default"
    assert not calibrates_alike(usual, usual.replace(check_phase="first_half"))
    target = mega_target()
    assert calibrated(target, threshold=0.2).table.to_json().keys() == {"belonging", "branch_skip", "origin", "actions"}
