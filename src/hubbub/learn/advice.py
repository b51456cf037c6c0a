"""Warnings for whoever learns: of fits no better than chance, paid for again and again, or behind what is not private.

All of it follows from parameters, from what was released, and from who called; no row is looked at for it.
"""

import functools
import sys
import warnings
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from hubbub.errors import LearningWarning

_REPEATS = (
    "sklearn.model_selection", "sklearn.ensemble", "sklearn.multiclass", "sklearn.multioutput", "sklearn.calibration",
    "sklearn.feature_selection",
)  # fmt: skip
"""What fits copies of an estimator, several times."""

_IGNORED = frozenset({"copy", "copy_X", "copy_x", "n_jobs", "verbose", "warm_start"})
"""scikit-learn's parameters that change no result here: how fast, how loud, where copies lie."""

_EXPLAINED = {
    "max_iter": "the number of rounds is public and fixed (rounds, where there are any)",
    "tol": "when to stop would be a question about the rows",
    "n_init": "the best of several starts would be paid for several times",
    "penalty": "the penalty is a ridge (C, alpha)",
    "class_weight": "a weight for each class would be a sensitivity of its own",
    "n_samples": "how many rows there are is private",
    "subsample": "every row counts",
    "svd_solver": "there is one solver, of the noisy matrix",
    "whiten": "components are returned as they are",
    "init": "where to start is public",
    "priors": "priors are noisy shares of the classes",
    "var_smoothing": "variances are smoothed by the noise that they have",
}


def warn_of_useless(what: str, claim: str) -> None:
    """Warn that a fit is no better than chance, as its own claim says."""
    warnings.warn(
        f"This {what} may be no better than chance: {claim} Learn from more rows, fewer columns, tighter bounds, or "
        "with a greater ε.",
        LearningWarning,
        stacklevel=2,
    )


def warn_of_callers(price: str) -> None:
    """Warn where scikit-learn fits this as one of many, or has fitted something public on the same rows before it."""
    for frame in _frames():
        name = str(frame.f_globals.get("__name__", ""))
        if name.startswith(_REPEATS):
            warnings.warn(
                f"{'.'.join(name.split('.')[:2])} fits this several times, and each of them pays {price}: n fits cost "
                "n times as much. Scores on private rows are not private. Choose parameters on public or made-up rows.",
                LearningWarning,
                stacklevel=2,
            )
            return
        if name.startswith("sklearn.pipeline"):
            public = sorted({type(one).__name__ for one in _steps(frame.f_locals.get("self"))})
            if public:
                warnings.warn(
                    f"{', '.join(public)} of this pipeline learns from the rows without privacy, and shows what it "
                    "learned. Use those of hubbub.learn, or fit them on public rows first.",
                    LearningWarning,
                    stacklevel=2,
                )
                return


def _frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _steps(holder: Any) -> Iterator[Any]:
    """Yield the transformers in front of an estimator that learn, and are not ours."""
    from hubbub.learn.estimator import Private

    steps = getattr(holder, "steps", None) or getattr(holder, "transformers", None) or []
    last = len(steps) - 1 if hasattr(holder, "steps") else len(steps)
    for place, step in enumerate(steps):
        one = step[1]
        if isinstance(one, str) or one is None or isinstance(one, Private):
            continue
        if hasattr(one, "steps") or hasattr(one, "transformers") or hasattr(one, "transformer_list"):
            yield from _steps(one)
        elif place < last and _learns(one):
            yield one


def _learns(transformer: Any) -> bool:
    from sklearn.utils import get_tags

    return bool(get_tags(transformer).requires_fit)


def explain_parameters(init: Callable[..., None]) -> Callable[..., None]:
    """Let ``__init__`` ignore parameters of scikit-learn that change nothing, and explain others that it lacks."""
    code = init.__code__
    known = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]

    @functools.wraps(init)
    def explained(self: Any, *given: Any, **named: Any) -> None:
        name = type(self).__name__
        for unknown in [one for one in named if one not in known]:
            if unknown in _IGNORED:
                del named[unknown]
                warnings.warn(f"{name} ignores {unknown}: it changes nothing here.", LearningWarning, stacklevel=2)
                continue
            why = f": {_EXPLAINED[unknown]}" if unknown in _EXPLAINED else ""
            raise TypeError(f"{name} has no parameter {unknown}{why}. It has: {', '.join(known)}.")
        init(self, *given, **named)

    return explained
