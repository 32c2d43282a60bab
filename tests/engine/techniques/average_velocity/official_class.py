"""Run by the official package's own Python: average-velocity weights in the official class, by the code of the guide,
against the engine; prints the largest difference of an evaluation as JSON."""

from __future__ import annotations

import json
import re

import torch

from paretone.models.f5.config import BackboneConfig
from paretone.models.f5.dit import DiT
from paretone.models.networks.diffusion import add_interval
from paretone.paths import resource
from paretone.sampling.flow import sampling_grid
from tests.engine.export.official_comparison import SMALL, VERSIONS, VOCABULARY
from tests.peers.official import import_models

FRAMES, PROMPT, EVALUATIONS = 40, 15, 3


def main() -> None:
    """Both sides on the same random weights."""
    import_models()
    from f5_tts.model.backbones.dit import DiT as OfficialDiT

    guide = resource("docs", "average-velocity.md").read_text(encoding="utf-8")
    code: dict = {}
    exec(re.search(r"```python\n(.*?)```", guide, re.DOTALL)[1], code)
    arch = SMALL | VERSIONS["v1"]
    torch.manual_seed(3)
    ours = DiT(BackboneConfig.from_official("DiT", arch, VOCABULARY, "test"))
    add_interval(ours)
    for parameter in ours.parameters():
        if not parameter.any():
            torch.nn.init.normal_(parameter, std=0.3)
    ours = ours.eval().requires_grad_(False)
    official = OfficialDiT(**arch, mel_dim=100, text_num_embeds=VOCABULARY).eval()
    code["take_intervals"](official, EVALUATIONS)
    official.load_state_dict(ours.state_dict(), strict=True)
    noise, prompt = torch.randn(1, FRAMES, 100), torch.randn(1, FRAMES, 100)
    prompt[:, PROMPT:] = 0
    ids = torch.randint(0, VOCABULARY, (1, 12))
    times = sampling_grid(EVALUATIONS, "uniform", -1.0)[:-1]
    run = ours.begin(prompt, ids, times, guided=False)
    differences = []
    with torch.inference_mode():
        for number, time in enumerate(times):
            theirs = official(noise, prompt, ids, torch.tensor([float(time)]))
            differences.append(float((theirs - ours.velocity(noise, number, run)).abs().max()))
            # The interval counts: the same evaluation as a step of no length is another.
            assert (theirs - ours.velocity(noise, (number + 1) % EVALUATIONS, run)).abs().max() > 1e-2
    print(json.dumps({"differences": differences}))


if __name__ == "__main__":
    main()
