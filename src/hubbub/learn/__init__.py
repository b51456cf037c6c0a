"""Private scikit-learn estimators, for people and not just rows."""

from hubbub.errors import MissingExtra

try:
    import sklearn  # noqa: F401
except ImportError as missing:
    raise MissingExtra("scikit-learn", "learn") from missing

from hubbub.learn.bayes.bayes import GaussianNB
from hubbub.learn.bayes.categorical import CategoricalNB
from hubbub.learn.estimator import FitClaim as Claim
from hubbub.learn.kmeans.kmeans import KMeans
from hubbub.learn.linear.classifiers import LinearSVC, LogisticRegression, Perceptron
from hubbub.learn.linear.regression import LinearRegression, Ridge
from hubbub.learn.oracle import OracleAnswer as Answer
from hubbub.learn.oracle import StatisticalQueryOracle
from hubbub.learn.pca import PCA
from hubbub.learn.quantile_transformer import KBinsDiscretizer, QuantileTransformer
from hubbub.learn.scaler import StandardScaler

__all__ = [
    "PCA",
    "Answer",
    "CategoricalNB",
    "Claim",
    "GaussianNB",
    "KBinsDiscretizer",
    "KMeans",
    "LinearRegression",
    "LinearSVC",
    "LogisticRegression",
    "Perceptron",
    "QuantileTransformer",
    "Ridge",
    "StandardScaler",
    "StatisticalQueryOracle",
]
