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

from paretone.models.f5.text import split
from paretone.models.files.checkpoints import loaded_strictly
from paretone.models.files.config_file import ConfigFile
from paretone.models.megatts3.adapter import segment_fader
from paretone.models.megatts3.aligner import END, LONGEST, START, Aligner, AlignerConfig, read_alignment
from paretone.models.megatts3.config import DiTConfig
from paretone.models.megatts3.dit import MegaConditioning, MegaDiT
from paretone.models.megatts3.duration_model import FRAMES_MULTIPLE, DurationConfig, DurationModel, rotated
from paretone.models.megatts3.front_end import ENGLISH_BYTES, split_chinese
from paretone.models.megatts3.phones import (
    PHONES,
    TONES,
    MegaPassage,
    Timed,
    durations_of_phones,
    frames_of_phones,
    joined,
    phone_number,
    separated,
)
from paretone.models.megatts3.wavvae import WavVAE, WavVAEConfig
from paretone.models.networks.layers import load_normalised
from paretone.sampling.flow import Follow, integrate, overshoot_steps, sampling_grid
from paretone.sampling.guidance import needed_branches, three_branch_velocity
from tests.parity.fixtures import Fixture, alternating, assert_close, cases, fixtures

ONE_FORWARD = 1e-5
WHOLE_RUN = 3e-5
SWAY = -1.0
ALL_BRANCHES = 0, 1, 2
LOOKS = {"attn_out": "attention", "ff_out": "feed_forward", "out": "output"}


def is_mega_dit(description: dict) -> bool:
    return {"ph_layers", "local_cond"} <= set(description.get("config", {}))


def build(fixture: Fixture, config: DiTConfig | None = None) -> MegaDiT:
    shapes = {name: tuple(value.shape) for name, value in fixture.weights.items()}
    config = config or DiTConfig.from_shapes(shapes, fixture.name, fixture.description["config"]["heads"])
    return loaded_strictly(lambda: MegaDiT(config), fixture.weights, fixture.name)


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
            follow = self.follow(overshoot)
            return integrate(
                lambda state, step: self.guide(model.velocity(state, step, run)), self.noise, self.times, follow=follow
            )


def begin(
    model: MegaDiT, fixture: Fixture, times: np.ndarray, branches: tuple[int, ...] = ALL_BRANCHES
) -> MegaConditioning:
    names = "in.lat_ctx", "in.ctx_mask", "in.phone", "in.tone", "in.dur"
    context, prompt, phones, tones, mel2ph = (fixture[name][:1] for name in names)
    return model.begin(context, prompt[..., 0] > 0, phones, tones, mel2ph, times, branches)


MEGA_DITS = fixtures("dit", is_mega_dit)
RUNS = cases(MEGA_DITS, lambda fixture: fixture.description["runs"])
mega_dits = pytest.mark.parametrize("fixture", MEGA_DITS)


@pytest.mark.parametrize(("fixture", "name", "fused"), alternating(RUNS, (False, True)))
def test_parity_mega_sampling_run(fixture: Fixture, name: str, fused: bool) -> None:
    model, task = build(fixture), Task.of(fixture, name)
    if fused:
        model.fuse()
    grid = f"t_grid{task.steps}"
    if grid in fixture:
        assert torch.equal(torch.from_numpy(task.times), fixture[grid])
    assert_close(task.sample(model), fixture[f"{name}.out"], WHOLE_RUN, f"{name}.out")


@mega_dits
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


@mega_dits
def test_parity_mega_every_intermediate_of_one_evaluation(fixture: Fixture) -> None:
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
        found |= ends | {"layer0.in": model.enter(x, 0, run), "postnet_3branch": velocities}
        found["v_guided"] = Task.of(fixture, guided_run(fixture)).guide(velocities)
    for name in wanted:
        key = name.removeprefix("step.")
        inside = re.fullmatch(r"layer(\d+)\.(attn_out|ff_out|out)", key)
        value = found[f"{inside[1]}.{LOOKS[inside[2]]}" if inside else key]
        assert_close(value, fixture[name], ONE_FORWARD, name)


@pytest.mark.parametrize(("fixture", "name"), RUNS)
def test_parity_mega_training_forward(fixture: Fixture, name: str) -> None:
    """The forward of training, row by row with all conditions given, is the evaluation of sampling."""
    model, task = build(fixture), Task.of(fixture, name)
    time = task.times[3:4]
    prompt = fixture["in.ctx_mask"][..., 0] > 0
    texts = fixture["in.phone"], fixture["in.tone"], fixture["in.dur"]
    with torch.inference_mode():
        sampled = model.velocity(task.noise, 0, begin(model, fixture, time))
        times = torch.from_numpy(time).expand(3)
        known = model.conditions(fixture["in.lat_ctx"], prompt, *texts, None)
        trained = model.follow(task.noise.expand(3, -1, -1), prompt, known, times, None)
    assert_close(trained, sampled, ONE_FORWARD, "the velocity of training")


@mega_dits
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


# --- Outside its networks ---------------------------------------------------------------------------------------------
SEGMENTS = re.compile(
    r"(?P<count>\d+) segments sin\(n\*(?P<step>[\d.]+)\*\(i\+1\)\), "
    r"lengths (?P<first>\d+)\+(?P<more>\d+)i, sr (?P<rate>\d+)"
)
"""The rule of the fixture's cross-fade, which it writes down in words only."""


front_end = pytest.mark.parametrize("fixture", fixtures("dit", lambda said: "phone_vocab_size" in said))


@front_end
def test_parity_phones_and_tones(fixture: Fixture) -> None:
    said = fixture.description
    assert (len(PHONES), len(TONES)) == (said["phone_vocab_size"], said["tone_vocab_size"])
    assert {name: phone_number(name) for name in said["phone_id_examples"]} == said["phone_id_examples"]
    assert {str(number): name for number, name in enumerate(TONES)} == said["tone_id_to_token"]


@front_end
def test_parity_tokens_of_phones(fixture: Fixture) -> None:
    said = fixture.description["split_ph"]
    pairs = [separated(token) for token in said["in"]]
    assert [list(part) for part in zip(*pairs, strict=True)] == [said["ph"], said["tone"]]
    expected = fixture.description["map_phone_to_tokendict_back"]
    assert [START, *(joined(*pair) for pair in pairs), END] == expected


@front_end
def test_parity_tokens_of_the_aligner(fixture: Fixture) -> None:
    said = fixture.description["split_ph_timestamp"]
    alignment = read_alignment(said["in"], said["last"])
    assert (list(alignment.phones), list(alignment.tones)) == (said["ph"], said["tone"])
    assert list(alignment.durations) == said["dur"]


@front_end
def test_parity_splitting(fixture: Fixture) -> None:
    said = fixture.description
    assert split(said["texts"]["en"], ENGLISH_BYTES) == said["chunk_english_130"]
    assert split_chinese(said["texts"]["zh"]) == said["chunk_chinesev2_60"]


@front_end
def test_parity_durations_and_frames(fixture: Fixture) -> None:
    assert FRAMES_MULTIPLE == 8
    said = fixture.description
    rows, backward = said["length_regulator"], said["mel2token_to_dur"]
    # Frames were cut, as upstream cuts them to a multiple, before they were counted.
    counted = max(map(sum, backward))
    assert counted <= len(rows["mel2ph"][0])
    for durations, frames, back in zip(rows["dur"], rows["mel2ph"], backward, strict=True):
        found = frames_of_phones(durations)
        # Officially a batch, where shorter rows are filled up with 0.
        assert np.pad(found, (0, len(frames) - len(found))).tolist() == frames
        assert durations_of_phones(np.array(frames[:counted]), len(durations)).tolist() == back


@front_end
def test_parity_cross_fade(fixture: Fixture) -> None:
    said = fixture.description["combine"]
    rule = SEGMENTS.fullmatch(said["rule"])
    assert rule is not None, said["rule"]
    count, first, more, rate = (int(rule[name]) for name in ("count", "first", "more", "rate"))
    fader = segment_fader(rate)
    pushed = [
        fader.push(np.sin(np.arange(first + more * i) * float(rule["step"]) * (i + 1)).astype(np.float32))
        for i in range(count)
    ]
    joined_up = np.concatenate([*pushed, fader.finish()])
    assert len(joined_up) == said["out_len"]
    assert np.abs(joined_up[::97] - said["sample_every_97"]).max() < 1e-6


TOLERANCE = 1e-5


aligners = pytest.mark.parametrize("fixture", fixtures("dit", lambda said: "n_mels" in said.get("config", {})))


def aligner_config_of(sizes: dict) -> AlignerConfig:
    names = "n_mels", "n_state", "n_head", "n_layer", "n_ctx", "n_text_ctx", "n_vocab"
    return AlignerConfig(*(sizes[name] for name in names))


@aligners
def test_parity_aligner(fixture: Fixture) -> None:
    config, tokens = aligner_config_of(fixture.description["config"]), fixture["tokens"]
    model = loaded_strictly(lambda: Aligner(config), fixture.weights, fixture.name)
    with torch.inference_mode():
        features = model.encoder(fixture["mel"])
        assert_close(features, fixture["audio_features"], TOLERANCE, "audio features")
        longest = tokens.shape[1] - 1
        scores = model.decoder(tokens[:, :longest], model.decoder.begin(features))
        assert_close(scores, fixture["logits_last"], TOLERANCE, "scores")
        assert model.tokens(fixture["mel"], longest) == tokens[0].tolist()
        # Further than the fixture goes, against upstream's loop, which evaluates everything again for every token.
        further, found = model.config.tokens, [START]
        while len(found) <= further and found[-1] != END:
            scores = model.decoder(torch.tensor([found]), model.decoder.begin(features))
            found.append(int(scores[0, -1].argmax()))
        assert model.tokens(fixture["mel"], further) == found


@aligners
def test_parity_aligner_sizes_of_the_release(fixture: Fixture) -> None:
    assert aligner_config_of(fixture.description["released"]) == AlignerConfig()
    assert LONGEST == 768


def build_durations(fixture: Fixture) -> DurationModel:
    entries = fixture.description["hparams"] | fixture.description["config"]
    config = DurationConfig.read(ConfigFile(entries, fixture.name), entries["ph_dict_size"])
    return loaded_strictly(lambda: DurationModel(config), fixture.weights, fixture.name)


duration_models = pytest.mark.parametrize(
    "fixture", fixtures("dit", lambda said: "dur_model_type" in said.get("hparams", {}))
)


@duration_models
def test_parity_duration_model(fixture: Fixture) -> None:
    model = build_durations(fixture)
    phones, tones = fixture["in.ph_ref"], fixture["in.tone_ref"]
    durations = fixture["in.ctx_dur"] - 1
    with torch.inference_mode():
        assert_close(model.read_text(phones, tones), fixture["x_ling_ref"], TOLERANCE, "text of the prompt")
    prompt = model.read_prompt(phones, tones, durations)
    for number, (keys, values) in enumerate(fixture["prompt_kv"]):
        assert_close(prompt.past[number].keys, rotated(keys, 0), TOLERANCE, f"keys of layer {number}")
        assert_close(prompt.past[number].values, values, TOLERANCE, f"values of layer {number}")
    codes = model.predict(prompt, fixture["in.ph_pred"], fixture["in.tone_pred"])
    assert codes == fixture["dur_codes"][0].tolist()


@duration_models
def test_parity_duration_model_outputs_before_rounding(fixture: Fixture) -> None:
    model = build_durations(fixture)
    prompt = model.read_prompt(fixture["in.ph_ref"], fixture["in.tone_ref"], fixture["in.ctx_dur"] - 1)
    with torch.inference_mode():
        text = model.read_text(fixture["in.ph_pred"], fixture["in.tone_pred"])
        past, before = prompt.past, prompt.last
        for place, code in enumerate(fixture["dur_codes"][0].tolist()):
            output, past = model(torch.tensor([[before]]), text[:, place : place + 1], past)
            assert_close(output[0, 0], fixture["raw_pred"][0, place], TOLERANCE, f"output {place}")
            before = code


@pytest.mark.parametrize("fixture", fixtures("dit", lambda said: "lat_up" in said.get("config", {})))
def test_parity_wavvae_every_stage(fixture: Fixture) -> None:
    said = fixture.description["config"]
    model = WavVAE(WavVAEConfig(width=2 * said["half"], channels=said["ngf"], ratios=tuple(said["ratios"])))
    load_normalised(model, fixture.weights, fixture.name)
    with torch.inference_mode():
        frames = model.latent_upsampler(model.proj_to_decoder(fixture["latent"]).transpose(1, 2))
        assert_close(frames, fixture["latent_up"], TOLERANCE, "latent_up")
        stages: dict[str, Tensor] = {}
        for number, layer in enumerate(model.decoder.model_up):
            frames = layer(frames)
            stages[f"up{number}"] = frames
    compared = [name for name in fixture.names if name in stages]
    assert compared
    for name in compared:
        assert_close(stages[name], fixture[name], TOLERANCE, name)
    assert_close(model.decode(fixture["latent"])[:, None], fixture["wav"], TOLERANCE, "wav")
