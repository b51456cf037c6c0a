"""Private scikit-learn estimators, for people and not just rows."""

from hubbub.learn.bayes import GaussianNB
from hubbub.learn.categorical import CategoricalNB
from hubbub.learn.estimator import Claim
from hubbub.learn.kmeans import KMeans
from hubbub.learn.logistic import LogisticRegression
from hubbub.learn.oracle import Answer, StatisticalQueryOracle
from hubbub.learn.pca import PCA
from hubbub.learn.perceptron import Perceptron
from hubbub.learn.quantile import KBinsDiscretizer, QuantileTransformer
from hubbub.learn.regression import LinearRegression, Ridge
from hubbub.learn.scaler import StandardScaler
from hubbub.learn.svc import LinearSVC

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
