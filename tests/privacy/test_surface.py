"""The public surface: small, sorted, and all there."""

import hubbub.privacy


def test_the_surface_is_sorted_and_complete() -> None:
    names = hubbub.privacy.__all__
    assert len(names) == len(set(names)) <= 24
    constants_first = sorted(names, key=lambda name: (name[0].islower(), name.lower()))
    assert names == constants_first
    for name in names:
        assert getattr(hubbub.privacy, name).__doc__
