"""The window: docks, menus, actions, notices and theme."""
