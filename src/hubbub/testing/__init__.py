"""What tests of private systems need, for our own tests and for those of anyone who builds on Hubbub."""

from hubbub.testing.replay import Trace, differences, replayed, trace

__all__ = ["Trace", "differences", "replayed", "trace"]
