"""Events: frozen, versioned records of what running a mechanism once has cost."""
