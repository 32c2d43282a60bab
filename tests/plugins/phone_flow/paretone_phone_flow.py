from dataclasses import replace

from paretone.models.declaration import Model
from paretone.sampling.options import CROSS_FADE, SPACING, SPEED, STEPS, SWAY
from paretone.setting.knobs import Number

GUIDANCE = Number(
    "guidance", "Guidance", "Strength of voice and text; 0 is none.", 1.0, trajectory=True, minimum=0.0, maximum=5.0
)
MODEL = Model(
    id="phone-flow",
    title="Phone flow",
    summary="0.5 million parameters: convolutions over one phone per mel frame; English, trained in a minute.",
    family="flow",
    licence="Apache-2.0",
    loader="paretone_phone_flow_network:load",
    options=(replace(STEPS, default=16), replace(SPACING, default="uniform"), SWAY, GUIDANCE, SPEED, CROSS_FADE),
)
