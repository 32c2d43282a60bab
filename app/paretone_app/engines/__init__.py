"""The engine that the window talks to: this machine's, or a host's."""

from paretone_app.features.feature import Feature
from paretone_app.shell.entries import FeatureAction, MenuPart

FEATURE = Feature(
    "engines",
    "paretone_app.engines.presenter:EnginesPresenter",
    actions=(
        FeatureAction("this_machine", "This &machine", "Compute on this machine", checkable=True),
        FeatureAction("add_host", "&Add host…", "Compute on another machine, reached by your ssh"),
        FeatureAction("forget_host", "&Forget this host", "Remove this host from the menu; nothing on it changes"),
    ),
    menus=(MenuPart("&Engine", ("this_machine", None, "add_host", "forget_host"), inside="&Model"),),
    about="The engine may run on another machine, such as a server with a graphics card (Model › Engine).",
)
