"""The owner's declarations: the privacy unit of the rows, the contents of the columns, public values, and the budget.

``tables`` holds the declarations and ``kinds`` the types of values; ``read`` takes them from ``hubbub.toml``, ``build``
from a source's own schema and keyword arguments; ``write`` drafts a file for the owner, and ``check`` compares what was
declared with the data, for the owner's eyes.
"""
