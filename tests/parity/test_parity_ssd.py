"""Speculative decoding against a reference that was derived from the paper (there is no official code)."""

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch

from paretone.models.families.language_network import TokenModel
from paretone.sampling.autoregressive import Cycle, Request
from paretone.sampling.speculative import speculation
from paretone.sampling.tokens import Greedy, RepetitionAware, Uniforms
from paretone.sampling.verification import acceptance, by_token, residual
from tests.parity.fixtures import Fixture, alternating, assert_close, cases, fixtures
from tests.parity.test_parity_cosyvoice2_language import KINDS, model_of, models, official_request, token_model

PROBABILITY = 1e-6
TRACED = 1e-4
"""The reference computes in float64."""
SSD = fixtures("ar", lambda said: "greedy_beta0" in said)
references = pytest.mark.parametrize("fixture", SSD)


def tolerances(fixture: Fixture) -> list[str]:
    return [match[1] for name in fixture.names if (match := re.fullmatch(r"beta([\d.]+)\.accept_prob", name))]


def language_model(fixture: Fixture, kind: str, case: str) -> tuple[TokenModel, TokenModel, Request]:
    """Target, draft and request of the traces."""
    other = fixture.beside("cosyvoice2_lm")
    model = model_of(other)
    biased, by = (other, "maxlen") if case == "greedy" else (fixture, case)
    model.tokens.bias += biased[f"{by}.llm_decoder_bias_delta"]
    target = token_model(model, kind)
    draft = target.kept(fixture.description["trace_rules"]["draft_layers"])
    return target, draft, official_request(model, other, "maxlen")


@pytest.mark.parametrize(("fixture", "tolerance"), cases(SSD, tolerances))
def test_parity_ssd_mathematics(fixture: Fixture, tolerance: str) -> None:
    p, q = fixture["p"], fixture["q"][: len(fixture["p"])]
    found = acceptance(p, q, float(tolerance))
    drawn = p > 0  # What the draft never draws is never accepted or rejected.
    assert_close(found[drawn], fixture[f"beta{tolerance}.accept_prob"][drawn], PROBABILITY, "acceptance")
    accepted = torch.where(drawn, p * found.clamp(max=1), 0.0)
    assert_close(accepted.sum(-1), fixture[f"beta{tolerance}.mean_accept"], PROBABILITY, "mean acceptance")
    rest = torch.stack([residual(one, other) for one, other in zip(p, q, strict=True)])
    rest = rest / rest.sum(-1, keepdim=True)
    assert_close(rest, fixture["residual"], PROBABILITY, "residual")
    output = accepted + (1 - accepted.sum(-1, keepdim=True)) * rest
    assert_close(output, fixture[f"beta{tolerance}.output_marginal"], PROBABILITY, "output")
    distance = (output - q).abs().sum(-1) / 2
    assert_close(distance, fixture[f"beta{tolerance}.tv_output_vs_target"], PROBABILITY, "distance")


@pytest.mark.parametrize(("fixture", "tolerance"), cases(SSD, tolerances))
def test_parity_ssd_as_published_every_id_profits(fixture: Fixture, tolerance: str) -> None:
    """The rule itself, for every id that the draft may draw; guarded, ids that the target would not draw fall."""
    p, q = fixture["p"], fixture["q"]
    outside = 0
    for place, shares in enumerate(p):
        wanted = fixture[f"beta{tolerance}.accept_prob"][place].clamp(max=1)
        for token in shares.nonzero().flatten().tolist():
            found = [
                by_token(float(tolerance), len(shares), guarded=guarded)(
                    [token], [shares], q[place : place + 2], lambda: 1.0
                ).acceptance[0]
                for guarded in (False, True)
            ]
            assert found[0] == pytest.approx(float(wanted[token]), abs=PROBABILITY)
            within = bool(q[place, token] > 0)
            assert found[1] == pytest.approx(found[0] if within else 0.0, abs=PROBABILITY)
            outside += not within
    assert outside > 0, "some ids of the fixture are outside what the target would draw"


def assert_follows(cycles: list[Cycle], traced: list[dict]) -> None:
    for number, (cycle, expected) in enumerate(zip(cycles, traced, strict=False)):
        assert list(cycle.drafted) == expected["draft"], f"cycle {number}"
        assert list(cycle.tokens) == expected["emitted"], f"cycle {number}"
        assert cycle.accepted == expected["n_accepted"], f"cycle {number}"
        wanted = [min(1.0, one) for one in expected["accept_prob"]]
        assert_close(torch.tensor(cycle.acceptance), torch.tensor(wanted), TRACED, f"acceptance of cycle {number}")


def until(cycles: Iterator[Cycle], tokens: int) -> list[Cycle]:
    """Cycles until there are ``tokens``."""
    found: list[Cycle] = []
    for cycle in cycles:
        found.append(cycle)
        if sum(len(one.tokens) for one in found) >= tokens:
            break
    return found


@references
@models
def test_parity_ssd_greedy_is_the_target(fixture: Fixture, kind: str) -> None:
    target, draft, request = language_model(fixture, kind, "greedy")
    said = fixture.description["greedy_beta0"]
    request = replace(request, minimum=0)
    cycles = until(speculation(target, draft, request, Greedy(), Uniforms(0)), said["n_tokens"])
    assert_follows(cycles, said["trace"])
    assert len(cycles) == said["cycles"]
    tokens = [token for cycle in cycles for token in cycle.tokens]
    assert tokens[: said["n_tokens"]] == fixture["greedy_beta0.tokens"].tolist()


traced = cases(SSD, lambda one: [name.removeprefix("trace_beta") for name in one.description if "trace_beta" in name])


@pytest.mark.parametrize(("fixture", "tolerance", "kind", "guarded"), alternating(traced, KINDS, (True, False)))
def test_parity_ssd_traces(fixture: Fixture, kind: str, tolerance: str, guarded: bool) -> None:
    target, draft, request = language_model(fixture, kind, "trace")
    said, rules = fixture.description[f"trace_beta{tolerance}"], fixture.description["trace_rules"]
    request = replace(request, minimum=rules["min_len"], maximum=4 * said["n_tokens"])
    uniforms = iter(fixture["trace.uniforms"].tolist()).__next__
    rule = by_token(float(tolerance), target.codes, guarded=guarded)
    decoding = speculation(target, draft, request, RepetitionAware(), uniforms, rule, rules["K"])
    cycles = until(decoding, said["n_tokens"])
    assert_follows(cycles, said["trace"])
    assert len(cycles) == said["cycles"]
    tokens = [token for cycle in cycles for token in cycle.tokens]
    assert tokens == fixture[f"trace_beta{tolerance}.tokens"].tolist()
    assert cycles[-1].stopped is said["ended_by_stop"]
