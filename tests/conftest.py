"""Settings that all tests share."""

from hypothesis import settings

# A deadline would be a timing assertion, which a busy machine fails for no fault of ours.
settings.register_profile("hubbub", deadline=None)
settings.load_profile("hubbub")
