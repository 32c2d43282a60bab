from tests.app.features.player.fixtures import empty, panel, speech  # noqa: F401
