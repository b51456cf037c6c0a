"""Programs to run and read: the demo, and the figures of the lectures redrawn."""
