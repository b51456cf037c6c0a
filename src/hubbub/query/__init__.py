"""Questions: from SQL to a closed set of operations on rows that each belong to one unit."""
