"""Questions that are written in Python, as data frames write them."""
