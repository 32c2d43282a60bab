"""Our token loops against the official ones, on a few thousand weights: the same tokens."""

import json
from dataclasses import replace

import pytest
import torch

from paretone.bench.budget import Budget
from paretone.errors import PlainError
from paretone.models.cosyvoice2.language_model import COSYVOICE_3
from paretone.models.families.language_network import TokenModel
from paretone.models.networks.causal import CausalConfig
from paretone.sampling.tokens import Nucleus, draw
from tests.peers import cosyvoice2, llasa
from tests.peers.__main__ import main
from tests.peers.language import Peers, Steering, bytes_per_pass, compare, fitting, spoken
from tests.peers.rounds import OURS

pytest.importorskip("transformers")

CPU = torch.device("cpu")
CONFIG = CausalConfig(
    hidden=32, layers=2, heads=4, key_value_heads=2, head_width=8, feed_forward=48, epsilon=1e-5, rope_theta=1e4
)
LLASA = llasa.Sizes(CONFIG, rows=1100, first_code=100, codes=1000, end=70)
COSYVOICE2 = cosyvoice2.Sizes(replace(CONFIG, biased=True), text_ids=80, codes=64)
COSYVOICE3 = replace(COSYVOICE2, layout=COSYVOICE_3)


def small(model: str, count: int = 24) -> Peers:
    if model == "llasa":
        return llasa.peers(LLASA, count, CPU, torch.float32)
    sizes = COSYVOICE2 if model == "cosyvoice2" else COSYVOICE3
    return cosyvoice2.peers(sizes, count, CPU, torch.float32)


@pytest.mark.parametrize("model", ["llasa", "cosyvoice2", "cosyvoice3"])
def test_both_speak_the_same_tokens(model: str) -> None:
    peers = small(model)
    tokens, scores = peers.scores()
    assert peers.official() == tokens == peers.official(), "the same every time"
    assert len(set(tokens)) > 12, "not one token over and over"
    assert scores.shape == (24, peers.tokens.rows)
    _, rows = compare(peers, CPU, torch.float32, Budget(0, most=2))
    ours = next(row for row in rows if row["way"] == OURS)
    assert ours["tokens equal"] == ours["likeliest equal"] == "24 of 24"
    assert float(str(ours["largest difference"])) < 1e-4


@pytest.mark.parametrize("model", ["llasa", "cosyvoice2", "cosyvoice3"])
def test_a_shorter_sentence_is_spoken_where_time_is_short(model: str) -> None:
    peers = small(model)
    assert fitting(peers, CPU, Budget(10, most=2)) is peers
    short = fitting(peers, CPU, Budget(0, most=2))
    assert short.request.minimum == short.request.maximum == 16
    tokens, scores = short.scores()
    assert tokens == short.official() == peers.official()[:16] and len(scores) == 16


@pytest.mark.parametrize("model", ["llasa", "cosyvoice2", "cosyvoice3"])
def test_other_weights_are_noticed(model: str) -> None:
    peers = small(model)
    plain = peers.tokens
    other = TokenModel(plain.transformer, plain.embedding.detach(), plain.head.detach() * 1.5, codes=plain.codes)
    with pytest.raises(PlainError, match="our implementation has an error"):
        compare(replace(peers, tokens=other), CPU, torch.float32, Budget(0, most=2))


def test_steering_draws_the_given_tokens() -> None:
    torch.manual_seed(0)
    logits, tokens = torch.randn(6, 9), [0, 8, 3, 3, 5, 1]
    steering = Steering(Nucleus(), tokens)
    for step, row in enumerate(logits):
        found = steering.probabilities(row[None], tokens[:step])
        assert draw(found[0], steering()) == tokens[step]
    assert len(steering.uniforms) == 6
    assert torch.equal(torch.stack(steering.scores), logits.log_softmax(-1))


def test_recorded_numbers_repeat_the_sentence() -> None:
    peers = small("llasa")
    tokens = peers.official()
    steering = Steering(peers.sampler, tokens)
    assert spoken(peers.tokens, peers.request, steering, steering) == tokens
    assert spoken(peers.tokens, peers.request, peers.sampler, iter(steering.uniforms).__next__) == tokens


def test_bytes_of_a_pass_are_weights_head_and_cache() -> None:
    layers = 2 * 32 * (2 * 32 + 2 * 16 + 3 * 48)
    expected = 4 * (layers + 1001 * 32) + 2 * 2 * 16 * 10 * 4
    assert bytes_per_pass(small("llasa").tokens, 10) == expected


def test_bench_reports_the_limit(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cosyvoice2, "RELEASED", COSYVOICE2)
    options = ["--device", "cpu", "--tokens", "8", "--rounds", "2", "--minutes", "0.001"]
    assert main(["cosyvoice2", "--json", *options]) == 0
    report = json.loads(capsys.readouterr().out)
    assert "the target of 1.15×" in report["definition"]
    assert "GB/s that this processor reached at best" in report["definition"]
    assert [row["way"] for row in report["rows"]][-1] == "ours: processor's limit"


@pytest.mark.parametrize(("name", "option"), [("llasa", "--tokens"), ("f5", "--layers"), ("omnivoice", "--frames")])
def test_sizes_below_one_are_refused(name: str, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, option, "-3"]) == 2
    assert f"{option}: must be a whole number from 1" in capsys.readouterr().err
