import sys

import torch
from paretone_phone_flow_network import NOTHING_SAID, WEIGHTS, Velocity, mel_of
from safetensors.torch import save_file

from paretone.front_end.phones import PHONES, PhoneVocabulary, labels
from paretone.models.voices import shipped_voices
from paretone.paths import own_place

steps, folder = int(sys.argv[1]), own_place("phone-flow")
network, spoken = Velocity(), [(mel_of(one.audio)[0], one.phones) for one in shipped_voices()]
clips = [(mel, torch.from_numpy(labels(phones, len(mel), PhoneVocabulary(PHONES)))) for mel, phones in spoken]
optimiser = torch.optim.AdamW(network.parameters(), 2e-3)
for step in range(steps):
    mel, ids = clips[step % len(clips)]
    starts = torch.randint(len(mel) - 128, (8,)).tolist()
    speech, said = (torch.stack([whole[start : start + 128] for start in starts]) for whole in (mel, ids))
    voice = mel.mean(dim=0).expand(8, -1) * (torch.rand(8, 1) > 0.3)
    said = torch.where(torch.rand(8, 1) > 0.15, said, NOTHING_SAID)
    time, noise = torch.rand(8), torch.randn_like(speech)
    state = noise + time[:, None, None] * (speech - noise)
    loss = (network(state, time, said, voice) - (speech - noise)).square().mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
folder.mkdir(parents=True, exist_ok=True)
save_file(network.state_dict(), folder / WEIGHTS)
print(f"{folder / WEIGHTS}: {steps} steps, loss {loss.item():.3f}")
