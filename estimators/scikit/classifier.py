"""Linear discriminant analysis in the style of scikit-learn, from a release."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from gramercy.estimators.discriminant import Discriminant
from gramercy.estimators.estimator import Estimator
from gramercy.estimators.scikit.matrix_estimators import evidence_in, init_of, name_columns
from gramercy.estimators.user_evidence import evidence_from_classes
from gramercy.schemas import families
from gramercy.schemas.column import matrix_columns
from gramercy.schemas.errors import InvalidValue
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import LevelsFacts
from gramercy.schemas.model import parse

Array = NDArray[np.float64]


class DiscriminantClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """`estimators.discriminant.Discriminant`: classifies rows.

    Parameters
    ----------
    classes
        The release's column of classes; default: its only column of levels. Not used for rows.
    precision, penalty, prior
        See `estimators.discriminant.Discriminant`.

    Attributes
    ----------
    classes_
        The classes that are above the noise, shape (K,).
    coef_, intercept_
        Shapes (K, p) and (K,), in the units of the table's columns. Only differences between
        classes have a meaning. Two classes have two rows, too.
    estimate_, tuning_, n_samples_, n_features_in_, feature_names_in_
        As in `MatrixEstimator`; features are all columns except the classes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramercy.estimators.scikit import DiscriminantClassifier
    >>> rows, species = load_iris(return_X_y=True)  # public rows; fit(release) works, too
    >>> bool(DiscriminantClassifier().fit(rows, species).score(rows, species) > 0.95)
    True
    """

    spec: ClassVar[type[Estimator]] = Discriminant
    __init__ = init_of(Discriminant)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit to a release or its evidence; or to rows that are not private, and their classes.

        Parameters
        ----------
        X
            An opened release, an `Evidence`, or rows, shape (n, p).
        y
            For rows: the class of each, shape (n,).

        Raises
        ------
        RequestError
            See `estimators.discriminant.Discriminant.fit`.
        ValueError
            If the settings, the rows or their classes cannot be used.
        """
        evidence = evidence_in(X)
        if evidence is not None:
            return self._fit(evidence, self.get_params(), None)
        rows, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        classes, codes = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            raise families.MATRIX("All rows are of one class.", "Pass rows of two classes or more.")
        names = tuple(getattr(self, "feature_names_in_", ()))
        evidence = evidence_from_classes(rows, codes, len(classes), names=names)
        return self._fit(evidence, self.get_params() | {"classes": None}, classes)

    def _fit(self, evidence: Evidence, settings: dict[str, Any], classes: Any) -> Self:
        estimate = parse(self.spec, settings, type(self).__name__, InvalidValue).fit(evidence)
        table = estimate.tables["coefficients"]
        codes = table["class"].to_numpy()
        self.classes_ = codes if classes is None else classes[codes.astype(np.intp)]
        self.intercept_ = table["constant"].to_numpy()
        self.coef_ = table.iloc[:, 2:].to_numpy()
        self.estimate_, self.tuning_ = estimate, dict(estimate.tuning)
        self.n_samples_ = evidence.rows
        self._levels: dict[str, tuple[str, str | float]] = {}
        self._released = classes is None
        if classes is None:
            name_columns(
                self, self.coef_.shape[1], estimate.tables["precision"]["feature"].tolist()
            )
            for facts in {f for f in evidence.columns if isinstance(f, LevelsFacts)}:
                called = matrix_columns(facts.name, facts.levels)
                self._levels |= {
                    c: (facts.name, x) for c, x in zip(called, facts.levels, strict=True)
                }
        return self

    def decision_function(self, X: Any) -> Array:
        """Scores of the classes, shape (n, K); for two classes, their difference, shape (n,).

        Parameters
        ----------
        X
            Rows, shape (n, p), in the units of the table's columns. A DataFrame may have the
            columns of the released table; categories need no encoding.
        """
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row, shape (n,); see `decision_function`."""
        scores = self._scores(X)
        predicted: NDArray[Any] = self.classes_[scores.argmax(axis=1)]
        return predicted

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the class probabilities under Gaussian rows, shape (n, K)."""
        log_proba: Array = log_softmax(self._scores(X), axis=1)
        return log_proba

    def predict_proba(self, X: Any) -> Array:
        """Class probabilities under Gaussian rows, shape (n, K)."""
        return np.exp(self.predict_log_proba(X))

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self)
        rows = validate_data(self, self._features(X), reset=False, dtype=np.float64)
        scores: Array = rows @ self.coef_.T + self.intercept_
        return scores

    def _features(self, X: Any) -> Any:
        """The features, if this is a table with the columns of the released one."""
        if not (self._released and hasattr(X, "columns") and hasattr(X, "assign")):
            return X
        missing = [f for f in self.feature_names_in_ if f not in X.columns and f in self._levels]
        table = X.assign(
            **{
                f: (X[self._levels[f][0]] == self._levels[f][1]).astype(float)
                for f in missing
                if self._levels[f][0] in X.columns
            }
        )
        return table[[f for f in self.feature_names_in_ if f in table.columns]]
