"""The queue: what runs and what waits."""

from paretone_app.features.feature import Feature
from paretone_app.shell.entries import EXPLORE, INSPECT, LISTEN, TRAIN, Place, Region

FEATURE = Feature(
    "queue",
    "paretone_app.features.queue.presenter:QueuePresenter",
    (Place("queue", "Queue", Region.BELOW, workspaces=(LISTEN, INSPECT, EXPLORE, TRAIN)),),
    keys=(("earlier, later; cancel", "Alt+Up, Alt+Down; Del"),),
    about="Queue shows what runs, what waits, and when it is done.",
)
