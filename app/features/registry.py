"""The list of features. A new one is added by its folder and a line here.

The order is that of the shortcuts of their panels (Alt+1 to Alt+9, then Ctrl+Alt+1 and so on) and of the tabs of a
region. A presenter finds those before it while it is made, and all of them later.
"""

from __future__ import annotations

from app.features import (
    attention,
    decoding,
    demasking,
    export,
    extras,
    glossary,
    grids,
    groups,
    guidance,
    guide,
    lab,
    layers,
    listen,
    log,
    meters,
    player,
    roofline,
    setup,
    strategy,
    studies,
    synthesis,
    takes,
    threshold,
    tour,
    tradeoff,
    training,
    transfer,
    views,
)

FEATURES = (
    setup.FEATURE,
    synthesis.FEATURE,
    strategy.FEATURE,
    threshold.FEATURE,
    attention.FEATURE,
    meters.FEATURE,
    player.FEATURE,
    listen.FEATURE,
    takes.FEATURE,
    log.FEATURE,
    views.FEATURE,
    transfer.FEATURE,
    guidance.FEATURE,
    training.FEATURE,
    decoding.FEATURE,
    layers.FEATURE,
    roofline.FEATURE,
    demasking.FEATURE,
    lab.FEATURE,
    studies.FEATURE,
    tradeoff.FEATURE,
    export.FEATURE,
    guide.FEATURE,
    tour.FEATURE,
    glossary.FEATURE,
    extras.FEATURE,
    grids.FEATURE,
    groups.FEATURE,
)
