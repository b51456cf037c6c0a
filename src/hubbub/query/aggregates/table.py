"""All aggregates, in the order in which refusals list them. To add one, write its file and add its line here."""

from sqlglot import exp

from hubbub.query.aggregates.average import AVG
from hubbub.query.aggregates.boolean import BOOL_AND, BOOL_OR
from hubbub.query.aggregates.count import COUNT_IF, DISTINCT, ROWS, UNITS, VALUES
from hubbub.query.aggregates.covariance import CORR, COVAR_POP, COVAR_SAMP, REGR_INTERCEPT, REGR_SLOPE
from hubbub.query.aggregates.extremes import MAX, MIN
from hubbub.query.aggregates.function import AggregateFunction
from hubbub.query.aggregates.geometric_mean import GEOMETRIC_MEAN
from hubbub.query.aggregates.histogram import HISTOGRAM
from hubbub.query.aggregates.mode import MODE
from hubbub.query.aggregates.quantile import QUANTILE_CONT, QUANTILE_DISC
from hubbub.query.aggregates.quantile_interval import QUANTILE_INTERVAL
from hubbub.query.aggregates.sum import SUM
from hubbub.query.aggregates.top_values import TOP
from hubbub.query.aggregates.variance import STDDEV_POP, STDDEV_SAMP, VAR_POP, VAR_SAMP
from hubbub.query.aggregates.weighted_average import WEIGHTED_AVG

FUNCTIONS: tuple[AggregateFunction, ...] = (
    *(ROWS, VALUES, UNITS, DISTINCT, COUNT_IF),
    SUM,
    AVG,
    *(VAR_POP, VAR_SAMP, STDDEV_POP, STDDEV_SAMP),
    *(COVAR_POP, COVAR_SAMP, CORR, REGR_SLOPE, REGR_INTERCEPT),
    *(MIN, MAX),
    *(QUANTILE_CONT, QUANTILE_DISC),
    QUANTILE_INTERVAL,
    MODE,
    TOP,
    HISTOGRAM,
    GEOMETRIC_MEAN,
    WEIGHTED_AVG,
    *(BOOL_AND, BOOL_OR),
)
TITLES = ", ".join(title for function in FUNCTIONS for title in function.titles)
_BY_NODE = {node: function for function in FUNCTIONS for node in function.nodes}


def find_function(node: exp.Expr) -> AggregateFunction | None:
    """Return the aggregate that reads a call, if there is one."""
    return _BY_NODE.get(type(node))
