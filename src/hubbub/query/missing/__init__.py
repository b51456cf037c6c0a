"""Facts that a question lacks, and how they are bought from the budget."""
