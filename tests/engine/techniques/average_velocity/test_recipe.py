"""The recipe of average velocity: targets, problems, and what is learnt."""

import itertools
import json
import math
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from paretone.errors import Cancelled, SettingError, TrainingError
from paretone.models.catalogue import voices
from paretone.models.f5.checkpoint import read_f5_checkpoint
from paretone.models.files.checkpoints import metadata_of, read_float_weights
from paretone.models.files.trained_weights import described_interval, plain_names
from paretone.models.megatts3.dit import MegaDiT
from paretone.models.networks.diffusion import IntervalEmbedding
from paretone.sampling.flow import sampling_grid
from paretone.sampling.guidance import guided_velocity, three_branch_velocity
from paretone.setting.knobs import Values
from paretone.techniques.average_velocity import METHODS, MOST_EVALUATIONS, AverageVelocityRequest
from paretone.techniques.average_velocity import recipe as recipes
from paretone.techniques.average_velocity.recipe import AverageVelocity, AverageVelocityOptions, fine_tune
from paretone.training import fine_tuning
from paretone.training.features import Example, Examples, collate, may_join
from paretone.training.fine_tuning import diffusion_transformer
from paretone.training.flow_matching import draw_problem
from paretone.training.flow_subjects import OBJECTIVE, F5Subject, Subject, state_at
from paretone.training.megatts3_flow import MegaSubject, latent_clip
from paretone.training.processes import join_processes
from paretone.training.requests import Follower
from paretone.training.session import Intervals
from tests.engine.training.learning import SHARE, same_weights, whole_and_resumed
from tests.engine.training.toy_model import toy_examples, toy_manifest, toy_model
from tests.engine.training.toy_natural import toy_natural_corpus
from tests.packages import needs
from tests.tools.recipes.natural_megatts3 import initialise
from tests.tools.recipes.test_natural_flow import MEGA_SMALL as SMALL
from tests.workload import workload

pytestmark = needs("accelerate")
CPU = torch.device("cpu")
F5, MEGA = Values(guidance=1.5), Values(intelligibility=1.6, similarity=2.5)
QUICK = {"warm_up": 2, "validation_items": 4, "average_decay": 0.9, "teacher_steps": 4}
both = pytest.mark.parametrize("guidance", [F5, MEGA], ids=["f5", "megatts3"])
STATE = torch.linspace(-2, 3, 12, dtype=torch.float64).reshape(2, 3, 2)
STARTS, ENDS = torch.tensor([0.1, 0.4], dtype=torch.float64), torch.tensor([0.7, 0.9], dtype=torch.float64)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return toy_model(tmp_path / "model")


def _subject(guidance: Values, folder: Path) -> Subject:
    if guidance == F5:
        return F5Subject(diffusion_transformer(read_f5_checkpoint(folder)), toy_examples(), 400, 1)
    torch.manual_seed(4)
    mega = MegaDiT(SMALL)
    initialise(mega)
    torch.nn.init.normal_(mega.postnet.weight, std=0.2)
    natural = toy_natural_corpus()
    clips, kept = ([latent_clip(clip) for clip in part] for part in (natural.training, natural.held_out))
    return MegaSubject(mega, clips, kept, 200, 1)


def _recipe(guidance: Values, folder: Path, **changes: object) -> AverageVelocity:
    options = AverageVelocityOptions(guidance, **QUICK | changes)
    return AverageVelocity(_subject(guidance, folder), "a" * 64, join_processes("cpu", options.half_precision), options)


@both
def test_the_target_is_where_guided_euler_steps_of_the_frozen_model_lead(guidance: Values, folder: Path) -> None:
    recipe = _recipe(guidance, folder, single_share=0.0)
    found = recipe.draw()
    # Every interval takes two steps of the grid of two to four evaluations.
    grids = (sampling_grid(2 * number, "uniform", -1.0).tolist() for number in (2, 3, 4))
    ways = {(grid[at], grid[at + 2]): grid[at : at + 3] for grid in grids for at in range(0, len(grid) - 1, 2)}
    times = torch.tensor([ways[start, end] for start, end in found.intervals.tolist()]).T
    with torch.no_grad():
        field, moving = recipe.subject.guided(recipe.teacher, found.problem, guidance), found.state
        for start, end in itertools.pairwise(times):
            moving = moving + (end - start)[:, None, None] * field(moving, start)
    torch.testing.assert_close(found.state + (times[2] - times[0])[:, None, None] * found.target, moving)


def test_f5_is_guided_as_in_a_synthesis(folder: Path) -> None:
    subject = _subject(F5, folder)
    (problem, *_) = subject.held_out(1, CPU)
    assert len(problem.times) >= 1
    frames = int(problem.mask[0].sum())
    model, times = subject.model, np.array([0.25], np.float32)
    run = model.begin(problem.condition[:1, :frames], problem.ids[:1, :frames], times, guided=True)
    with torch.no_grad():
        state = state_at(problem, torch.full_like(problem.times, 0.25))
        wanted = guided_velocity(model.velocity(state[:1, :frames], 0, run), 1.5)
        found = subject.guided(model, problem, F5)(state, torch.full_like(problem.times, 0.25))
    span = problem.span[0, :frames]
    torch.testing.assert_close(found[0, :frames][span], wanted[0][span], atol=2e-3, rtol=1e-3)


def test_megatts3_is_guided_as_in_a_synthesis(folder: Path) -> None:
    subject = _subject(MEGA, folder)
    (problem, *_) = subject.held_out(4, CPU)
    model, times = subject.model, np.array([0.25], np.float32)
    moments = torch.full_like(problem.times, 0.25)
    with torch.no_grad():
        state = state_at(problem, moments)
        found = subject.guided(model, problem, MEGA)(state, moments)
        for row, frames in enumerate(problem.mask.sum(1).tolist()):
            one = slice(row, row + 1), slice(frames)
            texts = problem.phones[one[0]], problem.tones[one[0]], problem.phones_of_frames[one[0], : 4 * frames]
            run = model.begin(problem.condition[one], problem.prompt[one], *texts, times)
            wanted, span = three_branch_velocity(model.velocity(state[one], 0, run), 1.6, 2.5), problem.span[one]
            torch.testing.assert_close(found[one][span], wanted[span], atol=1e-4, rtol=1e-4)


@both
def test_own_states_are_those_of_a_synthesis_and_others_lie_on_the_path(guidance: Values, folder: Path) -> None:
    recipe = _recipe(guidance, folder, single_share=0.0)
    with torch.no_grad():  # An average that knows of intervals.
        embedding = recipe.average.module.time_embedding
        assert isinstance(embedding, IntervalEmbedding)
        torch.nn.init.normal_(embedding.interval_mlp[2].weight, std=0.1)
    grids = [sampling_grid(2 * number, "uniform", -1.0).tolist()[::2] for number in (2, 3, 4)]
    ways = {pair: grid[: at + 1] for grid in grids for at, pair in enumerate(itertools.pairwise(grid))}
    kinds = Counter()
    for found in (recipe.draw() for _ in range(8)):
        field = recipe.subject.field(recipe.average.module, found.problem)
        on_path = state_at(found.problem, found.intervals[:, 0])
        for item, interval in enumerate(found.intervals.tolist()):
            own = state_at(found.problem, torch.zeros(len(on_path)))
            for start, end in itertools.pairwise(ways[tuple(interval)]):
                with torch.no_grad():
                    own = own + (end - start) * field(own, torch.tensor([start, end]).expand(len(on_path), 2))
            kinds[tuple(torch.allclose(one[item], found.state[item], atol=1e-5) for one in (own, on_path))] += 1
    assert kinds[True, False] > 1 < kinds[False, True] and not kinds[False, False]


@pytest.mark.parametrize("guidance", workload([F5, MEGA], [MEGA]))
def test_validation_starts_at_one_and_falls(guidance: Values, folder: Path) -> None:
    recipe = _recipe(guidance, folder, learning_rate=2e-3, matrix_rate=0.01)
    before = recipe.validate()
    assert before["left"] == pytest.approx(1.0, abs=1e-4)
    assert set(before) == {"left", *(f"distance {n}" for n in range(1, MOST_EVALUATIONS + 1))}
    for number in range(1, workload(16, 9)):
        recipe.step(number, number / 16)
    after = recipe.validate()
    assert after["left"] < 1 - SHARE and after["distance 1"] < (1 - SHARE) * before["distance 1"]


@pytest.mark.parametrize("method", workload(METHODS, METHODS[:1]))
def test_a_resumed_run_ends_with_the_same_bits(tmp_path: Path, folder: Path, method: str) -> None:
    whole, resumed = whole_and_resumed(lambda: _recipe(F5, folder, method=method), tmp_path / "runs")
    assert same_weights(resumed.model, whole.model) and same_weights(resumed.average.module, whole.average.module)
    with pytest.raises(TrainingError, match="not started from this checkpoint"):
        whole.restore(whole.state() | {"base": "b" * 64})


def test_several_steps_learn_from_one_target(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recipes, "TargetsInUse", partial(recipes.TargetsInUse, most=2))
    recipe, made = _recipe(F5, folder, uses=3), []
    work_out = recipe.draw
    monkeypatch.setattr(recipe, "draw", lambda: made.append(work_out()) or made[-1])
    for number in range(1, 7):
        assert recipe.step(number, number / 6)["loss"] > 0
    assert 2 <= len(made) <= 4


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"method": "magic"}, "known: displacement, mean-flow"),
        ({"teacher_steps": 1}, "must take 2 steps or more, not 1"),
        ({"temperature": 0.0}, "above 0 and at most 1.5, not 0"),
        ({"uses": 2, "method": "mean-flow"}, "those of mean-flow serve one step"),
    ],
)
def test_options_are_checked(changes: dict, words: str) -> None:
    with pytest.raises(SettingError, match=words):
        AverageVelocityOptions(F5, **changes)


def _decay(state: Tensor, times: Tensor) -> Tensor:
    """dz/dt = −2z."""
    return -2 * state


def _decayed(state: Tensor, starts: Tensor, ends: Tensor) -> Tensor:
    """Its average velocity."""
    lengths = (ends - starts)[:, None, None]
    return state * (torch.exp(-2 * lengths) - 1) / lengths


def test_displacements_of_every_item_converge() -> None:
    exact = _decayed(STATE, STARTS, ENDS)
    shares = (torch.linspace(0, 1, steps + 1, dtype=torch.float64)[:, None] for steps in (8, 16, 1000))
    grids = (STARTS + one * (ENDS - STARTS) for one in shares)
    errors = [float((recipes.displacement(_decay, STATE, grid) - exact).abs().max()) for grid in grids]
    assert errors[1] == pytest.approx(errors[0] / 2, rel=0.1)  # Euler's steps are of first order.
    assert errors[2] < 5e-3


def test_the_true_average_velocity_is_its_own_mean_flow_target() -> None:
    def average(state: Tensor, intervals: Tensor) -> Tensor:
        return _decayed(state, *intervals.unbind(-1))

    intervals = torch.stack([STARTS, ENDS], dim=-1)
    predicted, target = recipes.mean_flow(average, _decay(STATE, STARTS), STATE, intervals)
    torch.testing.assert_close(predicted, _decayed(STATE, STARTS, ENDS))
    torch.testing.assert_close(target, predicted)
    _, other = recipes.mean_flow(average, STATE * math.pi, STATE, intervals)
    assert (other - predicted).abs().max() > 1


def test_each_target_serves_as_many_steps_as_asked() -> None:
    numbers = itertools.count()
    kept: recipes.TargetsInUse[int] = recipes.TargetsInUse(4, torch.Generator().manual_seed(3), most=8)
    found = [kept.next(lambda: next(numbers)) for _ in range(400)]
    assert max(Counter(found).values()) == 4
    assert next(numbers) <= 400 / 4 + 8, "of those kept at the end, some have steps left"
    assert sum(one == after for one, after in itertools.pairwise(found)) < 80, "rarely one after the other"
    generator = torch.Generator().manual_seed(3)
    before = generator.get_state()
    targets: recipes.TargetsInUse[int] = recipes.TargetsInUse(1, generator)
    numbers = itertools.count()
    assert [targets.next(lambda: next(numbers)) for _ in range(5)] == [0, 1, 2, 3, 4]
    assert torch.equal(generator.get_state(), before)


# --- Whole runs -------------------------------------------------------------------------------------------------------
def request(model: str, folder: Path, place: Path, **more: object) -> AverageVelocityRequest:
    """Two steps of ``model`` in ``folder``, with its work and its result in ``place``."""
    given = {"folder": str(folder), "work": str(place / "work"), "export": str(place / "result"), "steps": 2}
    return AverageVelocityRequest(model=model, **given | {"teacher_steps": 2, "device": "cpu"} | more)


def _request(place: Path, **changes: object) -> AverageVelocityRequest:
    speech = {"manifest": str(place / "speech" / "manifest.csv"), "frames": 300}
    return request(**{"model": "f5-mini", "folder": place / "model", "place": place} | speech | changes)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    toy_model(tmp_path / "model")
    toy_manifest(tmp_path, clips=8)
    return tmp_path


def test_a_training_writes_weights_with_what_they_are(place: Path) -> None:
    trained = fine_tune(_request(place, guidance=Values(guidance=1.5), temperature=0.9), Follower(), Intervals())
    path = Path(trained.checkpoint)
    assert path == place / "result" / "guidance-1.5.safetensors"
    found = described_interval(metadata_of(path), str(path), "")
    assert found is not None and (found.evaluations, found.sway, dict(found.guidance)) == (4, -1.0, {"guidance": 1.5})
    assert (found.method, found.temperature) == (METHODS[0], 0.9)
    weights = plain_names(read_float_weights(path))
    start = plain_names(read_float_weights(place / "model" / "model.safetensors"))
    extra = {f"time_embed.interval_mlp.{layer}.{kind}" for layer in (0, 2) for kind in ("weight", "bias")}
    assert set(weights) == set(start) | extra and any(not torch.equal(weights[name], start[name]) for name in start)
    assert trained.validation["left"] > 0


def test_it_goes_on_from_weights_of_an_earlier_run(place: Path) -> None:
    first = fine_tune(_request(place), Follower(), Intervals())
    again = _request(place, initial=first.checkpoint, work=str(place / "again"), export=str(place / "second"), steps=1)
    second = fine_tune(again, Follower(), Intervals(log_steps=1, validation_steps=1, validates_first=True))
    log = [json.loads(line) for line in (place / "again" / "training.jsonl").read_text().splitlines()]
    begun = next(one["validation"] for one in log if one.get("step") == 0)
    assert begun["left"] == pytest.approx(first.validation["left"], abs=0.02), "half precision in the file"
    assert second.steps == 1
    toy_model(place / "other", {"another": "checkpoint"})
    for changes, words in (
        ({"initial": str(place / "model" / "model.safetensors")}, "holds no weights of average velocity"),
        ({"initial": first.checkpoint, "folder": str(place / "other")}, "was made from another checkpoint"),
    ):
        with pytest.raises(TrainingError, match=words):
            fine_tune(_request(place, work=str(place / "third"), **changes), Follower(), Intervals())


class Counting(Follower):
    """Counts the sentences that are spoken, and stops before the one with the number ``last``."""

    def __init__(self, last: int = 1000) -> None:
        self.spoken: list[int] = []
        self._last = last

    def progress(self, done: int, total: int) -> None:
        assert total == 5
        if done == self._last:
            raise Cancelled
        self.spoken.append(done)


def _own(place: Path, **changes: object) -> AverageVelocityRequest:
    return _request(place, **{"manifest": "", "sentences": 1, "steps": 2} | changes)


def test_a_model_learns_from_what_it_says_itself(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fine_tuning, "STEPS", 2)
    monkeypatch.setattr(fine_tuning, "PORTION", 2)
    texts = ("The rice was good.", "They went home.")
    with pytest.raises(Cancelled):
        fine_tune(_own(place, texts=texts), Counting(3), Intervals())
    first = Counting()
    trained = fine_tune(_own(place, texts=texts), first, Intervals())
    assert first.spoken == [2, 2, 3, 4, 4, 5], "two sentences were kept"
    assert trained.steps == 2 and Path(trained.checkpoint).is_file()
    (folder,) = (place / "work" / fine_tuning.FOLDER).iterdir()
    kept = fine_tuning.kept_readings(folder, range(5), pytest.fail, Follower())
    assert [one.voice for one in kept] == [one.id for one in voices("f5-mini")], "every voice has its turn"
    for one in kept:
        frames, prompt = one.arrays["mel"].shape[0], int(one.arrays["prompt"])
        assert len(one.arrays["ids"]) == frames > prompt > 0
        assert len(np.unique(one.arrays["mel"][prompt:], axis=0)) > 1, "it said something"
    again = Counting()
    fine_tune(_own(place, texts=texts, resume=True, steps=3), again, Intervals())
    assert again.spoken == [2, 4, 5], "nothing is spoken twice"


def test_what_is_learnt_of_own_speech_comes_after_the_prompt() -> None:
    ids, mel = np.arange(12), np.ones((12, 3), np.float16)
    examples = Examples((Example("a", ids, mel, prompt=5), Example("a", ids, mel, prompt=7)), ())
    batch = collate([[one] for one in examples.training])
    assert batch.joins.tolist() == [5, 7] and not may_join(examples.training)
    problem = draw_problem(batch, OBJECTIVE, torch.Generator().manual_seed(1))
    assert problem.span.sum(1).tolist() == [7, 5] and not problem.span[0, :5].any()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": "lm-mini"}, "cannot be trained here: it declares no training"),
        ({"guidance": Values(similarity=2.0)}, "not guided by similarity; its guidance is guidance"),
        ({"model": "F5TTS_v1_Base", "manifest": ""}, "needs speech to learn from: give a manifest of recordings, or a"),
    ],
)
def test_what_cannot_be_trained_is_said(place: Path, changes: dict, words: str) -> None:
    with pytest.raises(TrainingError, match=words):
        fine_tune(_request(place, **changes), Follower(), Intervals())
