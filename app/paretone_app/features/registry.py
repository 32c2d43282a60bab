"""The list of features. To add one: its folder, or its file and a declaration here, and its name in the list.

The order sets the shortcuts of panels (Alt+1 to Alt+9, then Ctrl+Alt+1 and so on) and the order of tabs. During
construction a presenter can find only the presenters before it; later, all of them.
"""

from importlib import import_module

from paretone_app import engines
from paretone_app.features.feature import Feature
from paretone_app.shell.entries import (
    EXPLORE,
    INSPECT,
    LISTEN,
    TRAIN,
    FeatureAction,
    MainStep,
    MenuPart,
    Place,
    Region,
    TourStop,
)

DOCTOR = Feature(
    "doctor",
    "paretone_app.features.doctor:DoctorPresenter",
    actions=(
        FeatureAction(
            "doctor", "Check &installation…", "Versions, device, sound, fonts, folders, space, plug-ins and packages"
        ),
    ),
    menus=(MenuPart("&Help", ("doctor",), after="extras"),),
)
DROPPING = Feature("dropping", "paretone_app.features.dropping:DroppingPresenter")
EDIT = Feature(
    "edit",
    "paretone_app.features.edit:EditPresenter",
    actions=(
        FeatureAction(
            "copy_figures",
            "&Copy figures",
            "Copy the figures of the plot or table with the focus, for a spreadsheet",
            "Ctrl+Shift+C",
        ),
        FeatureAction(
            "find", "&Find…", "Search the panel with the focus; in any other panel, and again, everything", "Ctrl+F"
        ),
        FeatureAction("preferences", "&Preferences…", "Theme, device, data folder and layout", "Ctrl+,"),
    ),
    menus=(MenuPart("&Edit", (None, "copy_figures", None, "find", None, "preferences")),),
)
PALETTE = Feature(
    "palette",
    "paretone_app.features.palette:PalettePresenter",
    actions=(
        FeatureAction(
            "palette",
            "&Everything…",
            "Find any action, model, voice, technique, setting, take, study or term by a few letters",
            "Ctrl+Shift+Space",
        ),
    ),
    menus=(MenuPart("&Edit", ("palette",), after="find"),),
)
EXPORT = Feature(
    "export",
    "paretone_app.features.export:ExportPresenter",
    steps=(
        MainStep(
            "export_profile",
            "Export profile",
            "press <b>Export profile</b> (Ctrl+E): <i>paretone speak --profile</i> runs it anywhere.",
            "<b>Export</b>: the profile contains setting, tables and measurements, and runs from the command line.",
        ),
    ),
    stops=(
        TourStop(
            "export",
            "Take the setting with you",
            "A profile holds the setting, its table and what was measured. It runs from the command line and on other "
            "machines.",
            place="listen",
        ),
    ),
)
EXTRAS = Feature(
    "extras",
    "paretone_app.features.extras:ExtrasPresenter",
    actions=(FeatureAction("extras", "&Optional packages…", "What can be installed in addition, and for what"),),
    menus=(MenuPart("&Help", ("extras",), after="keys"),),
)
GUIDANCE = Feature("guidance", "paretone_app.features.guidance:GuidancePresenter", technique="guidance_free")
GUIDE = Feature(
    "guide", "paretone_app.features.guide:GuidePresenter", (Place("steps", "Steps", Region.HEAD, workspaces=(LISTEN,)),)
)
LOG = Feature(
    "log",
    "paretone_app.features.log:LogPresenter",
    (Place("log", "Log", Region.BELOW, workspaces=(LISTEN, INSPECT, EXPLORE, TRAIN)),),
    actions=(FeatureAction("messages", "&Messages…", "All messages that were shown", "Ctrl+Shift+M"),),
    menus=(MenuPart("&Help", ("messages",), after="keys"),),
)
PROFILES = Feature(
    "profiles",
    "paretone_app.features.profiles:ProfilesPresenter",
    actions=(
        FeatureAction("open_profile", "&Open profile…", "Use the setting of an exported profile", "Ctrl+Shift+P"),
    ),
    menus=(MenuPart("&File", ("open_profile",), before="export_profile"),),
)
SYNTHESIS = Feature(
    "synthesis",
    "paretone_app.features.synthesis:SynthesisPresenter",
    steps=(
        MainStep(
            "baseline",
            "Baseline",
            "press <b>Baseline</b> (Ctrl+B) to hear the model without any technique.",
            "<b>Baseline</b>: speak a sentence with every module computed.",
        ),
        MainStep(
            "accelerated",
            "Accelerated",
            "press <b>Accelerated</b> (Ctrl+Return) to speak the same sentence with the techniques in use.",
            "<b>Accelerated</b>: speak the same sentence, from the same noise, with the techniques in use.",
        ),
    ),
    stops=(
        TourStop(
            "hear",
            "Hear the model",
            "This is the model without any acceleration: take A. It plays while it is computed.",
            place="listen",
        ),
    ),
)
TOUR = Feature(
    "tour",
    "paretone_app.features.tour:TourPresenter",
    actions=(FeatureAction("tour", "Take a &tour", "Hear, skip, compare and export, step by step", "Ctrl+F1"),),
    menus=(MenuPart("&Help", ("tour",), before="first_steps"),),
    stops=(
        TourStop(
            "onward",
            "Where to go next",
            "Type your own text in Setup, or choose another voice or model. The column on the left leads to everything "
            "else: Inspect shows what happens inside, Explore weighs speed against quality, Test is for blind "
            "listening, Train makes faster weights.",
        ),
    ),
)

_HERE = (DOCTOR, DROPPING, EDIT, EXPORT, EXTRAS, GUIDANCE, GUIDE, LOG, PALETTE, PROFILES, SYNTHESIS, TOUR)
_DECLARED = {one.name: one for one in (*_HERE, engines.FEATURE)}
_ORDER = (
    "setup synthesis strategy threshold attention meters player listen takes log engines queue views transfer "
    "guidance training decoding layers roofline demasking lab studies tradeoff export profiles guide edit "
    "palette tour glossary extras doctor grids groups take_grid servers dropping"
)
FEATURES: tuple[Feature, ...] = tuple(
    _DECLARED.get(name) or import_module(f"paretone_app.features.{name}").FEATURE for name in _ORDER.split()
)
