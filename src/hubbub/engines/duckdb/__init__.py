"""DuckDB: statements run in processes that can read declared files and do nothing else."""
