"""Pictures of what was released. Importing this gives ``Release.plot`` and ``Answer.plot``; matplotlib comes later."""

from hubbub.query.answer import Answer
from hubbub.release import Release
from hubbub.report.answers import plot_answer
from hubbub.report.plot import plot_release

__all__ = ["plot_answer", "plot_release"]

Release.plotter = staticmethod(plot_release)
Answer.plotter = staticmethod(plot_answer)
