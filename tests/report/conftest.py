"""Pictures are made with matplotlib's own settings, whatever examples have set in this process."""

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def plain_pictures() -> Iterator[None]:
    try:
        import matplotlib
    except ImportError:
        yield
        return
    with matplotlib.rc_context(matplotlib.rcParamsDefault):
        yield
