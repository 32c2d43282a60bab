from tests.app.features.player.host import empty, panel, speech  # noqa: F401
