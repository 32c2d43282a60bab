"""MegaTTS 3's diffusion transformer against the official code: every intermediate of one evaluation, and whole runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from paretone.models.files.checkpoints import load_strictly
from paretone.models.megatts3.config import DiTConfig
from paretone.models.megatts3.dit import MegaConditioning, MegaDiT
from paretone.models.megatts3.phones import MegaPassage, Timed
from paretone.sampling.flow import Follow, integrate, overshoot_steps, sampling_grid
from paretone.sampling.guidance import needed_branches, three_branch_velocity
from tests.parity.fixtures import Fixture, alternating, assert_close, fixtures, full_precision

ONE_FORWARD = 1e-5
WHOLE_RUN = 3e-5
SWAY = -1.0
ALL_BRANCHES = 0, 1, 2
LOOKS = {"attn_out": "attention", "ff_out": "feed_forward", "out": "output"}


def is_mega_dit(description: dict) -> bool:
    return {"ph_layers", "local_cond"} <= set(description.get("config", {}))


def config_of(fixture: Fixture) -> DiTConfig:
    shapes = {name: tuple(value.shape) for name, value in fixture.weights.items()}
    return DiTConfig.from_shapes(shapes, fixture.name, fixture.description["config"]["heads"])


def build(fixture: Fixture, config: DiTConfig | None = None) -> MegaDiT:
    model = MegaDiT(config or config_of(fixture))
    load_strictly(model, fixture.weights, fixture.name)
    return model.eval().requires_grad_(False)


def guided_run(fixture: Fixture) -> str:
    """The first run that needs all branches: the intermediates are combined as it does."""
    runs = fixture.description["runs"]
    return next(name for name, said in runs.items() if needed_branches(*said["seq_cfg_w"]) == ALL_BRANCHES)


@dataclass(frozen=True)
class Task:
    """One run's inputs, those of the first of the fixture's three rows: the others follow from it."""

    fixture: Fixture
    steps: int
    intelligibility: float
    similarity: float
    noises: Tensor
    """(steps, 1, frames, latent)"""

    @classmethod
    def of(cls, fixture: Fixture, name: str) -> Task:
        said = fixture.description["runs"][name]
        unknown = set(said) - {"steps", "seq_cfg_w", "noise_steps"}
        assert not unknown, f"the fixture's run has options that this test does not know: {unknown}"
        return cls(fixture, said["steps"], *said["seq_cfg_w"], fixture[said["noise_steps"]])

    @property
    def noise(self) -> Tensor:
        return self.fixture["noise_init"]

    @property
    def times(self) -> np.ndarray:
        return sampling_grid(self.steps, "uniform", SWAY)

    def begin(self, model: MegaDiT) -> MegaConditioning:
        branches = needed_branches(self.intelligibility, self.similarity)
        return begin(model, self.fixture, self.times[:-1], branches)

    def guide(self, velocities: Tensor) -> Tensor:
        return three_branch_velocity(velocities, self.intelligibility, self.similarity)

    def follow(self, overshoot: float = 3.0) -> Follow:
        return overshoot_steps(self.times, self.noises, overshoot)

    def sample(self, model: MegaDiT, overshoot: float = 3.0) -> Tensor:
        run = self.begin(model)
        with torch.inference_mode():
            return integrate(
                lambda state, step: self.guide(model.velocity(state, step, run)),
                self.noise,
                self.times,
                follow=self.follow(overshoot),
            )


def begin(
    model: MegaDiT, fixture: Fixture, times: np.ndarray, branches: tuple[int, ...] = ALL_BRANCHES
) -> MegaConditioning:
    names = "in.lat_ctx", "in.ctx_mask", "in.phone", "in.tone", "in.dur"
    context, prompt, phones, tones, mel2ph = (fixture[name][:1] for name in names)
    return model.begin(context, prompt[..., 0] > 0, phones, tones, mel2ph, times, branches)


RUNS = [
    pytest.param(parameter.values[0], run, id=f"{parameter.id}-{run}", marks=parameter.marks)
    for parameter in fixtures("dit", is_mega_dit)
    for run in parameter.values[0].description["runs"]
]


@pytest.mark.parametrize(("fixture", "name", "fused"), alternating(RUNS, (False, True)))
def test_parity_mega_sampling_run(fixture: Fixture, name: str, fused: bool) -> None:
    full_precision()
    model, task = build(fixture), Task.of(fixture, name)
    if fused:
        model.fuse()
    grid = f"t_grid{task.steps}"
    if grid in fixture:
        assert torch.equal(torch.from_numpy(task.times), fixture[grid])
    assert_close(task.sample(model), fixture[f"{name}.out"], WHOLE_RUN, f"{name}.out")


@pytest.mark.parametrize("fixture", fixtures("dit", is_mega_dit))
def test_parity_mega_inputs_from_prompt_and_text(fixture: Fixture) -> None:
    """Concatenation and tone numbering of the phones of prompt and text."""
    if "raw.ph_ref" not in fixture:
        pytest.skip(f"{fixture.name} stores no phones of prompt and text apart")
    prompt, spoken = (
        Timed(*(tuple(fixture[f"raw.{what}_{part}"][0].tolist()) for what in ("ph", "tone", "dur")))
        for part in ("ref", "pred")
    )
    passage = MegaPassage.of("", prompt, spoken)
    assert torch.equal(passage.phones, fixture["in.phone"][:1])
    assert torch.equal(passage.tones, fixture["in.tone"][:1])
    assert torch.equal(passage.mel2ph, fixture["in.dur"][:1])
    latents = fixture["raw.vae_latent"]
    assert latents.shape[1] == fixture["in.ctx_mask"][0].sum()
    assert torch.equal(fixture["in.lat_ctx"][:1, : latents.shape[1]], latents)


@contextmanager
def outputs(modules: dict[str, nn.Module]) -> Iterator[dict[str, Tensor]]:
    """Outputs of the modules within the block, by their names."""
    found: dict[str, Tensor] = {}
    hooks = [
        module.register_forward_hook(lambda module, given, value, name=name: found.update({name: value}))
        for name, module in modules.items()
    ]
    yield found
    for hook in hooks:
        hook.remove()


def once_per_utterance(model: MegaDiT, fixture: Fixture) -> dict[str, Tensor]:
    """The intermediates of the phone encoder and of the prompt, for all three rows."""
    layers = model.ph_encoder.encoder
    modules: dict[str, nn.Module] = {"ph.prenet": model.ph_encoder.pre}
    for index, (attention, feed_forward) in enumerate(zip(layers.attn_layers, layers.ffn_layers, strict=True)):
        modules |= {f"ph.attn{index}": attention, f"ph.ffn{index}": feed_forward}
    with outputs(modules) as phones:
        encoded = model.encode_phones(fixture["in.phone"], fixture["in.tone"])
    with outputs({"local_cond": model.local_cond_project}) as prompts:
        model.condition(fixture["in.lat_ctx"], fixture["in.ctx_mask"][..., 0] > 0)
    return {name: value.mT for name, value in phones.items()} | {
        "ling_encoder": encoded,
        "ling_expanded": model.sounding(encoded, fixture["in.dur"]),
        "x_ling": model.expand_phones(encoded, fixture["in.dur"]),
        "local_cond": prompts["local_cond"],
    }


@pytest.mark.parametrize("fixture", fixtures("dit", is_mega_dit))
def test_parity_mega_every_intermediate_of_one_evaluation(fixture: Fixture) -> None:
    full_precision()
    wanted = [name for name in fixture.names if name.startswith("step.")]
    if not wanted:
        pytest.skip(f"{fixture.name} stores no intermediates")
    model, x, time = build(fixture), fixture["step.x"], fixture["step.t"].reshape(1)
    found: dict[str, Tensor] = {"x": x, "t": fixture["step.t"]}

    def probe(index: int, what: str, value: Tensor) -> None:
        found[f"{index}.{what}"] = value.clone()  # the layers that follow may reuse the memory

    model.encoder.out_proj.register_forward_pre_hook(lambda module, given: found.update(encoder_norm=given[0]))
    with torch.inference_mode():
        found |= once_per_utterance(model, fixture)
        with outputs({"time_embed": model.f5_time_embed, "encoder_out": model.encoder.out_proj}) as ends:
            run = begin(model, fixture, time.numpy())
            velocities = model.velocity(x, 0, run, probe=probe)
        found |= ends | {"layer0.in": model.enter(x, run), "postnet_3branch": velocities}
        found["v_guided"] = Task.of(fixture, guided_run(fixture)).guide(velocities)
    for name in wanted:
        key = name.removeprefix("step.")
        inside = re.fullmatch(r"layer(\d+)\.(attn_out|ff_out|out)", key)
        value = found[f"{inside[1]}.{LOOKS[inside[2]]}" if inside else key]
        assert_close(value, fixture[name], ONE_FORWARD, name)


@pytest.mark.parametrize(("fixture", "name"), RUNS)
def test_parity_mega_training_forward(fixture: Fixture, name: str) -> None:
    """The forward of training, row by row with all conditions given, is the evaluation of sampling."""
    full_precision()
    model, task = build(fixture), Task.of(fixture, name)
    time = task.times[3:4]
    prompt = fixture["in.ctx_mask"][..., 0] > 0
    texts = fixture["in.phone"], fixture["in.tone"], fixture["in.dur"]
    with torch.inference_mode():
        sampled = model.velocity(task.noise, 0, begin(model, fixture, time))
        times = torch.from_numpy(time).expand(3)
        trained = model(task.noise.expand(3, -1, -1), fixture["in.lat_ctx"], prompt, *texts, times)
    assert_close(trained, sampled, ONE_FORWARD, "the velocity of training")


@pytest.mark.parametrize("fixture", fixtures("dit", is_mega_dit))
def test_parity_mega_is_not_vacuous(fixture: Fixture) -> None:
    """Typical mistakes miss the fixture, so the runs above can detect them."""
    name = guided_run(fixture)
    model, task, expected = build(fixture), Task.of(fixture, name), fixture[f"{name}.out"]
    other_heads = replace(model.config, heads=2 * model.config.heads)
    swapped = replace(task, intelligibility=task.similarity, similarity=task.intelligibility)
    late = replace(task, noises=task.noises.roll(1, 0))
    misses = {
        "no overshoot": task.sample(model, overshoot=0.0),
        "an overshoot of two": task.sample(model, overshoot=2.0),
        "guidances swapped": swapped.sample(model),
        "noises a step late": late.sample(model),
        "narrower heads": task.sample(build(fixture, other_heads)),
    }
    for what, found in misses.items():
        missed = (found - expected).abs().max().item()
        assert missed > 10 * WHOLE_RUN, f"{what} changes {name}.out by {missed:.3g} only"
