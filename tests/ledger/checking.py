"""What must be true of a ledger at every moment, recomputed from its entries alone and compared with what it says.

Nothing here uses the table of effects: a mistake there must not hide itself.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hubbub.ledger import Entry, Ledger
from hubbub.ledger.entry import GENESIS, chain_hash
from hubbub.ledger.verify.verify import verify
from hubbub.privacy.filter import FamilyFilter

Balance = list[int]
"""Loss, failure mass and number of charges."""


@dataclass(kw_only=True)
class Findings:
    """What was found; ``problems`` must stay empty."""

    charges: int = 0
    entries: int = 0
    balances: dict[str, Balance] = field(default_factory=dict)
    """By account, kind and name."""
    problems: list[str] = field(default_factory=list)


_NO_EPSILON = 1 << 70


def _epsilon_of(pure: int | None) -> int:
    """Units of ε, where none at all is more than any."""
    return _NO_EPSILON if pure is None else pure


@dataclass(kw_only=True)
class _Books:
    """What the entries say."""

    balances: dict[str, Balance] = field(default_factory=lambda: defaultdict(lambda: [0, 0, 0, 0]))
    uses: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How often each key was given to a request."""
    charge_of: dict[tuple[str, str], int] = field(default_factory=dict)
    answers: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    charges: set[int] = field(default_factory=set)

    def take(self, entry: Entry) -> None:
        """One entry."""
        content = entry.content
        if entry.kind in ("charge", "share"):
            for kind, name in content["holders"]:
                balance = self.balances[f"{content['account']}/{kind}/{name}"]
                balance[0] += content["loss"]
                balance[1] += content["failure"]
                balance[2] += 1
                balance[3] = min(_NO_EPSILON, balance[3] + _epsilon_of(content["pure"]))
        if entry.kind in ("charge", "serve"):
            whose = content["principal"], content["key"]
            self.uses[whose] += 1
            self.charge_of[whose] = entry.seq if entry.kind == "charge" else content["charge"]
        if entry.kind == "charge":
            self.charges.add(entry.seq)
        if entry.kind == "answer":
            self.answers[content["charge"]].append(content["answer"])


def lines_of(log: Path) -> list[dict[str, Any]]:
    """What was seen outside of the ledger: each line was written before the next step was taken."""
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def findings(ledger: Ledger, seen: Iterable[Mapping[str, Any]] = ()) -> Findings:
    """Every invariant, for a ledger in which nothing is renewed."""
    found, books = Findings(), _Books()
    previous = GENESIS
    for entry in ledger.entries():
        found.entries += 1
        if entry.seq != found.entries:
            found.problems.append(f"entry {found.entries} is missing")
        if chain_hash(previous, seq=entry.seq, time=entry.time, kind=entry.kind, body=entry.body) != entry.hash:
            found.problems.append(f"entry {entry.seq} is not chained to the one before it")
        previous = entry.hash
        books.take(entry)
    found.charges = len(books.charges)
    found.problems += _verified(ledger)
    found.problems += _balanced(ledger, books, found)
    found.problems += [f"key {key} was used {times} times" for key, times in books.uses.items() if times > 1]
    found.problems += [f"charge {seq} has {len(of)} answers" for seq, of in books.answers.items() if len(of) > 1]
    found.problems += [f"an answer to entry {seq}, no charge" for seq in books.answers if seq not in books.charges]
    found.problems += _kept(books, seen)
    return found


def lent(before: Mapping[str, Balance], after: Mapping[str, Balance]) -> list[str]:
    """Nothing is ever refunded: no balance goes down, whatever happens in between."""
    return [
        f"{who} had spent {spent}, and now {after.get(who)}"
        for who, spent in before.items()
        if who not in after or any(now < then for then, now in zip(spent, after[who], strict=True))
    ]


def _verified(ledger: Ledger) -> list[str]:
    try:
        verify(ledger)
    except Exception as problem:
        return [f"verify: {problem}"]
    return []


def _balanced(ledger: Ledger, books: _Books, found: Findings) -> Iterable[str]:
    for statement in ledger.statements():
        who = f"{statement.account}/{statement.kind}/{statement.name}"
        spent, terms = statement.spent, statement.budget.filter
        found.balances[who] = [spent.loss, spent.failure, spent.charges, _epsilon_of(spent.pure)]
        by_epsilon = isinstance(terms, FamilyFilter) and _epsilon_of(spent.pure) <= terms.pure_cap
        if (spent.loss > terms.loss_cap and not by_epsilon) or spent.failure > terms.failure_cap:
            yield f"{who} is over its cap by {spent.loss - terms.loss_cap} and {spent.failure - terms.failure_cap}"
        if found.balances[who] != books.balances[who]:
            yield f"{who} has spent {books.balances[who]}, but its balance says {found.balances[who]}"


def _kept(books: _Books, seen: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    """What somebody has seen stays true: payments that returned, and answers that were given."""
    replies: dict[tuple[str, str], set[str]] = defaultdict(set)
    for line in seen:
        whose = line["principal"], line["key"]
        paid = books.charge_of.get(whose)
        match line["saw"]:
            case "paid" if paid != line["entry"]:
                yield f"key {whose} was paid for by entry {line['entry']}, and the ledger says {paid}"
            case "read" if paid is None:
                yield f"the data were read for key {whose}, and nobody has paid"
            case "reply":
                replies[whose].add(line["text"])
                if paid is None or books.answers.get(paid) != [line["text"]]:
                    yield f"key {whose} got {line['text']!r}, which the ledger does not have"
            case "refused" if paid is not None:
                yield f"key {whose} was refused, and charged"
            case "error":
                yield f"key {whose}: {line['text']}"
    yield from (f"key {whose} got {len(texts)} answers" for whose, texts in replies.items() if len(texts) > 1)
