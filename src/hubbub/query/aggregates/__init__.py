"""The aggregates of a question: what each one measures, and how its value is computed from noise."""
