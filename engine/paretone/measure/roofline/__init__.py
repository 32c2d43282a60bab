"""Roofline: the cost of each part of a model, its lower time bound on this machine, and its measured time.

* :mod:`~paretone.measure.roofline.counts`: operations and bytes by formula; torch-free;
* :mod:`~paretone.measure.roofline.ceilings`: peak rates: this machine's, stored per device, and those of graphics cards
  as stated, for a roofline on paper; torch-free;
* :mod:`~paretone.measure.roofline.report`: results and conclusions; torch-free;
* :mod:`~paretone.measure.roofline.published`: the roofline post's table for OmniVoice; torch-free;
* :mod:`~paretone.measure.roofline.benchmarks`: measures the ceilings;
* :mod:`~paretone.measure.roofline.clock`: measures parts of a loaded model by running them, counts kernels and
  operators, and writes Chrome traces;
* :mod:`~paretone.measure.roofline.measuring`: measures a loaded model under a setting with all of these.
"""
