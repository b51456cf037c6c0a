"""The statistics that estimators are computed from, over arrays and in engines."""
