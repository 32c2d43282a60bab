"""Roofline: each component's time against the limits of the machine."""

from paretone_app.features.feature import Feature
from paretone_app.shell.entries import Place, Region

FEATURE = Feature(
    "roofline",
    "paretone_app.features.roofline.presenter:RooflinePresenter",
    (Place("roofline", "Roofline", Region.CENTRE),),
    keys=(("from component to component, in plot and table", "Left, Right; Up, Down"), ("copy as text", "Ctrl+C")),
    about="Roofline compares the measured time of each component with the least time on this machine, without "
    "techniques and with them: it shows whether arithmetic, memory or kernel launches limit the speed.",
)
