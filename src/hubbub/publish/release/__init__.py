"""Published releases: estimates with their errors, as objects, text, files and data frames."""
