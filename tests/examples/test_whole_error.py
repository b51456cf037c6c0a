"""The pictures of the whole error, on a smaller hospital."""

from pathlib import Path

import pytest

from examples import whole_error


def test_both_pictures_are_drawn_and_advice_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    made = whole_error.main(stays=4000, folder=tmp_path / "hospital", out=tmp_path)
    assert [path.name for path in made] == ["whole_error.png", "limits.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in made)
    assert "max_total_rows = " in capsys.readouterr().out
