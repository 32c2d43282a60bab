"""Token groups on the command line."""
