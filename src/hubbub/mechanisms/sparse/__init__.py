"""The sparse vector technique, and counts over domains that are almost empty."""
