"""The policy as a file: read hubbub.toml, draft one, and name the line of every mistake."""
