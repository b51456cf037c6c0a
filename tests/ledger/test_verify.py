"""``verify`` finds every entry that should not be there, and every balance that the entries do not make."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hubbub.errors import LedgerCorrupt
from hubbub.ledger import Ledger, Marks
from hubbub.ledger.stores.sqlite import SqliteStore
from hubbub.ledger.stores.store import DERIVED
from hubbub.ledger.verify.verify import Verified, verify_store
from tests.ledger import sample
from tests.ledger.sample import Clock, Draft, damage, fill, forged, question


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample.sample(tmp_path_factory.mktemp("sample") / "ledger.db")


def checked(path: Path) -> Verified:
    return verify_store(SqliteStore(path))


def refused(path: Path) -> LedgerCorrupt:
    with pytest.raises(LedgerCorrupt) as caught:
        checked(path)
    return caught.value


def test_a_sound_ledger_is_verified_on_each_store(location: str | Path, open_ledger: Callable[..., Ledger]) -> None:
    clock = Clock()
    ledger = open_ledger(location, clock=clock)
    fill(ledger, clock)
    told: list[tuple[int, int]] = []
    found = ledger.verify(progress=lambda done, total: told.append((done, total)))
    last = list(ledger.entries())[-1]
    assert found == Verified(entries=sample.ENTRIES, accounts=2, hash=last.hash)
    assert told[-1] == (sample.ENTRIES, sample.ENTRIES)


def test_the_sample_has_its_entries_where_it_says(original: Path) -> None:
    with Ledger(original, marks=Marks(original.parent / "other-state"), writes=False) as ledger:
        kinds = {entry.seq: entry.kind for entry in ledger.entries()}
    assert {kinds[seq] for seq in (sample.FIRST, sample.SECOND, sample.PAID, sample.RENEWED, sample.PENDING)} == {
        "charge"
    }
    assert [kinds[seq] for seq in (sample.ANSWER, sample.SHARE, sample.SERVE, sample.PUBLISH, sample.FACT)] == [
        *("answer", "share", "serve", "publish", "fact")
    ]
    assert [kinds[seq] for seq in (sample.PROJECT, sample.GRANT, sample.RENEWAL, sample.REVOKE)] == [
        *("project", "grant", "renewal", "revoke")
    ]
    assert [kinds[seq] for seq in (sample.FAILURE, sample.THAW, sample.FAILED)] == ["failure", "thaw", "failure"]


def test_a_forgery_that_changes_nothing_is_sound(original: Path, tmp_path: Path) -> None:
    forged(original, tmp_path / "same.db", lambda drafts: None)
    assert checked(tmp_path / "same.db") == checked(original)


def content(seq: int, **changes: Any) -> Callable[[list[Draft]], None]:
    def change(drafts: list[Draft]) -> None:
        drafts[seq - 1].content |= changes

    return change


def halved(drafts: list[Draft]) -> None:
    drafts[sample.FIRST - 1].content["loss"] //= 2


def without_failure(drafts: list[Draft]) -> None:
    drafts[sample.SECOND - 1].content["failure"] = 0


def smaller_account(drafts: list[Draft]) -> None:
    """So that the first charge of half a budget fits, and the second in the same period does not."""
    drafts[sample.RENEWAL - 1 : sample.RENEWAL] = []
    drafts[sample.STAFF_ACCOUNT - 1].content["terms"]["epsilon"] = "3/4"


def inserted(kind: str, after: int, **fields: Any) -> Callable[[list[Draft]], None]:
    def change(drafts: list[Draft]) -> None:
        drafts.insert(after, Draft(drafts[after - 1].time, kind, fields))

    return change


def again(seq: int, **changes: Any) -> Callable[[list[Draft]], None]:
    """The same entry once more, at the end."""

    def change(drafts: list[Draft]) -> None:
        drafts.append(Draft(drafts[-1].time, drafts[seq - 1].kind, drafts[seq - 1].content | changes))

    return change


def frozen(change: Callable[[list[Draft]], None]) -> Callable[[list[Draft]], None]:
    """After two more failures ann has had three."""

    def changes(drafts: list[Draft]) -> None:
        again(sample.FAILED)(drafts)
        again(sample.FAILED)(drafts)
        change(drafts)

    return changes


def back_in_time(drafts: list[Draft]) -> None:
    drafts[sample.SERVE - 1].time -= 10**6


def expired(drafts: list[Draft]) -> None:
    drafts[sample.BOB - 1].content["expires"] = drafts[sample.SHARE - 1].time


def wider_terms(seq: int, **terms: Any) -> Callable[[list[Draft]], None]:
    def change(drafts: list[Draft]) -> None:
        drafts[seq - 1].content["terms"] |= terms

    return change


END = sample.ENTRIES + 1
FORGERIES: dict[str, tuple[Callable[[list[Draft]], None], int, str]] = {
    "a halved loss": (halved, sample.FIRST, "its events cost"),
    "a loss too great": (content(sample.FIRST, loss=1 << 40), sample.FIRST, "its events cost"),
    "a failure mass left out": (without_failure, sample.SECOND, "its events cost"),
    "events that are unknown": (content(sample.FIRST, events=[{"event": "x", "version": 1}]), sample.FIRST, "no event"),
    "a cap passed": (smaller_account, sample.RENEWED - 1, "cap of the account"),
    "a limit left out": (
        content(sample.FIRST, holders=[["account", ""], ["project", "study"]]),
        sample.FIRST,
        "everyone",
    ),
    "a project left out": (
        content(sample.FIRST, holders=[["account", ""], ["principal", "ann"]]),
        sample.FIRST,
        "every",
    ),
    "the account left out": (content(sample.FIRST, holders=[["principal", "ann"]]), sample.FIRST, "everyone"),
    "another project": (content(sample.FIRST, project=None), sample.FIRST, "another project"),
    "nobody's grant": (content(sample.FIRST, principal="carl"), sample.FIRST, "no grant"),
    "an expired grant": (expired, sample.SHARE, "no grant"),
    "a revoked grant": (again(sample.FIRST, principal="bob", project=None, key="x"), END, "no grant"),
    "an unknown account": (content(sample.FIRST, account="x"), sample.FIRST, "never opened"),
    "an account opened twice": (again(sample.ACCOUNT), END, "opened before"),
    "a second beginning": (again(1), END, "second time"),
    "a second answer": (again(sample.ANSWER), END, "second answer"),
    "an answer to no charge": (content(sample.ANSWER, charge=sample.BOB), sample.ANSWER, "not an earlier charge"),
    "an answer to the future": (content(sample.ANSWER, charge=sample.SECOND), sample.ANSWER, "not an earlier charge"),
    "an answer to entry True": (content(sample.ANSWER, charge=True), sample.ANSWER, "not an earlier charge"),
    "an answer to entry -1": (content(sample.ANSWER, charge=-1), sample.ANSWER, "not an earlier charge"),
    "a cheaper share": (content(sample.SHARE, loss=1), sample.SHARE, "another amount"),
    "a share for nobody": (content(sample.SHARE, holders=[]), sample.SHARE, "everyone"),
    "a share of no answer": (content(sample.SHARE, charge=sample.BOB), sample.SHARE, "not an earlier charge"),
    "a share on another account": (content(sample.SHARE, account="staff"), sample.SHARE, "another account"),
    "a share of what one has": (again(sample.SHARE, principal="ann", project="study"), END, "who has it"),
    "a key used twice": (again(sample.FIRST, question="other"), END, "makes no sense"),
    "served unpaid": (content(sample.SERVE, charge=sample.FIRST, principal="carl"), sample.SERVE, "no grant"),
    "published unanswered": (content(sample.PUBLISH, charge=sample.FIRST - 1), sample.PUBLISH, "not an earlier charge"),
    "published too early": (again(sample.PUBLISH, charge=sample.PENDING), END, "which had none"),
    "shared too early": (again(sample.SHARE, charge=sample.PENDING, project="study"), END, "no grant"),
    "shared unanswered": (
        again(sample.SHARE, charge=sample.PENDING, principal="ann", project="study"),
        END,
        "which had none",
    ),
    "served without paying": (
        inserted("serve", sample.SECOND, charge=sample.SECOND, principal="bob", key="z", request="r"),
        sample.SECOND + 1,
        "has not paid",
    ),
    "a project's cap passed": (wider_terms(sample.PROJECT, epsilon="1/1000"), sample.FIRST, "cap of the project"),
    "a principal's cap passed": (wider_terms(sample.GRANT, epsilon="1/1000"), sample.FIRST, "cap of the principal"),
    "a sharer's cap passed": (wider_terms(sample.BOB, epsilon="1/1000"), sample.SHARE, "cap of the principal"),
    "the failure pool passed": (wider_terms(sample.ACCOUNT, delta="1/1000000000000"), sample.SECOND, "cap of the acc"),
    "a fact nobody paid": (content(sample.FACT, paid=1), sample.FACT, "not an earlier charge"),
    "a fact of another account": (content(sample.FACT, account="staff"), sample.FACT, "another account"),
    "renewed too early": (content(sample.RENEWAL, period=2), sample.RENEWAL, "before its time"),
    "renewed into the past": (content(sample.RENEWAL, period=0), sample.RENEWAL, "before its time"),
    "renewed without terms": (wider_terms(sample.STAFF_ACCOUNT, renewal_days=None), sample.RENEWAL, "not renewed"),
    "renewed for nobody": (content(sample.RENEWAL, name="x"), sample.RENEWAL, "never opened"),
    "a limit counted otherwise": (wider_terms(sample.GRANT, delta="0/1"), sample.GRANT, "not counted like"),
    "a grant to the owner": (content(sample.GRANT, principal="owner"), sample.GRANT, "needs no grant"),
    "a grant for no project": (content(sample.GRANT, project="x"), sample.GRANT, "never opened"),
    "nothing to revoke": (content(sample.REVOKE, principal="x"), sample.REVOKE, "no grant to revoke"),
    "a failure of no charge": (content(sample.FAILURE, charge=sample.BOB), sample.FAILURE, "not an earlier charge"),
    "another's failure": (content(sample.FAILURE, principal="bob"), sample.FAILURE, "another account or principal"),
    "a failure elsewhere": (content(sample.FAILURE, account="staff"), sample.FAILURE, "another account or principal"),
    "a failure of what was answered": (content(sample.FAILURE, charge=sample.FIRST), sample.FAILURE, "had its answer"),
    "a failure of what is public": (again(sample.FAILURE, charge=sample.FIRST), END, "had its answer"),
    "nothing to thaw": (content(sample.THAW, principal="bob"), sample.THAW, "no failure"),
    "thawed elsewhere": (content(sample.THAW, account="staff"), sample.THAW, "no failure"),
    "thawed twice": (inserted("thaw", sample.THAW, account="people", principal="ann"), sample.THAW + 1, "no failure"),
    "a charge while frozen": (frozen(again(sample.PENDING, key="x")), END + 2, "was frozen"),
    "an answer while frozen": (frozen(again(sample.ANSWER, charge=sample.PENDING)), END + 2, "was frozen"),
    "served while frozen": (frozen(again(sample.SERVE, principal="ann", key="x")), END + 2, "was frozen"),
    "shared while frozen": (frozen(again(sample.SHARE, principal="ann", project="study")), END + 2, "was frozen"),
    "a fourth failure": (frozen(again(sample.FAILED)), END + 2, "was frozen"),
    "an unknown kind": (inserted("gift", 5, account="people"), 6, "makes no sense"),
    "a false adoption": (inserted("adopt", 5, seq=4, head="0" * 64), 6, "adopts another"),
    "back in time": (back_in_time, sample.SERVE, "older than"),
    "another ledger's name": (content(1, ledger="x"), 1, "another ledger"),
    "a body without fields": (inserted("charge", 5), 6, "makes no sense"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_entry_in_a_perfect_chain_is_named(name: str, original: Path, tmp_path: Path) -> None:
    change, entry, words = FORGERIES[name]
    problem = refused(forged(original, tmp_path / "forged.db", change))
    assert problem.operands["entry"] == entry, problem
    assert words in problem.message


def test_three_failures_are_allowed_and_a_thaw_allows_three_more(original: Path, tmp_path: Path) -> None:
    def change(drafts: list[Draft]) -> None:
        again(sample.THAW)(drafts)
        for _ in range(3):
            again(sample.FAILED)(drafts)

    assert checked(forged(original, tmp_path / "more.db", frozen(change))).entries == sample.ENTRIES + 6


DAMAGES: dict[str, tuple[str, int]] = {
    "a changed body": ("UPDATE entries SET body = replace(body, 'how many', 'how manY') WHERE seq = 7", 7),
    "a changed time": ("UPDATE entries SET time = time + 1 WHERE seq = 7", 7),
    "a changed kind": ("UPDATE entries SET kind = 'share' WHERE seq = 7", 7),
    "a changed hash": ("UPDATE entries SET hash = substr(hash, 2) || substr(hash, 1, 1) WHERE seq = 7", 7),
    "a missing entry": ("DELETE FROM entries WHERE seq = 7", 7),
    "a missing end": ("DELETE FROM entries WHERE seq > 15", 16),
    "an entry beyond the end": ("INSERT INTO entries VALUES (40, 0, 'gift', '{}', '')", 40),
    "an entry before the beginning": ("INSERT INTO entries VALUES (0, 0, 'gift', '{}', '')", 0),
    "a head of another time": ("UPDATE head SET time = time + 1", sample.ENTRIES),
    "a head of another hash": ("UPDATE head SET hash = '0'", sample.ENTRIES),
    "a head too far": ("UPDATE head SET seq = seq + 1", sample.ENTRIES + 1),
    "a body that is no text": ("UPDATE entries SET body = x'ff' WHERE seq = 7", 7),
    "a text that is not UTF-8": ("UPDATE entries SET body = CAST(x'ff' AS TEXT) WHERE seq = 7", 7),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_to_the_chain_is_named(name: str, original: Path, tmp_path: Path) -> None:
    statement, entry = DAMAGES[name]
    path = forged(original, tmp_path / "damaged.db", lambda drafts: None)
    damage(path, statement)
    assert refused(path).operands["entry"] == entry


def test_of_two_damaged_entries_the_first_is_named(original: Path, tmp_path: Path) -> None:
    path = forged(original, tmp_path / "damaged.db", lambda drafts: None)
    damage(path, "UPDATE entries SET time = time - 1 WHERE seq IN (12, 9, 15)")
    assert refused(path).operands["entry"] == 9


BALANCES = {
    "less spent": ("UPDATE holders SET loss = loss - 1 WHERE account = 'people' AND kind = 'account'", "holders"),
    "a lost holder": ("DELETE FROM holders WHERE kind = 'project'", "holders"),
    "a longer grant": ("UPDATE grants SET expires = NULL, revoked = 0 WHERE principal = 'bob'", "grants"),
    "a made-up grant": ("INSERT INTO grants VALUES ('people', 'eve', NULL, NULL, 0, 2, '')", "grants"),
    "another question": ("UPDATE charges SET question = 'x' WHERE seq = 7", "charges"),
    "an answer forgotten": ("UPDATE charges SET answer = NULL WHERE seq = 7", "charges"),
    "made public": ("UPDATE charges SET public = 1 WHERE seq = 12", "charges"),
    "a lost key": ("DELETE FROM keys WHERE key = 'one'", "keys"),
    "a made-up holding": ("INSERT INTO holdings VALUES (12, 'bob', NULL)", "holdings"),
    "a lost fact": ("DELETE FROM facts", "facts"),
    "a failure forgiven": ("UPDATE failures SET many = 0", "failures"),
    "failures forgotten": ("DELETE FROM failures", "failures"),
}


@pytest.mark.parametrize("name", BALANCES)
def test_a_balance_that_the_entries_do_not_make_is_found(name: str, original: Path, tmp_path: Path) -> None:
    statement, table = BALANCES[name]
    path = forged(original, tmp_path / "damaged.db", lambda drafts: None)
    damage(path, statement)
    problem = refused(path)
    assert problem.operands["table"] == table
    assert f"table of {table}" in problem.message


def test_every_derived_table_is_compared() -> None:
    assert {table for _, table in BALANCES.values()} == set(DERIVED)


def test_what_is_written_meanwhile_is_verified_too(location: str | Path, open_ledger: Callable[..., Ledger]) -> None:
    clock = Clock()
    ledger = open_ledger(location, clock=clock)
    fill(ledger, clock)
    written: list[int] = []

    def write(done: int, total: int) -> None:
        if not written:
            written.append(ledger.reserve(question("meanwhile")).entry)

    assert ledger.verify(progress=write).entries == written[0] == sample.ENTRIES + 1


def test_more_entries_than_one_page_are_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = sample.sample(tmp_path / "ledger.db")
    for size in (1, 2, 5, sample.ENTRIES):
        monkeypatch.setattr("hubbub.ledger.verify.verify._PAGE", size)
        assert checked(path).entries == sample.ENTRIES
    damage(path, "DELETE FROM entries WHERE seq = 11")
    for size in (1, 2, 5, sample.ENTRIES):
        monkeypatch.setattr("hubbub.ledger.verify.verify._PAGE", size)
        assert refused(path).operands["entry"] == 11
