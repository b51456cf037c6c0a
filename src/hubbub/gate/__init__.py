"""The gate: exact values are sealed, paid for, opened and measured here, and nowhere else."""
