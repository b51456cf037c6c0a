"""Sample-and-aggregate: run any program on blocks of units, each in a sandbox of its own."""
