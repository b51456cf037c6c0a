"""The gate and the session as subjects of an audit."""
