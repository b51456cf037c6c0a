"""Subjects that an audit can be pointed at by name."""
