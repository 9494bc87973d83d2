"""Linear discriminant analysis in the style of scikit-learn, from a release."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from gramercy.estimators.discriminant import Discriminant
from gramercy.estimators.estimator import Estimator
from gramercy.estimators.own_evidence import of_classes
from gramercy.estimators.scikit.fitted import evidence_in, name_columns
from gramercy.schemas.column import features
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import LevelsFacts

Array = NDArray[np.float64]


class DiscriminantClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """`estimators.discriminant.Discriminant`: which class a row is of.

    Parameters
    ----------
    classes
        The release's column of classes; default: its only column of levels. Not used for rows.
    precision, penalty, prior
        See `estimators.discriminant.Discriminant`.

    Attributes
    ----------
    classes_
        Those that stand out of the noise, shape (K,).
    coef_, intercept_
        Shapes (K, p) and (K,), in the units of the table's columns. Only differences between
        classes count. For two classes too there are two rows.
    estimate_, tuning_, n_samples_, n_features_in_, feature_names_in_
        See `estimators.scikit.fitted.MatrixEstimator`; features are all columns but the classes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramercy.estimators.scikit import DiscriminantClassifier
    >>> rows, species = load_iris(return_X_y=True)  # public rows; a release does as well
    >>> bool(DiscriminantClassifier().fit(rows, species).score(rows, species) > 0.95)
    True
    """

    spec: ClassVar[type[Estimator]] = Discriminant

    def __init__(
        self,
        classes: str | None = None,
        precision: Literal["ridge", "graphical-lasso"] = "ridge",
        penalty: Literal["auto"] | float = "auto",
        prior: Literal["shares", "equal"] = "shares",
    ) -> None:
        self.classes = classes
        self.precision = precision
        self.penalty = penalty
        self.prior = prior

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit a release or its evidence; or rows that are not private, with the class of each.

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
        known, codes = np.unique(labels, return_inverse=True)
        if len(known) < 2:
            raise ValueError("the rows are all of one class; it takes two")
        names = tuple(getattr(self, "feature_names_in_", ()))
        evidence = of_classes(rows, codes, len(known), names=names)
        return self._fit(evidence, self.get_params() | {"classes": None}, known)

    def _fit(self, evidence: Evidence, settings: dict[str, Any], known: Any) -> Self:
        found = self.spec(**settings).fit(evidence)
        table = found.tables["coefficients"]
        classes = table["class"].to_numpy()
        self.classes_ = classes if known is None else known[classes.astype(np.intp)]
        self.intercept_ = table["constant"].to_numpy()
        self.coef_ = table.iloc[:, 2:].to_numpy()
        self.estimate_, self.tuning_ = found, dict(found.tuning)
        self.n_samples_ = evidence.rows
        self._levels: dict[str, tuple[str, str | float]] = {}
        self._released = known is None
        if known is None:
            name_columns(self, self.coef_.shape[1], found.tables["precision"]["feature"].tolist())
            for facts in {f for f in evidence.columns if isinstance(f, LevelsFacts)}:
                called = features(facts.name, facts.levels)
                self._levels |= {
                    c: (facts.name, x) for c, x in zip(called, facts.levels, strict=True)
                }
        return self

    def decision_function(self, X: Any) -> Array:
        """Scores of the classes, shape (n, K); of two, that of the second less that of the first.

        Parameters
        ----------
        X
            Rows, shape (n, p), in the units of the table's columns. Of a table like the released
            one only the columns that matter are taken, its categories as they are.
        """
        scores = self._scores(X)
        found: Array = scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores
        return found

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row, shape (n,); see `decision_function`."""
        scores = self._scores(X)
        found: NDArray[Any] = self.classes_[scores.argmax(axis=1)]
        return found

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the probabilities of the classes, shape (n, K), were all rows Gaussian."""
        found: Array = log_softmax(self._scores(X), axis=1)
        return found

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, shape (n, K), were all rows Gaussian."""
        found: Array = np.exp(self.predict_log_proba(X))
        return found

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self)
        rows = validate_data(self, self._features(X), reset=False, dtype=np.float64)
        found: Array = rows @ self.coef_.T + self.intercept_
        return found

    def _features(self, X: Any) -> Any:
        """The features of a table that is like the released one."""
        if not (self._released and hasattr(X, "columns") and hasattr(X, "assign")):
            return X
        missing = [f for f in self.feature_names_in_ if f not in X.columns and f in self._levels]
        found = X.assign(
            **{
                f: (X[self._levels[f][0]] == self._levels[f][1]).astype(float)
                for f in missing
                if self._levels[f][0] in X.columns
            }
        )
        return found[[f for f in self.feature_names_in_ if f in found.columns]]
