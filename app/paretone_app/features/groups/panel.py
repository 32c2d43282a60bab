"""Groups: speech tokens that sound alike, the largest groups first, and what they sound like.

The panel knows neither the application's state nor the engine: methods in, signals out.
"""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableWidget, QTableWidgetItem, QWidget

from paretone.techniques.token_groups.groups import Groups
from paretone_app.numbers import counted, grouped
from paretone_app.shell.colours import Colours
from paretone_app.widgets import build, sketching
from paretone_app.widgets.invitation import Invited
from paretone_app.widgets.layouts import HBoxLayout, VBoxLayout

LISTED = 500
"""Groups that are listed, from the largest."""
_COLUMNS = (
    ("Tokens", "Number of tokens in the group"),
    ("Members", "Ids of the tokens, counted from 0"),
)


class GroupsPanel(QWidget):
    """The groups in a table; what is chosen there is heard, its tokens one after another."""

    search_wanted = Signal()
    """The user wants groups for the knobs in Setup."""
    hear_wanted = Signal(object)
    """The user wants to hear these ids."""
    keep_wanted = Signal()
    """The user wants the groups as a file."""
    sound_wanted = Signal(object)
    """The user wants the sound of these ids as a file."""

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._groups: Groups | None = None
        self._reasons = ("", "")
        self._build()
        self.set_colours(colours)
        self._show()

    def _build(self) -> None:
        self.headline = build.words("title", name="Summary")
        self.search_button = build.button("Find &groups", self.search_wanted, look="primary")
        self.hear_button = build.button("&Play group", self._hear)
        self.sound_button = build.button("Save soun&d…", lambda: self.sound_wanted.emit(self.members))
        self.keep_button = build.button("Save &groups…", self.keep_wanted)
        top = HBoxLayout()
        top.addWidget(self.headline, 1)
        for one in (self.search_button, self.hear_button, self.sound_button, self.keep_button):
            top.addWidget(one)
        self.table = build.named(QTableWidget(0, len(_COLUMNS)), "Groups of tokens, the largest first")
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.table.setTabKeyNavigation(False)
        self.table.verticalHeader().hide()
        for number, (title, meaning) in enumerate(_COLUMNS):
            head = QTableWidgetItem(title)
            head.setToolTip(meaning)
            self.table.setHorizontalHeaderItem(number, head)
        header = self.table.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setStretchLastSection(True)
        self.table.itemActivated.connect(self._hear)
        self.table.itemSelectionChanged.connect(self._show_buttons)
        self.pages = Invited(build.column(top, (self.table, 1)), sketch=sketching.rows((0.1, 0.6)))
        self.pages.offer(self.search_button)
        outer = VBoxLayout(self)
        outer.addWidget(self.pages)
        self.setFocusProxy(self.table)

    # --- Methods in --------------------------------------------------------------------------------------------------
    def set_groups(self, groups: Groups | None) -> None:
        """Show these groups; ``None`` if there are none for what is selected."""
        if groups == self._groups:
            return
        self._groups = groups
        listed = () if groups is None else groups.by_size[:LISTED]
        self.table.setRowCount(len(listed))
        for row, members in enumerate(listed):
            size = QTableWidgetItem(str(len(members)))
            size.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            ids = QTableWidgetItem(", ".join(map(str, members)))
            ids.setToolTip(ids.text())
            self.table.setItem(row, 0, size)
            self.table.setItem(row, 1, ids)
        if listed:
            self.table.selectRow(0)
        self._show()

    def set_reasons(self, search: str, hear: str) -> None:
        """Why no groups can be found, and why none can be heard, as sentences, or ``""``."""
        self._reasons = (search, hear)
        self._show()

    def set_colours(self, colours: Colours) -> None:
        """Follow the theme: nothing here has its own colours."""

    @property
    def members(self) -> tuple[int, ...]:
        """Ids of the chosen group."""
        row = self.table.currentRow()
        return () if self._groups is None or row < 0 else self._groups.by_size[row]

    # --- Showing -----------------------------------------------------------------------------------------------------
    def _show(self) -> None:
        groups = self._groups
        self.pages.show_content(groups is not None)
        if groups is None:
            self.pages.invite(
                self._reasons[0] or "Press Find groups to group the model's tokens by the knobs in Setup."
            )
        else:
            alone = groups.codes - groups.grouped
            more = len(groups.members) - LISTED
            listed = f"; the {LISTED} largest are listed" if more > 0 else ""
            self.headline.setText(
                f"{counted(len(groups.members), 'group', 'groups')} of several tokens; {grouped(alone)} of "
                f"{counted(groups.codes, 'token', 'tokens')} by themselves{listed}"
            )
        self._show_buttons()

    def _show_buttons(self) -> None:
        search, hear = self._reasons
        none = "" if self.members else "Choose a group in the table first."
        build.allow(self.search_button, search, "Group the tokens of the loaded model by the knobs in Setup")
        build.allow(self.hear_button, hear or none, "Hear the group's tokens one after another, each for 0.4 s")
        build.allow(self.sound_button, hear or none, "Save that sound as a WAV file")
        build.allow(self.keep_button, "" if self._groups else "There are no groups yet.", "Save as JSON, for --groups")

    def _hear(self) -> None:
        if self.members and self.hear_button.isEnabled():
            self.hear_wanted.emit(self.members)
