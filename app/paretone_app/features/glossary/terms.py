"""Words that no feature and no technique has for itself."""

from __future__ import annotations

from paretone_app.shell.entries import Term

TERMS = (
    Term("A and B", "The two takes that are compared. A is usually the baseline, B the accelerated take."),
    Term("Accelerated take", "A take made with the techniques in use, from the same noise as the baseline."),
    Term("Baseline", "A take made without any technique: every module of the network is computed at every step."),
    Term("Branch", "One of the evaluations of a step. Guidance needs two: with the text and voice, and without."),
    Term("Front", "The points that no other beats on both axes, also called the Pareto front."),
    Term("In use", "A technique that is ticked in Setup takes part in accelerated takes."),
    Term("Layer", "One block of the network, with attention and feed-forward modules; l of L, counted from the input."),
    Term("Level match", "Both takes play equally loud, so that louder is not taken for better (ITU-R BS.1770)."),
    Term("Model", "A system that turns text into speech: a network, its weights, and what prepares its input."),
    Term("Profile", "A setting in a file, with its strategy table and what was measured; it runs on other machines."),
    Term("Sampler", "The method that turns noise into speech, or draws tokens one after the other."),
    Term("Seed", "The number that the noise is drawn from: the same seed gives the same take."),
    Term("Setting", "Model, sampler options and techniques with their knobs: one point of the trade-off."),
    Term("Step", "One of the solver's moves from noise to speech; the fewer there are, the faster and rougher."),
    Term("Study", "Many settings spoken on many sentences, with intervals over the sentences."),
    Term("Take", "One synthesis: its sound, its setting and what was measured."),
    Term("Technique", "One way to make synthesis faster, published in a paper or an experiment."),
    Term("Voice", "A recording of some seconds with its words, which the model imitates."),
)
