"""Let released objects be drawn by a layer above them, which is loaded when the first picture is asked for.

``hubbub.report`` draws releases, answers and publications, and imports all of them; none of them may import it. So it
registers its functions in class attributes, and ``hubbub`` says here how to load it.
"""

from collections.abc import Callable
from typing import Any

from hubbub.errors import HubbubError

_loaders: list[Callable[[], object]] = []


def load_with(loader: Callable[[], object]) -> None:
    """Remember what to call before the first picture is drawn."""
    _loaders[:] = [loader]


def find_drawer(kind: type, attribute: str, *, missing: str = "plots") -> Callable[..., Any]:
    """Return the function that is registered on a class, after loading what registers it."""
    if getattr(kind, attribute) is None:
        for loader in _loaders:
            loader()
    drawer: Callable[..., Any] | None = getattr(kind, attribute)
    if drawer is None:
        raise HubbubError(f"No {missing} are registered. Import hubbub.report, or hubbub itself, first.")
    return drawer
