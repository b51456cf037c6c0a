"""Where rows are read and added up: each engine says our ops in its own language, in a process of its own."""
