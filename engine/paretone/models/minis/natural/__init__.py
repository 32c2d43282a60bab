"""Natural speech from 34 numbers, 80 times a second: the second half of a small synthesiser's decoder.

``hibari-tts`` (Maureese Williams, Apache-2.0, distilled from Kokoro-82M) turns phonemes into five spectra a frame and
these into audio. The output of the fourth of its decoder's eight blocks is a latent that a model can learn to make;
what follows is here: four blocks and a head (:mod:`.spectra`), pulses and noise (:mod:`.excitation`), the inverse
transform (:mod:`.decoder`), all of it in pieces (:mod:`.streaming`), and the 34 numbers (:mod:`.latent_space`).
:mod:`.mel_reader` reads them off a mel.
"""
