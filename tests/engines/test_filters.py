"""The filter of system calls says what its tables say, on every machine: its program is run here step by step."""

import errno
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.programs.sandboxed import calls, clocks, filters, tracing

ALLOWED, TRACED, REFUSED, UNKNOWN = 0x7FFF0000, 0x7FF00000, 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
LISTS = (calls.WITH_ROWS, calls.LOADING, calls.EXECUTING)
WORDS = st.sampled_from(
    [0, 1, 2, 3, 4, 26, 128, 129, 0x22, 0x5401, 0x1002, 1030, 1 << 32, (1 << 64) - 1]
) | st.integers(0, (1 << 64) - 1)


def decided(text: bytes, machine: int, number: int, arguments: list[int]) -> int:
    """What the kernel would do."""
    data = struct.pack("=IIQ6Q", number, machine, 0, *arguments)
    steps = list(struct.iter_unpack("=HBBI", text))
    held = at = 0
    while True:
        code, yes, no, value = steps[at]
        at += 1
        if code == 0x20:
            (held,) = struct.unpack_from("=I", data, value)
        elif code == 0x54:
            held &= value
        elif code == 0x06:
            return int(value)
        else:
            at += yes if (held == value if code == 0x15 else held >= value) else no


def expected(names: tuple[str, ...], machine: str, number: int, arguments: list[int]) -> int:
    """The same, read off the tables."""
    if number == calls.READY:
        return TRACED
    known = {of: name for name, of in calls.NUMBERS[machine].items()}
    name = known.get(number, "")
    if name in calls.ABSENT:
        return UNKNOWN
    halves = {
        rule: arguments[rule.argument] >> (32 if rule.high else 0) & 0xFFFFFFFF & rule.mask
        for rule in calls.RULES.get(name, ())
    }
    return ALLOWED if name in names and all(half in rule.values for rule, half in halves.items()) else REFUSED


@pytest.mark.parametrize("machine", calls.MACHINES)
@given(
    names=st.sampled_from(LISTS),
    number=st.integers(0, 500) | st.just(calls.READY),
    arguments=st.lists(WORDS, min_size=6, max_size=6),
)
def test_a_filter_is_its_table(machine: str, names: tuple[str, ...], number: int, arguments: list[int]) -> None:
    text = filters.assemble(names, machine=machine)
    assert decided(text, calls.MACHINES[machine], number, arguments) == expected(names, machine, number, arguments)


@pytest.mark.parametrize("machine", calls.MACHINES)
def test_other_ways_into_the_kernel_are_refused(machine: str) -> None:
    text = filters.assemble(calls.EXECUTING, machine=machine)
    other = next(code for name, code in calls.MACHINES.items() if name != machine)
    for foreign in (other, 0x40000003, 0):
        assert decided(text, foreign, calls.NUMBERS[machine]["read"], [0] * 6) == REFUSED
    assert decided(text, calls.MACHINES[machine], 0x40000000 | calls.NUMBERS[machine]["read"], [0] * 6) == REFUSED


@pytest.mark.parametrize(
    ("name", "arguments", "allowed"),
    [
        ("futex", [0, 128, 0, 0, 0, 0], True),
        ("futex", [0, 0, 0, 0, 0, 0], False),
        ("futex", [0, 128 + 9 + 256, 0, 0, 0, 0], True),
        ("fcntl", [3, 5, 0, 0, 0, 0], False),
        ("fcntl", [3, 1030, 0, 0, 0, 0], True),
        ("prlimit64", [0, 7, 0, 99, 0, 0], True),
        ("prlimit64", [1, 7, 0, 99, 0, 0], False),
        ("prlimit64", [0, 7, 1 << 32, 99, 0, 0], False),
        ("mmap", [0, 4096, 3, 0x22, -1 & 0xFFFFFFFF, 0], True),
        ("mmap", [0, 4096, 3, 0x21, -1 & 0xFFFFFFFF, 0], False),
        ("mmap", [0, 4096, 3, 0x23, -1 & 0xFFFFFFFF, 0], False),
        ("mmap", [0, 4096, 3, 0x40022, -1 & 0xFFFFFFFF, 0], False),
        ("prctl", [26, 2, 0, 0, 0, 0], True),
        ("prctl", [26, 1, 0, 0, 0, 0], False),
        ("prctl", [38, 2, 0, 0, 0, 0], False),
        ("seccomp", [1, 0, 0, 0, 0, 0], True),
        ("seccomp", [1, 8, 0, 0, 0, 0], False),
        ("execve", [0, 0, 0, 0, 0, 0], False),
    ],
)
@pytest.mark.parametrize("machine", calls.MACHINES)
def test_arguments_decide(machine: str, name: str, arguments: list[int], allowed: bool) -> None:
    text = filters.assemble(calls.LOADING, machine=machine)
    result = decided(text, calls.MACHINES[machine], calls.NUMBERS[machine][name], arguments)
    assert result == (ALLOWED if allowed else REFUSED)


def test_nothing_that_reaches_others_is_listed() -> None:
    for names in LISTS:
        assert len(set(names)) == len(names)
        assert all(any(name in numbers for numbers in calls.NUMBERS.values()) for name in names)
        assert not {"clone", "clone3", "fork", "kill", "socket", "flock", "clock_gettime", "getrusage"} & set(names)
    assert set(calls.RULES) <= set(calls.LOADING)


@pytest.mark.parametrize(
    ("machine", "header", "other"),
    [
        ("x86_64", "/usr/include/x86_64-linux-gnu/asm/unistd_64.h", {}),
        ("aarch64", "/usr/include/asm-generic/unistd.h", {"newfstatat": "3264_fstatat", "fcntl": "3264_fcntl"}),
    ],
)
def test_numbers_are_those_of_the_kernel(machine: str, header: str, other: dict[str, str]) -> None:
    if not Path(header).exists():
        pytest.skip(f"the kernel's header {header} is not installed")
    words = [line.split() for line in Path(header).read_text(encoding="utf-8").splitlines()]
    known = {parts[1]: parts[2] for parts in words if len(parts) == 3 and parts[0] == "#define"}
    for name, number in calls.NUMBERS[machine].items():
        spellings = (f"__NR_{other.get(name, name)}", f"__NR3264_{name}", f"__NR{other.get(name, '')}")
        assert str(number) in {known.get(spelling) for spelling in spellings}, name


def test_machines_have_all_tables() -> None:
    assert set(calls.MACHINES) == set(calls.NUMBERS) == set(tracing.MACHINES) == set(clocks.CODE)
    for machine, stubs in clocks.CODE.items():
        gettime = next(code for name, code in stubs.items() if name.endswith("clock_gettime"))
        assert len(gettime) <= clocks._BEHIND, machine
