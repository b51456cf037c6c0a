"""Pictures of what was released. Importing this gives ``Release.plot``, ``Answer.plot`` and ``Published.plot``;
matplotlib comes later."""

from hubbub.publish.published import Published
from hubbub.query.answer import Answer
from hubbub.release import Release
from hubbub.report.answers import plot_answer
from hubbub.report.histograms import plot_published
from hubbub.report.plot import plot_release

__all__ = ["plot_answer", "plot_published", "plot_release"]

Release.plotter = staticmethod(plot_release)
Answer.plotter = staticmethod(plot_answer)
Published.plotter = staticmethod(plot_published)
