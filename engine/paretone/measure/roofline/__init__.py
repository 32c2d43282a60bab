"""The roofline: what each part of a model costs, the least time that this machine needs for it, and what it takes.

* :mod:`~paretone.measure.roofline.counts`: operations and bytes by formula; torch-free;
* :mod:`~paretone.measure.roofline.ceilings`: how much this machine does in a second at best, kept per device;
  torch-free;
* :mod:`~paretone.measure.roofline.report`: what was found, and what follows from it; torch-free;
* :mod:`~paretone.measure.roofline.published`: the table that the roofline post computes for OmniVoice; torch-free;
* :mod:`~paretone.measure.roofline.benchmarks`: measures the ceilings;
* :mod:`~paretone.measure.roofline.clock`: measures parts of a loaded model by running them, counts kernels and
  operators, and writes Chrome traces;
* :mod:`~paretone.measure.roofline.measuring`: all of it together, for a loaded model and a setting.
"""
