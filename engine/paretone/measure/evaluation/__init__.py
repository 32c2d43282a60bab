"""Speech judges with one interface, and published sentence lists."""
