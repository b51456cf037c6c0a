"""Pictures of what was released. Importing this gives their ``plot`` to releases, answers, publications and marginals;
matplotlib comes later."""

from hubbub.gate.release import Release
from hubbub.publish.marginals.marginal import Marginal
from hubbub.publish.release.published import Published
from hubbub.query.answer.answer import Answer
from hubbub.report.maps import write_map
from hubbub.report.pictures import plot_clusters, plot_marginal, plot_published
from hubbub.report.plot import plot_answer, plot_release

__all__ = ["plot_answer", "plot_clusters", "plot_marginal", "plot_published", "plot_release", "write_map"]

Release.plotter = staticmethod(plot_release)
Answer.plotter = staticmethod(plot_answer)
Marginal.plotter = staticmethod(plot_marginal)
Published.plotter = staticmethod(plot_published)
Published.mapper = staticmethod(write_map)
