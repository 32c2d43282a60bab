"""Servers: what any speech server does under load, by its address."""

from paretone_app.features.feature import Feature
from paretone_app.shell.entries import EXPLORE, FeatureAction, MenuPart, Place, Region

FEATURE = Feature(
    "servers",
    "paretone_app.features.servers.presenter:ServersPresenter",
    (Place("servers", "Servers", Region.CENTRE, workspaces=(EXPLORE,)),),
    actions=(
        FeatureAction("measure_server", "Measure a &server…", "Measure a speech server under load, by its address"),
    ),
    menus=(MenuPart("&Compare", ("measure_server",)),),
    terms="paretone_app.features.servers.panel:TERMS",
    about="What is deployed is a server. Servers measures any speech server with OpenAI's form of requests: its first "
    "audio, gaps and throughput with one client and with many.",
)
