"""Pictures of releases. Importing this gives ``Release.plot``; matplotlib is imported when a picture is drawn."""

from hubbub.release import Release
from hubbub.report.plot import plot_release

__all__ = ["plot_release"]

Release.plotter = staticmethod(plot_release)
