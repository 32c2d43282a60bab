"""Groups: speech tokens that sound alike, in which drafts are accepted."""

from paretone.models.base import LANGUAGE
from paretone_app.features.feature import Feature
from paretone_app.shell.entries import Place, Region

FEATURE = Feature(
    "groups",
    "paretone_app.features.groups.presenter:GroupsPresenter",
    (Place("groups", "Groups", Region.CENTRE, (LANGUAGE,)),),
    technique="token_groups",
    keys=(("hear the chosen group", "Return"),),
    about="Many speech tokens sound nearly alike. Groups finds them in the model's tables and plays the tokens of a "
    "group one after another; drafts can then be accepted group by group.",
)
