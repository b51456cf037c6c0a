"""What the owner declares: whose the rows are, what the columns hold, what is public, and how much may be learnt.

``tables`` holds the declarations and ``kinds`` the types of values; ``read`` takes them from ``hubbub.toml``, ``build``
from a source's own schema and keyword arguments; ``write`` drafts a file for the owner, and ``check`` compares what was
declared with the data, for the owner's eyes.
"""
