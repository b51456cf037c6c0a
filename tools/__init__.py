"""What the project runs on itself; nothing here is shipped."""
