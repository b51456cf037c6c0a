"""Engines, which read rows and add them up: each says our ops in its own language, in a process of its own."""
