"""One specimen of every mechanism, for conformance tests, audits and documentation."""
