"""F5's DiT and E2's UNetT against the official code: every intermediate of one evaluation, and whole sampling runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from paretone.audio.cross_fade import CrossFader
from paretone.front_end.pronunciations import HowToRead
from paretone.models.base import Voice
from paretone.models.f5.checkpoint import F5Checkpoint, backbone_weights
from paretone.models.f5.config import HOP, BackboneConfig
from paretone.models.f5.dit import DiT
from paretone.models.f5.front_end import CharacterFrontEnd, Prompt, PromptLevel, sampled_frames, total_frames
from paretone.models.f5.text import Vocabulary, encode, maximum_bytes, pinyin_tokens, spaced_transcript, split
from paretone.models.f5.unett import UNetT
from paretone.sampling.flow import integrate, sampling_grid
from paretone.sampling.guidance import guided_velocity, is_guided
from paretone.sampling.schedules import evaluation_times
from tests.parity.fixtures import Fixture, alternating, assert_close, cases, fixtures

ONE_FORWARD = 1e-5
WHOLE_RUN = 3e-5
OFFICIAL_DEFAULTS = {"cfg_strength": 1.0, "sway_sampling_coef": None, "use_epss": True, "method": "euler"}
NOT_SAMPLED = {"noise_seed", "note"}
LOOKS = {"attn_in": "attention_input", "attn_out": "attention", "ff_out": "feed_forward", "out": "output"}


def is_backbone(description: dict) -> bool:
    return description.get("backbone") in ("DiT", "UNetT") and "arch" in description


def build(fixture: Fixture) -> DiT | UNetT:
    """The backbone as the fixture describes it, through the loading of official checkpoints."""
    said = fixture.description
    arch = dict(said["arch"])
    for size in ("dim_head", "mel_dim"):
        if size in said:
            arch.setdefault(size, said[size])
    arch.setdefault("text_dim", arch.get("mel_dim", 100))
    config = BackboneConfig.from_official(said["backbone"], arch, said["text_num_embeds"], fixture.name)
    weights = backbone_weights(fixture.weights, fixture.name)
    return F5Checkpoint(fixture.folder / fixture.name, fixture.name, config, weights).build()


@dataclass(frozen=True)
class Task:
    """One run's inputs."""

    prompt: Tensor
    """(batch, frames, bands), zero outside the prompts."""
    is_prompt: Tensor
    """(batch, frames, 1) bool."""
    ids: Tensor
    noise: Tensor
    durations: list[int]
    options: dict

    @classmethod
    def of(cls, fixture: Fixture, name: str) -> Task:
        runs = fixture.description["runs"]
        options = OFFICIAL_DEFAULTS | runs[name]
        source = name if f"{name}.cond_mel" in fixture else "in"
        mel, ids = fixture[f"{source}.cond_mel"], fixture[f"{source}.text_ids"]
        lengths = fixture[f"{name}.lens"].tolist() if f"{name}.lens" in fixture else [mel.shape[1]] * len(mel)
        if f"{name}.durations" in fixture:
            wanted = fixture[f"{name}.durations"].tolist()
        else:
            wanted = options["duration"] if isinstance(options["duration"], list) else [options["duration"]] * len(mel)
        valid = (ids != -1).sum(1).tolist()
        durations = [sampled_frames(*sizes) for sizes in zip(wanted, lengths, valid, strict=True)]
        frames = max(durations)
        is_prompt = (torch.arange(frames)[None] < torch.tensor(lengths)[:, None])[..., None]
        prompt = torch.nn.functional.pad(mel, (0, 0, 0, max(frames - mel.shape[1], 0)))[:, :frames]
        if options.pop("no_ref_audio", False):
            prompt = torch.zeros_like(prompt)
        noise = next(
            fixture[f"{other}.noise"]
            for other in (name, *runs)
            if f"{other}.noise" in fixture and runs[other].get("noise_seed") == options.get("noise_seed")
        )
        options.pop("duration", None)
        return cls(prompt.masked_fill(~is_prompt, 0), is_prompt, ids, noise, durations, options)


def within(backbone: DiT | UNetT, run: Any, task: Task, guided: bool) -> Any:
    """``run`` of items whose frames after their duration are padding, as in training."""
    limits = torch.tensor(task.durations)[:, None]
    if isinstance(backbone, UNetT):
        return replace(run, mask=(torch.arange(1 + task.prompt.shape[1])[None] <= limits).repeat(run.branches, 1))
    mask = torch.arange(task.prompt.shape[1])[None] < limits
    texts = [backbone.text_embed(task.ids, task.prompt.shape[1], drop, mask) for drop in (False, True)[: 1 + guided]]
    prompts = torch.cat([task.prompt, torch.zeros_like(task.prompt)][: 1 + guided])
    rows = mask.repeat(run.branches, 1)
    return replace(run, mask=rows, constant=backbone.input_embed.constant(prompts, torch.cat(texts), rows))


def sample(backbone: DiT | UNetT, task: Task, on_step: Callable[[int, Tensor], None] | None = None) -> Tensor:
    """As ``CFM.sample`` of the official code."""
    options = dict(task.options)
    steps, strength = options.pop("steps"), options.pop("cfg_strength")
    spacing = "epss" if options.pop("use_epss") else "uniform"
    solver, sway = options.pop("method"), options.pop("sway_sampling_coef")
    unknown = set(options) - NOT_SAMPLED
    assert not unknown, f"the fixture's run has options that this test does not know: {unknown}"
    times = sampling_grid(steps, spacing, sway or 0.0)
    run = backbone.begin(task.prompt, task.ids, evaluation_times(times, solver), is_guided(strength))
    if len(task.durations) > 1:
        run = within(backbone, run, task, is_guided(strength))
    with torch.inference_mode():

        def velocity(state: Tensor, evaluation: int) -> Tensor:
            return guided_velocity(backbone.velocity(state, evaluation, run), strength)

        result = integrate(velocity, task.noise, times, solver, on_step)
    return torch.where(task.is_prompt, task.prompt, result)


BACKBONES = fixtures("dit", is_backbone)
RUNS = cases(BACKBONES, lambda fixture: fixture.description["runs"])


@pytest.mark.parametrize(("fixture", "name", "fused"), alternating(RUNS, (False, True)))
def test_parity_sampling_run(fixture: Fixture, name: str, fused: bool) -> None:
    backbone = build(fixture)
    if fused:
        backbone.fuse()
    task = Task.of(fixture, name)
    if f"{name}.t_grid" in fixture:
        spacing = "epss" if task.options["use_epss"] else "uniform"
        grid = sampling_grid(task.options["steps"], spacing, task.options["sway_sampling_coef"] or 0.0)
        assert torch.equal(torch.from_numpy(grid), fixture[f"{name}.t_grid"])
    states = [task.noise]
    out = sample(backbone, task, lambda step, state: states.append(state))
    assert_close(out, fixture[f"{name}.out"], WHOLE_RUN, f"{name}.out")
    if f"{name}.trajectory" in fixture:
        assert_close(torch.stack(states), fixture[f"{name}.trajectory"], WHOLE_RUN, f"{name}.trajectory")


@pytest.mark.parametrize("fixture", BACKBONES)
def test_parity_every_intermediate_of_one_evaluation(fixture: Fixture) -> None:
    wanted = [name for name in fixture.names if name.startswith("step.")]
    if not wanted:
        pytest.skip(f"{fixture.name} stores no intermediates")
    backbone = build(fixture)
    x, time = fixture["step.x"], fixture["step.t"]
    ids, prompt = fixture["in.text_ids"], fixture["step.step_cond"]
    found: dict[str, Tensor] = {}

    def probe(index: int, what: str, value: Tensor) -> None:
        found[f"{index}.{what}"] = value.clone()  # the layers that follow may reuse the memory

    if isinstance(backbone, DiT):
        backbone.proj_out.register_forward_pre_hook(lambda module, given: found.update(norm_out=given[0]))
    else:
        backbone.norm_out.register_forward_hook(lambda module, given, value: found.update(norm_out=value))
    with torch.inference_mode():
        run = backbone.begin(prompt, ids, time.reshape(1).numpy(), guided=True)
        for branch, drop in (("cond", False), ("uncond", True)):
            found[f"text_embed_{branch}"] = backbone.text_embed(ids, x.shape[1], drop)
        entered = backbone.enter(x, 0, run)[:, 0 if isinstance(backbone, DiT) else 1 :]
        found["input_cond"], found["input_uncond"] = entered.chunk(2)
        found["time_embed"] = backbone.time_embed(time.reshape(1))
        found["pred_cfg"] = backbone.velocity(x, 0, run, probe=probe)
        strength = fixture.description["runs"]["single"]["cfg_strength"]
        found["v_guided"] = guided_velocity(found["pred_cfg"], strength)
    found |= {"x": x, "t": time, "step_cond": Task.of(fixture, "single").prompt}
    for name in wanted:
        key = name.removeprefix("step.")
        inside = re.fullmatch(r"(?:block|layer)(\d+)\.(\w+)", key)
        value = found[f"{inside[1]}.{LOOKS[inside[2]]}" if inside else key]
        assert_close(value, fixture[name], ONE_FORWARD, name)


def can_be_confused(description: dict) -> bool:
    """Whether rotary heads or text masking matter: not with one head and without text layers."""
    arch = description.get("arch", {})
    return is_backbone(description) and (arch.get("heads", 8) > 1 or arch.get("conv_layers", 0) > 0)


@pytest.mark.parametrize("fixture", fixtures("dit", can_be_confused))
def test_parity_is_not_vacuous_another_architecture_is_far_away(fixture: Fixture) -> None:
    """The same weights with text masking or rotary heads flipped must miss: the runs above can tell."""
    backbone = build(fixture)
    config = backbone.config
    flips = {"pe_attn_head": 1 if config.pe_attn_head is None else None} if config.heads > 1 else {}
    if config.conv_layers and not config.text_embedding_average_upsampling:
        flips["text_mask_padding"] = not config.text_mask_padding
    name = next(iter(fixture.description["runs"]))
    for entry, value in flips.items():
        flipped = replace(config, **{entry: value})
        other = F5Checkpoint(fixture.folder, fixture.name, flipped, backbone.state_dict()).build()
        missed = (sample(other, Task.of(fixture, name)) - fixture[f"{name}.out"]).abs().max().item()
        assert missed > 10 * WHOLE_RUN, f"flipping {entry} changes {name}.out by {missed:.3g} only"


# --- The front end ----------------------------------------------------------------------------------------------------
LEVEL = 1e-7
OFFICIAL_TEXT_DEFAULTS = {"speed": 1.0, "fix_duration": None, "cross_fade_duration": 0.15}


def is_text(description: dict) -> bool:
    return all({"text", "tokens", "ids"} <= set(row) for row in description.get("rows", [{}]))


def vocabulary(fixture: Fixture) -> Vocabulary:
    """The vocabulary as far as the rows show it: missing tokens have the id of the space."""
    ids = {}
    for row in fixture.description["rows"]:
        for token, number in zip(row["tokens"], row["ids"], strict=True):
            if number != 0 or token == " ":
                assert ids.setdefault(token, number) == number
    return Vocabulary(ids)


ROWS = cases(fixtures("dit", is_text), lambda fixture: range(len(fixture.description["rows"])))


@pytest.mark.parametrize(("fixture", "index"), ROWS)
def test_parity_tokens_and_ids(fixture: Fixture, index: int) -> None:
    row = fixture.description["rows"][index]
    encoded = vocabulary(fixture).encode(row["text"])
    assert list(encoded.tokens) == row["tokens"]
    assert list(encoded.ids) == row["ids"]
    if "byte_ids" in row:
        assert list(encode(row["text"], None, "byte").ids) == row["byte_ids"]


@pytest.mark.parametrize("fixture", fixtures("dit", lambda said: is_text(said) and "batch" in said))
def test_parity_batches(fixture: Fixture) -> None:
    """Upstream fills the rows of a batch up with −1; here every passage is a row by itself."""
    batch = fixture.description["batch"]
    known = vocabulary(fixture)
    for text, row in zip(batch["texts"], batch["ids"], strict=True):
        ids = list(known.encode(text).ids)
        assert ids + [-1] * (len(row) - len(ids)) == row


@pytest.mark.parametrize("fixture", fixtures("dit", lambda said: "chunk_text" in said))
def test_parity_chunks(fixture: Fixture) -> None:
    for case in fixture.description["chunk_text"]:
        assert split(case["text"], case["max_chars"]) == case["chunks"]


@pytest.mark.parametrize(("entry", "sway"), [("epss", 0.0), ("epss_sway_minus1", -1.0)])
@pytest.mark.parametrize("fixture", fixtures("dit", lambda said: "epss" in said))
def test_parity_time_grids(fixture: Fixture, entry: str, sway: float) -> None:
    if entry not in fixture.description:
        pytest.skip(f"{fixture.name} has no grids {entry}")
    for steps, grid in fixture.description[entry].items():
        assert np.array_equal(sampling_grid(int(steps), "epss", sway), np.array(grid, np.float32)), steps


SCENARIOS = cases(
    fixtures("dit", lambda said: "scenarios" in said), lambda fixture: range(len(fixture.description["scenarios"]))
)


@pytest.mark.parametrize(("fixture", "index"), SCENARIOS)
def test_parity_long_text(fixture: Fixture, index: int) -> None:
    said = fixture.description["scenarios"][index]
    name = said["name"]
    options = OFFICIAL_TEXT_DEFAULTS | said["kw"]
    unknown = set(options) - set(OFFICIAL_TEXT_DEFAULTS)
    assert not unknown, f"the fixture's scenario has options that this test does not know: {unknown}"
    assert said["sr"] == 24000, "the fixtures leave resampling out"
    transcript = said["ref_text"]
    maximum = maximum_bytes(transcript, said["secs"], options["speed"])
    assert maximum == said["max_chars"]
    pieces = split(said["gen_text"], maximum)
    assert pieces == said["gen_text_batches"]
    voice = Voice("", "", "", transcript)
    mel = torch.zeros(1, 1, 1)
    whole_prompt = Prompt(voice, mel, 0, PromptLevel(1.0), torch.zeros(0), said["secs"])
    front_end = CharacterFrontEnd(None, "byte")
    read = front_end.passages(said["gen_text"], whole_prompt, HowToRead(options["speed"]))
    assert [passage.text for passage in read.passages] == pieces

    recording = fixture[f"{name}.audio_in"].mean(0, keepdim=True)  # The application reads all recordings as mono.
    level = PromptLevel.measure(recording)
    prompt = level.normalised(recording)
    transcript = spaced_transcript(transcript)
    assert len(pieces) == len(said["calls"])
    for piece, call in zip(pieces, said["calls"], strict=True):
        assert prompt.shape[-1] == call["cond_len"]
        assert PromptLevel.measure(prompt).level == pytest.approx(call["cond_rms"], abs=LEVEL)
        assert ["".join(pinyin_tokens(transcript + piece))] == call["text"]
        if not options["fix_duration"]:  # Paretone has no such option.
            frames = prompt.shape[-1] // HOP
            assert total_frames(frames, transcript, piece, options["speed"]) == call["duration"]

    waves = [fixture[f"{name}.vocoder_wave{number}"] for number in range(len(pieces))]
    fader = CrossFader(int(options["cross_fade_duration"] * said["sr"]))
    parts = [fader.push(level.restored(wave)[0].numpy()) for wave in waves]
    whole = torch.from_numpy(np.concatenate([*parts, fader.finish()]))
    assert len(whole) == said["final_len"]
    assert_close(whole, fixture[f"{name}.final_wave"], 0.0, "final_wave")
