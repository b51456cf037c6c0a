"""Recipes: the data, the publication, its price and its outputs; read from TOML.

Every mistake is an error with the file, the line and the remedy, and every number is exact.
"""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from hubbub.errors import HubbubError, ParameterError, RecipeError
from hubbub.parameters import positive, rational, whole
from hubbub.policy.declared import suggestion
from hubbub.policy.files.toml_text import Lines, exact, header
from hubbub.publish import tags
from hubbub.publish.domain import Axis, Domain, bins
from hubbub.publish.marginals.cube_release import CubeRelease
from hubbub.publish.marginals.marginal_release import MarginalRelease
from hubbub.publish.marginals.marginals import Marginals
from hubbub.publish.marginals.table_strategy import Tables, by_marginals
from hubbub.publish.release.published import Published
from hubbub.publish.strategies.flat import Flat
from hubbub.publish.strategies.strategy import Strategy

TOP = (
    *("policy", "data", "table", "where", "epsilon", "delta", "cells", "each", "rows", "key"),
    *("over", "strategy", "compare", "after", "output"),
)
DATA = ("path", "unit", "budget", "budget_delta", "account", "version", "ledger", "max_groups", "max_rows")
AFTER = ("nonnegative", "total", "whole")
OUTPUT = ("json", "parquet", "report", "certificate")
RANGE, BINS = ("from", "to", "step"), ("low", "high", "bins")
_AT_LINE = re.compile(r"\s*\(at (?:line ([0-9]+), column [0-9]+|end of document)\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """All that it says; paths are absolute."""

    file: Path
    domain: Domain
    strategy: Strategy
    epsilon: Fraction
    delta: Fraction | None = None
    policy: Path | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    """In place of a policy: one file, whose its rows are, and the budget."""
    table: str | None = None
    where: str | None = None
    cells: int | None = None
    each: int | None = None
    rows: int | None = None
    key: str | None = None
    compare: tuple[Strategy, ...] = ()
    """What the error is compared with, before anything is spent."""
    nonnegative: bool = False
    total: Fraction | None = None
    whole: bool = False
    outputs: Mapping[str, Path] = field(default_factory=dict)

    @property
    def wish(self) -> dict[str, Any]:
        """The arguments of ``Database.publish`` and ``explain_publish``, the strategy left out."""
        names = ("epsilon", "delta", "table", "where", "cells", "each")
        more = {} if self.rows is None else {"rows": self.rows}
        return {"over": self.domain} | {name: getattr(self, name) for name in names} | more

    def after(self, published: Published | Tables) -> Published | Tables:
        """The release with the steps that the recipe asks for. They are free."""
        if isinstance(published, CubeRelease):
            return published
        if isinstance(published, MarginalRelease):
            known = published if self.total is None else published.with_total(self.total)
            return known.nonnegative() if self.nonnegative else known
        if self.nonnegative:
            published = published.nonnegative()
        if self.total is not None:
            published = published.with_total(self.total)
        return published.whole() if self.whole else published


def read_recipe(path: str | os.PathLike[str]) -> Recipe:
    """The recipe in a file."""
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise RecipeError(f"{file} is not UTF-8 text. Save it as UTF-8.", file=str(file)) from None
    except OSError as error:
        raise RecipeError(f"{file} cannot be read ({error.strerror}). Name a recipe.", file=str(file)) from None
    return parse_recipe(text, file=file)


def parse_recipe(text: str, *, file: str | os.PathLike[str]) -> Recipe:
    """The recipe in a text; its paths are relative to the folder of ``file``."""
    try:
        content = tomllib.loads(text, parse_float=exact)
    except (ValueError, RecursionError) as error:
        said = str(error) if isinstance(error, tomllib.TOMLDecodeError) else "A number or a nesting is too large"
        place = _AT_LINE.search(said)
        number = int(place[1]) if place and place[1] else text.count("\n") + 1
        sentence = _AT_LINE.sub("", said).rstrip(".")
        raise RecipeError(f"{Path(file)}, line {number}: not TOML: {sentence}.", file=str(file), line=number) from None
    return _RecipeReader(Path(file), Lines(text)).recipe(content)


class _RecipeReader:
    """Reads one parsed file, and knows where in it everything stands."""

    def __init__(self, file: Path, lines: Lines) -> None:
        self._file, self._lines = file, lines

    def recipe(self, content: Mapping[str, Any]) -> Recipe:
        """The whole of it."""
        self._only(content, TOP)
        after = self._section(content, "after", AFTER)
        output = self._section(content, "output", OUTPUT)
        with self._at("policy"):
            if ("policy" in content) is ("data" in content):
                raise RecipeError('A recipe says policy = "hubbub.toml", or [data] with path, unit and budget.')
        with self._at("epsilon"):
            if "epsilon" not in content:
                raise RecipeError("The recipe does not say its price. Add a line: epsilon = …")
            epsilon = positive("epsilon", content["epsilon"])
        with self._at("delta"):
            delta = None if "delta" not in content else rational("delta", content["delta"])
        made = {name: self._of(content, name, str) for name in ("table", "where", "key")}
        limits = {name: self._limit(content, name) for name in ("cells", "each", "rows")}
        with self._at("after", "total"):
            total = None if "total" not in after else rational("total", after["total"])
        strategy = self._strategy(content.get("strategy", {"name": "flat"}), "strategy")
        if by_marginals(strategy):
            self._of_marginals(strategy, content)
        return Recipe(
            file=self._file,
            domain=self._domain(content),
            strategy=strategy,
            epsilon=epsilon,
            delta=delta,
            policy=None if "policy" not in content else self._path(self._of(content, "policy", str)),
            data=self._data(content),
            compare=self._read_compared(content) or (() if by_marginals(strategy) else (Flat(),)),
            nonnegative=bool(self._of(after, "nonnegative", bool, "after")),
            total=total,
            whole=bool(self._of(after, "whole", bool, "after")),
            outputs={name: self._path(self._of(output, name, str, "output")) for name in output},
            **made,
            **limits,  # type: ignore[arg-type]
        )

    def _data(self, content: Mapping[str, Any]) -> dict[str, Any]:
        found = dict(self._section(content, "data", DATA))
        if not found:
            return found
        for needed in ("path", "unit"):
            with self._at("data", needed):
                if not isinstance(found.get(needed), str):
                    raise RecipeError(f"[data] does not say {needed}. Add a line: {needed} = …")
        for name in ("budget", "budget_delta"):
            with self._at("data", name):
                if name in found:
                    found[name] = rational(name, found[name])
        found["path"] = str(self._path(found["path"]))
        if isinstance(found.get("ledger"), str) and "://" not in found["ledger"]:
            found["ledger"] = str(self._path(found["ledger"]))
        return found

    def _domain(self, content: Mapping[str, Any]) -> Domain:
        over = self._section(content, "over")
        with self._at("over"):
            if not over:
                raise RecipeError("The recipe does not say what the cells are. Add a section [over].")
        axes = []
        for name, said in over.items():
            with self._at("over", name):
                axes.append(_axis(name, said))
        return Domain(axes=tuple(axes))

    def _strategy(self, said: Any, *place: str) -> Strategy:
        with self._at(*place):
            if isinstance(said, str):
                said = {"name": said}
            if not isinstance(said, dict) or not isinstance(said.get("name"), str):
                known = ", ".join(sorted(tags.strategies()))
                raise RecipeError(f'A strategy has a name = "…", one of {known}, and its parameters.')
            told = {tags.TAG: said["name"]} | {name: value for name, value in said.items() if name != "name"}
            return tags.from_json(told)

    def _read_compared(self, content: Mapping[str, Any]) -> tuple[Strategy, ...]:
        said = content.get("compare", [])
        with self._at("compare"):
            if not isinstance(said, list):
                raise RecipeError('compare is a list of strategies: compare = ["flat", "hierarchy"].')
        return tuple(self._strategy(one, "compare") for one in said)

    def _of_marginals(self, strategy: Strategy, content: Mapping[str, Any]) -> None:
        """Refuse settings that apply to cells and not to marginals of them, before anything is paid."""
        steps = ("whole",) if isinstance(strategy, Marginals) else AFTER
        for section, names in (("after", steps), ("output", ("parquet",))):
            said = self._section(content, section)
            for name in names:
                with self._at(section, name):
                    if said.get(name):
                        raise RecipeError(
                            f"[{section}] {name} is for cells, and {strategy.name} publishes none. Leave it out."
                        )

    def _path(self, said: str) -> Path:
        return Path(os.path.abspath(self._file.parent / said))

    def _of(self, content: Mapping[str, Any], name: str, kind: type, *above: str) -> Any:
        with self._at(*above, name):
            if name in content and type(content[name]) is not kind:
                raise ParameterError(name, "a text" if kind is str else "true or false", content[name])
        return content.get(name)

    def _limit(self, content: Mapping[str, Any], name: str) -> int | None:
        with self._at(name):
            return None if name not in content else whole(name, content[name], least=1)

    def _section(
        self, content: Mapping[str, Any], name: str, known: tuple[str, ...] | None = None
    ) -> Mapping[str, Any]:
        found = content.get(name, {})
        with self._at(name):
            if not isinstance(found, dict):
                raise RecipeError(f"{name} must be a table: [{name}].")
        if known is not None:
            self._only(found, known, name)
        return found

    def _only(self, content: Mapping[str, Any], known: tuple[str, ...], *above: str) -> None:
        for key in content:
            with self._at(*above, key):
                if key not in known:
                    where = header(*above) if above else "A recipe"
                    raise RecipeError(f"{where} has no key {key}.{suggestion(key, known)}")

    @contextmanager
    def _at(self, *path: str) -> Iterator[None]:
        """Errors inside are about this place, or about the part of it that they name."""
        try:
            yield
        except HubbubError as error:
            part = str(error.operands.get("name", "")).partition(" ")[0]
            line = self._lines.of(*path, part)
            told = error.operands | {"file": str(self._file), "line": line}
            raise RecipeError(f"{self._file}, line {line}: {error.message}", **told) from None


def _axis(name: str, said: Any) -> Axis:
    """A list of values, whole numbers from one to another, or bins of a column of reals."""
    if isinstance(said, list):
        return Axis(name=name, labels=said)
    if isinstance(said, dict) and {"from", "to"} <= said.keys() <= set(RANGE):
        step = whole("step", said.get("step", 1), least=1)
        first, last = (_integer(end, said[end]) for end in ("from", "to"))
        return Axis(name=name, labels=range(first, last + 1, step))
    if isinstance(said, dict) and said.keys() == set(BINS):
        return Axis(name=name, labels=bins(rational("low", said["low"]), rational("high", said["high"]), said["bins"]))
    raise RecipeError(
        f"{name} is a list of values, {{ from = 0, to = 109 }} for whole numbers (both ends have a cell), or "
        "{ low = 0, high = 500, bins = 20 } for reals."
    )


def _integer(name: str, said: Any) -> int:
    if type(said) is not int:
        raise ParameterError(name, "a whole number", said)
    return said
