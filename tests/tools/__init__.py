"""Tools of those who work on Paretone, run from the repository's root as ``python -m tests.tools.NAME``: ``endurance``
(hours in the real window), ``pictures`` (of the window, for the guides), ``many_takes`` (the list of takes, timed) and
``simulated_listeners`` (the table of the listening tests). They are no part of the installed packages."""
