"""The official loop of CosyVoice 3's flow, as written down for the comparison, and ours: the same mels."""

import pytest
import torch

from paretone.bench.budget import Budget
from paretone.errors import PlainError
from paretone.models.cosyvoice3.config import FlowConfig
from tests.engine.models.cosyvoice3.small_release import FLOW
from tests.parity.fixtures import Fixture, assert_close, full_precision
from tests.parity.test_parity_cosyvoice3_flow import build_flow, flow_config, flows
from tests.peers import cosyvoice3_flow
from tests.peers.cosyvoice3_flow import OfficialEstimator, compared, random_flow
from tests.peers.rounds import OURS


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "stream"])
@flows
def test_the_evaluation_is_the_official_one(fixture: Fixture, streaming: bool) -> None:
    full_precision()
    estimator = OfficialEstimator(build_flow(fixture).estimator.state_dict(), flow_config(fixture.description))
    for length in map(str, fixture.description["estimator_lengths"]):
        given = [fixture[f"dit{length}.{name}"] for name in ("x", "mask", "mu", "t", "spks", "cond")]
        valid = given[1].bool().expand_as(given[0])
        found, expected = estimator(*given, streaming), fixture[f"dit{length}.{'stream' if streaming else 'whole'}"]
        assert_close(found[valid], expected[valid], 1e-4, f"velocity of {length} frames")


@pytest.mark.parametrize("streamed", [False, True], ids=["at once", "streamed"])
def test_both_give_the_same_mel(streamed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    flow = random_flow(FLOW, torch.device("cpu"), torch.float32)
    *_, rows = compared(flow, 60, streamed, Budget(0, most=2), 1.0)
    (row,) = (one for one in rows if one.get("way") == OURS)
    assert float(str(row["largest difference"])) < 1e-4

    def other(weights: dict[str, torch.Tensor], config: FlowConfig) -> OfficialEstimator:
        return OfficialEstimator({**weights, "proj_out.bias": weights["proj_out.bias"] + 0.01}, config)

    monkeypatch.setattr(cosyvoice3_flow, "OfficialEstimator", other)
    with pytest.raises(PlainError, match="two mels differ"):
        compared(flow, 60, streamed, Budget(0, most=2), 1.0)
    assert cosyvoice3_flow.TOKENS % flow.config.chunk == 0
