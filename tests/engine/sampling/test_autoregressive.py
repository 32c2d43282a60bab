"""Token by token: requests, draws, caches of prefixes, and speech that does not end."""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from paretone.errors import Cancelled
from paretone.last_used import VOICES
from paretone.models.families.language_network import TokenModel
from paretone.sampling import tokens
from paretone.sampling.autoregressive import Cycle, Reader, Request, RunawayGuard, decode, guarded, places
from paretone.sampling.tokens import Greedy, Nucleus, RepetitionAware, TokenSampler, Uniforms, draw
from tests.engine.models.small_causal import small_model
from tests.engine.recorder import Follower

PROMPT = [3, 1, 4, 1, 5]
NEVER, ALWAYS = -50.0, 50.0
VOICE, OTHER = [3, 1, 4], [2, 7, 1]
IDS = 40
SAMPLERS = [
    Greedy(),
    Nucleus(0.8, 25, 0.9, 1.2, (3,)),
    RepetitionAware("2025"),
    RepetitionAware(window=6, threshold=0.3),
]
RATE = 25.0


def request_of(model: TokenModel, minimum: int = 0, maximum: int = 12, **changes: object) -> Request:
    """Positions begin again at the prompt's last element, as with ``lm-mini``."""
    embedded = model.embed([PROMPT])
    return replace(Request(embedded, torch.tensor([*range(len(PROMPT) - 1), 0]), 1, minimum, maximum), **changes)


def tokens_of(cycles: list[Cycle]) -> list[int]:
    return [token for cycle in cycles for token in cycle.tokens]


def test_tokens_stand_at_the_positions_asked_for() -> None:
    """The same as reading everything anew for every token, without a cache."""
    model = small_model(stop_score=NEVER)
    found = tokens_of(list(decode(model.optimised(), request_of(model), Greedy(), Uniforms(0))))
    expected: list[int] = []
    positions = torch.tensor([*range(len(PROMPT) - 1), 0, *range(1, 13)])
    while len(expected) < 12:
        x = model.embed([PROMPT + expected])
        hidden = model.transformer(x, positions=positions[: x.shape[1]])
        expected.append(int(model.logits(hidden[0, -1]).argmax()))
    assert found == expected
    counted_on = request_of(model, positions=torch.arange(len(PROMPT)), first_position=len(PROMPT))
    assert found != tokens_of(list(decode(model, counted_on, Greedy(), Uniforms(0))))


def test_a_stop_ends_it_and_is_no_token() -> None:
    model = small_model(stop_score=ALWAYS)
    cycles = list(decode(model, request_of(model, minimum=4), Greedy(), Uniforms(0)))
    assert [cycle.stopped for cycle in cycles] == [False] * 4 + [True] and cycles[-1].tokens == ()
    assert all(0 <= token < model.codes for token in tokens_of(cycles))
    (only,) = decode(model, request_of(model), Greedy(), Uniforms(0))
    assert only.stopped and only.tokens == () and only.outcome == "decoded"
    # The official CosyVoice masks the first alone: another ends speech before the least length.
    cycles = list(decode(model, request_of(model, minimum=4, masked_stops=1), Greedy(), Uniforms(0)))
    assert len(cycles) == 1 and cycles[0].stopped


def test_the_greatest_length_ends_it_without_a_stop_and_a_known_length_with_one() -> None:
    model = small_model(stop_score=NEVER)
    for maximum in (0, 5):
        cycles = list(decode(model, request_of(model, maximum=maximum), Nucleus(), Uniforms(0)))
        assert len(tokens_of(cycles)) == len(cycles) == maximum and not any(cycle.stopped for cycle in cycles)
    cycles = list(decode(model, request_of(model, maximum=9, length=5), Nucleus(), Uniforms(0)))
    assert len(tokens_of(cycles)) == 5 and [cycle.stopped for cycle in cycles] == [False] * 5 + [True]
    free = list(decode(model, request_of(model, maximum=9), Nucleus(), Uniforms(0)))
    assert tokens_of(free)[:5] == tokens_of(cycles) and len(tokens_of(free)) == 9


def test_it_can_be_stopped_between_tokens() -> None:
    model, found, follower = small_model(stop_score=NEVER), [], Follower(cancel_at=4)
    with pytest.raises(Cancelled):
        found.extend(decode(model, request_of(model), Greedy(), Uniforms(0), follower.check))
    assert follower.checks == 4


# --- Common beginnings ------------------------------------------------------------------------------------------------
@pytest.fixture
def model() -> TokenModel:
    return small_model(stop_score=-50.0).optimised()


def request_in(model: TokenModel, voice: list[int], text: list[int], shared: int | None = None) -> Request:
    embedded = model.embed([[*voice, *text]])
    length = embedded.shape[1]
    return Request(embedded, torch.arange(length), length, 0, 12, shared=len(voice) if shared is None else shared)


def said(model: TokenModel, request: Request) -> list[int]:
    return [token for cycle in decode(model, request, Nucleus(), Uniforms(0)) for token in cycle.tokens]


def filled(model: TokenModel, request: Request) -> torch.Tensor:
    reader = Reader(model, request, places(request, request.maximum))
    reader.prefill()
    return reader.cache.kept()


def test_what_is_remembered_is_what_is_read(model: TokenModel) -> None:
    request = request_in(model, VOICE, [5, 2, 6])
    anew = filled(model, request)
    filled(model, request_in(model, OTHER, [1]))
    assert torch.equal(filled(model, request), anew) and len(model.prefixes) == 2
    torch.testing.assert_close(filled(model, replace(request, shared=0)), anew)


@pytest.mark.parametrize("shared", [5, 50])
def test_all_of_the_prompt_may_be_shared(model: TokenModel, shared: int) -> None:
    """The last element is read with the first token: it is never remembered."""
    request = request_in(model, VOICE, [5, 2, 6], shared)
    assert said(model, request) == said(model, request) == said(model, replace(request, shared=0))


def test_few_are_kept_the_last_used_longest(model: TokenModel) -> None:
    request = request_in(model, VOICE, [5])
    for first in range(VOICES):
        filled(model, request)
        filled(model, request_in(model, [first, 8, 8], [5]))
    assert len(model.prefixes) == VOICES
    cache = model.cache(10)
    positions = torch.arange(3)
    assert model.prefixes.restore(cache, request.embedded[:, :3], positions) and cache.length == 3
    assert not model.prefixes.restore(model.cache(10), model.embed([[0, 8, 8]]), positions)


# --- Samplers ---------------------------------------------------------------------------------------------------------
def scores(rows: int, seed: int = 0) -> Tensor:
    return 2 * torch.randn(rows, IDS, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_rows_have_their_own_histories_and_what_may_not_come_never_does(sampler: TokenSampler) -> None:
    logits, history = scores(5), [int(one) for one in scores(1, 3)[0].topk(20).indices] * 2
    logits[:2, 7:9] = -math.inf
    together = sampler.probabilities(logits, history)
    torch.testing.assert_close(together.sum(-1), torch.ones(5))
    assert (together >= 0).all() and not together[:2, 7:9].any()
    for row in range(5):
        alone = sampler.probabilities(logits[row : row + 1], history[: len(history) - 4 + row])
        torch.testing.assert_close(together[row : row + 1], alone)


def test_greedy_and_cut_distributions() -> None:
    logits = torch.zeros(1, IDS)
    logits[0, [4, 9]] = 3.0
    assert Greedy().probabilities(logits, []).nonzero().tolist() == [[0, 4]]
    logits = torch.tensor([[0.5, 0.25, 0.125, 0.125]]).log()
    found = Nucleus(top_k=3).probabilities(logits, [])
    assert (found > 0).sum() == 3
    torch.testing.assert_close(found[0, :2], torch.tensor([0.5, 0.25]) / 0.875)
    # The id with which the sum passes top_p stays.
    found = Nucleus(top_p=0.6).probabilities(logits, [])
    torch.testing.assert_close(found[0], torch.tensor([2 / 3, 1 / 3, 0, 0]))
    # At half the temperature the first makes up 0.25 / 0.34375 of all.
    found = Nucleus(0.5, top_p=0.7).probabilities(logits, [])
    torch.testing.assert_close(found[0], torch.tensor([1.0, 0, 0, 0]))


def test_what_repeats_is_replaced_unless_it_is_certain() -> None:
    logits = torch.full((1, IDS), -math.inf)
    logits[0, 3] = 0.0
    for variant in ("2026", "2025"):
        found = RepetitionAware(variant).probabilities(logits, [3])
        assert found[0, 3] == 1 and found.sum() == 1
    # If one id has all but 10⁻⁷, the others' shares are still exact.
    logits = torch.zeros(1, IDS)
    logits[0, 3] = 20.0
    found = RepetitionAware().probabilities(logits, [3])
    others = torch.full((IDS,), 1 / (IDS - 1))
    others[3] = 0.0
    torch.testing.assert_close(found[0], others)
    logits, sampler = scores(1), RepetitionAware(window=3, threshold=0.3)
    likeliest, *others = logits[0].topk(IDS).indices.tolist()
    assert sampler.probabilities(logits, [likeliest, *others[-2:]])[0, likeliest] == 0
    assert torch.equal(sampler.probabilities(logits, [likeliest, *others[-3:]]), sampler.probabilities(logits, []))


def test_draws_follow_the_probabilities() -> None:
    probabilities = torch.tensor([0.0, 0.5, 0.0, 0.25, 0.25, 0.0])
    drawn = [draw(probabilities, uniform) for uniform in (0.0, 0.4999, 0.5, 0.7499, 0.75, 1 - 2.0**-24)]
    assert drawn == [1, 1, 3, 3, 4, 4]
    # They need not add up to one.
    assert [draw(3 * probabilities, uniform) for uniform in (0.4999, 0.5, 1 - 2.0**-24)] == [1, 3, 4]
    uniforms, again, other = Uniforms(7), Uniforms(7), Uniforms(8)
    values = [uniforms() for _ in range(500)]
    assert values == [again() for _ in range(500)] != [other() for _ in range(500)]
    assert torch.tensor(values).tolist() == values, "exact in float32"


# --- Speech that does not end -----------------------------------------------------------------------------------------
def speech(length: int) -> list[int]:
    """Tokens that come back, but not in the same order."""
    return [(place * place * 7 + place // 3) % 101 for place in range(length)]


@pytest.mark.parametrize("period", [1, 25])
def test_repetition_is_noticed_after_three_seconds(period: int) -> None:
    guard, beginning = RunawayGuard(RATE), speech(60)
    assert guard.observe(beginning) is None
    repeated = [200 + place % period for place in range(200)]
    found = next(guard.found for token in repeated if guard.observe([token]))
    assert found.kind == "repetition" and found.seconds == pytest.approx((60 + 75) / RATE)
    assert "repeated itself" in str(found) and "5.4 s" in str(found)


def test_pauses_and_refrains_are_no_runaway_but_far_too_long_speech_is() -> None:
    guard = RunawayGuard(RATE, expected=150)
    assert guard.observe([*speech(50), *[7] * 50, *speech(50)]) is None
    # A second that comes twice, and a stretch longer than a second, are no run-away.
    guard = RunawayGuard(RATE)
    assert guard.observe([*speech(25), *speech(25), *range(300, 330), *speech(90), *speech(90)]) is None
    # Far too long speech is one.
    guard = RunawayGuard(RATE, expected=100)
    assert guard.observe(speech(300)) is None
    found = guard.observe(speech(400)[300:])
    assert found.kind == "length" and found.seconds == pytest.approx(301 / RATE) and guard.observe([1, 1, 1]) == found
    guard = RunawayGuard(RATE, expected=2)
    assert guard.observe(speech(52)) is None and guard.observe([5]).kind == "length"


def test_a_guarded_decoding_ends_there_and_keeps_what_came() -> None:
    closed = []

    def decoding() -> Iterator[Cycle]:
        try:
            while True:
                yield Cycle((4, 4, 4))
        finally:
            closed.append(True)

    guard = RunawayGuard(RATE)
    tokens = [token for cycle in guarded(decoding(), guard) for token in cycle.tokens]
    assert len(tokens) == 75 and closed == [True]
    assert guard.found.kind == "repetition"
    cycles, guard = [Cycle((1, 2)), Cycle((), stopped=True)], RunawayGuard(RATE)
    assert list(guarded(iter(cycles), guard)) == cycles and guard.found is None


@pytest.mark.parametrize(("top_k", "top_p"), [(5, 1.0), (25, 0.9), (1, 1.0), (25, 1e-6)])
def test_machine_code_samples_as_torch_does(top_k: int, top_p: float, monkeypatch: pytest.MonkeyPatch) -> None:
    logits = 4 * torch.randn(3, 700, generator=torch.Generator().manual_seed(0))
    logits[0, 690:], logits[1, ::2] = -torch.inf, -torch.inf
    logits[2, 3:], logits[2, :3] = -torch.inf, torch.tensor([60.0, 70.0, 80.0])
    both = []
    for code in (tokens.machine_code(), None):
        monkeypatch.setattr(tokens, "machine_code", lambda code=code: code)
        shares = tokens.truncated(logits, 0.8, top_k, top_p)
        both.append((shares, [tokens.draw(one, uniform) for one in shares for uniform in (0.0, 0.3, 0.7, 0.999)]))
    (found, drawn), (wanted, others) = both
    torch.testing.assert_close(found, wanted, atol=1e-6, rtol=0)
    assert torch.equal(found > 0, wanted > 1e-38) and drawn == others


def test_exponential_of_every_size() -> None:
    compiled = pytest.importorskip("paretone.sampling.compiled_tokens")
    x = torch.cat([torch.linspace(-86.9, 88, 5000), torch.tensor([-1e30, -87.5, 89.0, 1e30])])
    found = torch.tensor([compiled.exponential(one) for one in x.numpy()])
    torch.testing.assert_close(found[:-4], x[:-4].exp(), rtol=1e-6, atol=0)
    assert found[-4:-2].tolist() == [0, 0] and (found[-2:] > 1e38).all() and found.isfinite().all()
    assert np.isnan(compiled.exponential(np.float32(np.nan)))
