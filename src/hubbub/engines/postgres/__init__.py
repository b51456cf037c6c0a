"""PostgreSQL as a source, and as an engine: its catalogue, its roles and what is read of it."""
