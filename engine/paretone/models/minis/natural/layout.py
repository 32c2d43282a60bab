"""What natural speech is made from, and how often.

A *latent frame* is 34 numbers: 32 principal components of the output of the teacher's fourth decoder block,
log f0 (interpolated where there is no voice), and voicing, 1 or −1. The components have mean zero and variance one over
the teacher's speech. A *voice frame* is a latent frame and what makes one voice of another: the formant scale, and the
level. Torch-free.
"""

from __future__ import annotations

SAMPLE_RATE = 24_000
HOP = 300
"""Samples of a latent frame: 80 frames a second."""
WINDOW = 1_200
"""Samples of the inverse transform's window."""
BINS = WINDOW // 2 + 1
HIDDEN = 256
"""Width of the decoder's blocks, and of what the components are taken from."""
COMPONENTS = 32
PITCH, VOICING, FORMANT, LEVEL = range(COMPONENTS, COMPONENTS + 4)
"""Columns after the components."""
LATENT = COMPONENTS + 2
VOICE = LATENT + 2
LOWEST_VOICED = 40.0
"""Hertz; below, a frame has no voice."""
PITCH_MEAN, PITCH_SCALE = 5.25, 0.25
"""Mean and scale of the natural logarithm of f0 in hertz."""
FORMANT_MEAN, FORMANT_SCALE = 0.985, 0.04
"""What normalises the formant scale of a voice frame: 1.0 is the teacher's own vocal tract, less a longer one."""
LEVEL_MEAN, LEVEL_SCALE = 0.776, 0.5
"""So is the level, a natural logarithm of amplitude on the teacher's own: at the mean, speech has the root mean square
of an F5 prompt, 0.1."""
