"""Groups: speech tokens that sound alike, the largest groups first, with playback."""

from PySide6.QtWidgets import QWidget

from paretone.techniques.token_groups.groups import Groups
from paretone_app.numbers import counted, grouped
from paretone_app.shell.theme import GAP
from paretone_app.widgets import build
from paretone_app.widgets.action import Action, ActionButton
from paretone_app.widgets.invitation import Invited
from paretone_app.widgets.layouts import VBoxLayout
from paretone_app.widgets.panel_parts import TextsTable

LISTED = 500
_COLUMNS = (("Tokens", "Number of tokens in the group"), ("Members", "Ids of the tokens, counted from 0"))


class GroupsPanel(QWidget):
    """Table of the groups; plays the chosen group's tokens one after another."""

    def __init__(self, search: Action, play: Action, save_sound: Action, save: Action) -> None:
        super().__init__()
        self._groups: Groups | None = None
        self.search, self.play, self.save_sound, self.save = search, play, save_sound, save
        for action in (play, save_sound):
            action.explain(lambda: "" if self.members else "Choose a group in the table first.")
        search.changed.connect(self._show)
        self.headline = build.words("title", name="Summary")
        buttons = map(ActionButton, (play, save_sound, save))
        top = build.row((self.headline, 1), ActionButton(search, look="primary"), *buttons)
        self.table = TextsTable("Groups of tokens, the largest first", _COLUMNS, numbers=range(1))
        self.table.setSelectionMode(TextsTable.SelectionMode.SingleSelection)
        self.table.itemActivated.connect(play.trigger)
        self.table.itemSelectionChanged.connect(self._chosen)
        self.pages = Invited(build.column(top, (self.table, 1)))
        self.pages.offer(search)
        build.fill(VBoxLayout(self), [self.pages], (GAP,) * 4)
        self.setFocusProxy(self.table)
        self._show()

    def set_groups(self, groups: Groups | None) -> None:
        if groups != self._groups:
            self._groups = groups
            listed = () if groups is None else groups.by_size[:LISTED]
            self.table.show_rows([(str(len(members)), ", ".join(map(str, members))) for members in listed])
            if listed:
                self.table.selectRow(0)
            self._show()

    @property
    def members(self) -> tuple[int, ...]:
        row = self.table.currentRow()
        return () if self._groups is None or row < 0 else self._groups.by_size[row]

    def _show(self) -> None:
        groups = self._groups
        self.pages.show_content(groups is not None)
        if groups is None:
            self.pages.invite(
                self.search.reason or "Press Find groups to group the model's tokens by the knobs in Setup."
            )
        else:
            alone = groups.codes - groups.grouped
            more = len(groups.members) - LISTED
            listed = f"; the {LISTED} largest are listed" if more > 0 else ""
            self.headline.setText(
                f"{counted(len(groups.members), 'group', 'groups')} of several tokens; {grouped(alone)} of "
                f"{counted(groups.codes, 'token', 'tokens')} by themselves{listed}"
            )
        self._chosen()

    def _chosen(self) -> None:
        self.play.refresh()
        self.save_sound.refresh()
