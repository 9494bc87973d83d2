"""Analyses of a release: what its matrix holds beyond correlations, at no further privacy cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, Never

from gramercy.api.habits import HABITS, estimator_name, refuse_arguments
from gramercy.api.matrices import ReleaseMatrices
from gramercy.common.similar_names import most_similar_first
from gramercy.schemas import families, wordings
from gramercy.schemas.column import level_names
from gramercy.schemas.errors import RequestError
from gramercy.schemas.model import parse

if TYPE_CHECKING:
    import pandas as pd

    from gramercy.api.comparison import Comparison
    from gramercy.api.components import ComponentsResult
    from gramercy.api.factors import FactorAnalysisResult, ReliabilityResult
    from gramercy.api.graph_difference import GraphDifference
    from gramercy.api.regression import RegressionResult
    from gramercy.api.tables import CrossTable, Description
    from gramercy.estimators import Estimate
    from gramercy.estimators.scikit import DiscriminantClassifier, MatrixEstimator
    from gramercy.estimators.uncertainty.entry_estimates import Target
    from gramercy.schemas.evidence import Evidence

_OWN_CALLS = {  # estimators of requests and the command line that are methods in Python
    "intervals": ".correlation.interval() or .covariance.interval()",
    "regression": ".regression('y ~ a + b')",
    "pca": ".pca()",
    "factors": ".factor_analysis()",
    "reliability": ".reliability(COLUMNS)",
    "tables": ".crosstab('COLUMN')",
    "moments": ".describe()",
    "synthetic": ".synthesize()",
    "quadratic-discriminant": ".groups.classifier()",
    "joint-graphical-lasso": ".groups.graphs()",
    "pool": "gramercy.pool([release, other])",
    "difference": ".graph_difference(other) or .groups.graph_difference('A', 'B')",
}


class ReleaseAnalyses(ReleaseMatrices):
    """Regression, components, tables and synthetic rows, each from the published numbers alone."""

    def estimate(self, name: str, **settings: Any) -> MatrixEstimator | DiscriminantClassifier:
        """Compute an estimate; post-processing, which costs no privacy.

        Parameters
        ----------
        name
            Name of an estimator, such as ``graphical-lasso`` or ``glasso``: see docs/estimators.md.
        **settings
            Settings of the estimator, such as ``penalty``.

        Returns
        -------
        MatrixEstimator or DiscriminantClassifier
            Fitted, in the style of scikit-learn: see `estimators.scikit`.

        Raises
        ------
        RequestError
            If the estimator or a setting is unknown, or cannot be used with this release.

        Examples
        --------
        >>> import gramercy
        >>> fitted = gramercy.open(archive).latest("toy").estimate("graphical-lasso", penalty=0.1)
        >>> fitted.precision_.shape, list(fitted.to_networkx())
        ((3, 3), ['c0', 'c1', 'c2'])
        """
        from gramercy.estimators.scikit import by_name  # imports scikit-learn

        name = estimator_name(name)
        if name in _OWN_CALLS:
            raise families.ESTIMATE(
                "The estimator '{estimator}' is not available in .estimate().",
                "Use {call}.",
                estimator=name,
                call=_OWN_CALLS[name],
            )
        instead = HABITS.get(name.replace("-", "_"))
        if name not in by_name and instead is not None:
            raise families.ESTIMATE(
                "'{name}' is not the name of an estimator.", "{instead}", name=name, instead=instead
            )
        if name not in by_name:
            raise families.ESTIMATE(
                "'{name}' is not the name of an estimator.",
                "Known: {known}.",
                name=name,
                known=most_similar_first(name, [*by_name, *_OWN_CALLS]),
            )
        if "group" in settings:
            raise families.ESTIMATE(
                "'group' is not a setting of .estimate().",
                "Use .groups['{group}'].estimate('{estimator}').",
                estimator=name,
                group=str(settings["group"]),
            )
        parse(by_name[name].spec, {"name": name, **settings}, f"estimate '{name}'", RequestError)
        return by_name[name](**settings).fit(self)

    def regression(
        self,
        formula: str | None = None,
        *,
        outcome: str | None = None,
        predictors: Sequence[str] | None = None,
        selection: Literal["lasso"] | None = None,
        cov_type: str | None = None,
        level: float = 0.95,
        **other: Never,
    ) -> RegressionResult:
        """Linear regression in the columns' own units, with errors by noise and sampling.

        Parameters
        ----------
        formula
            Such as ``y ~ a + b``; ``y ~ .`` for all other columns, ``y ~ . - c`` for all but one.
            Functions and products, such as ``log1p(a)``, ``a:b`` or ``I(a > 1000)``, are columns
            that the release derives so; ``.`` leaves them out if it has their inputs.
            ``C(a, Treatment("B"))`` compares levels with B, which need not be the first one.
        outcome, predictors
            Names of columns instead of a formula; all other columns are the default predictors.
        selection
            ``lasso``: predict by those predictors that a lasso selects. Intervals do not change.
        cov_type
            ``nonrobust`` for errors that assume residuals of one variance; ``HC0`` to ``HC3``, or
            ``jackknife``, for robust ones, which are those of a jackknife over the folds of the
            release. By default, robust ones if it has folds.
        level
            Confidence level of the intervals.
        **other
            None: arguments of other packages, such as ``family``, are refused in one sentence.

        Raises
        ------
        RequestError
            If the formula is invalid, or names a column, a product or a function that is not
            released; if the release has no intercept or has unit rows; or no folds for robust
            errors.
        """
        from gramercy.api.regression import RegressionResult, of_errors
        from gramercy.estimators.regression import LinearRegression

        refuse_arguments("regression", other)
        self._needs_second_moment()
        settings = {
            "formula": formula,
            "outcome": outcome,
            "predictors": None if predictors is None else tuple(predictors),
            "level": level,
            "selection": selection,
        }
        spec = parse(LinearRegression, settings, "regression", RequestError)
        evidence = self.evidence if cov_type is None else of_errors(self.evidence, cov_type)
        with self._grouped_by_another():
            return RegressionResult(evidence, spec)

    def pca(
        self,
        n_components: int | None = None,
        scale: Literal["correlation", "covariance"] = "correlation",
        columns: Sequence[str] | None = None,
        level: float = 0.95,
    ) -> ComponentsResult:
        """Principal components, and which of them are above the noise.

        Parameters
        ----------
        n_components
            Number of components; by default those above the noise. Others are given as unknown.
        scale
            ``correlation`` for columns divided by their standard deviations, ``covariance`` for
            columns in their own units.
        columns
            Names of columns; all numeric ones by default.
        level
            Confidence level of the intervals.

        Raises
        ------
        RequestError
            If the release has no such columns or so many components, or is not a second moment.
        """
        from gramercy.api.components import ComponentsResult

        self._warn_or_own_units()
        chosen = None if columns is None else tuple(columns)
        settings = {"scale": scale, "columns": chosen, "level": level}
        estimate = analysis("pca", settings, self.evidence)
        return ComponentsResult(estimate, self.evidence, n_components)

    def factor_analysis(
        self,
        n_factors: int | None = None,
        rotation: Literal["varimax", "promax", "oblimin"] | None = "varimax",
        columns: Sequence[str] | None = None,
        level: float = 0.95,
    ) -> FactorAnalysisResult:
        """Factor analysis by maximum likelihood of the correlations, with intervals.

        Parameters
        ----------
        n_factors
            Number of factors; by default that of parallel analysis.
        rotation
            ``varimax`` for uncorrelated factors, ``promax`` or ``oblimin`` for correlated ones;
            None for no rotation.
        columns
            Names of columns; all numeric ones by default.
        level
            Confidence level of the intervals.

        Raises
        ------
        RequestError
            If the release has no such columns, these do not determine so many factors, or it is
            not a second moment.
        """
        from gramercy.api.factors import FactorAnalysisResult

        self._warn_or_own_units()
        settings = {
            "n_factors": n_factors,
            "rotation": "none" if rotation is None else rotation,
            "columns": None if columns is None else tuple(columns),
            "level": level,
        }
        estimate = analysis("factors", settings, self.evidence)
        return FactorAnalysisResult(estimate, self.evidence, self.id)

    def reliability(
        self, columns: Sequence[str], reverse: Sequence[str] = (), level: float = 0.95
    ) -> ReliabilityResult:
        """Cronbach's alpha and McDonald's omega of the sum of items, with intervals.

        Parameters
        ----------
        columns
            Names of the items: at least three numeric columns.
        reverse
            Those of them that are keyed in reverse: the sum has their negatives.
        level
            Confidence level of the intervals.

        Raises
        ------
        RequestError
            If the release has no such columns or no means of them, or noise hides the variance of
            one.
        """
        from gramercy.api.factors import ReliabilityResult

        self._needs_second_moment()
        settings = {"columns": tuple(columns), "reverse": tuple(reverse), "level": level}
        return ReliabilityResult(analysis("reliability", settings, self.evidence))

    def crosstab(
        self, rows: str, columns: str | None = None, level: float = 0.95, **other: Never
    ) -> CrossTable:
        """Counts of two columns of levels, or of one, with intervals.

        Parameters
        ----------
        rows, columns
            Names of columns of levels.
        level
            Confidence level of the intervals.
        **other
            None: those of pandas, such as ``margins``, are refused in one sentence.

        Raises
        ------
        RequestError
            If a column is not one of levels, or the release has no intercept or has unit rows.
        """
        from gramercy.api.tables import CrossTable

        refuse_arguments("crosstab", other)
        self._needs_second_moment()
        settings = {"rows": rows, "columns": columns, "level": level}
        with self._grouped_by_another():
            return CrossTable(analysis("tables", settings, self.evidence))

    def describe(
        self, by: str | None = None, level: float = 0.95, target: Target = "population"
    ) -> Description:
        """Means, standard deviations, quantiles and shares of all columns, with intervals.

        Parameters
        ----------
        by
            Name of a column of levels: then also the means within each of its levels.
        level
            Confidence level of the intervals.
        target
            Whose means and standard deviations the intervals contain: ``population`` or ``table``,
            see `WithErrors.interval`.

        Raises
        ------
        RequestError
            If `by` is not a column of levels, or the release has no intercept or has unit rows.
        """
        from gramercy.api.tables import Description

        self._needs_second_moment()
        settings = {"by": by, "level": level, "target": target}
        with self._grouped_by_another():
            return Description(analysis("moments", settings, self.evidence))

    def compare(self, other: ReleaseAnalyses, level: float = 0.95) -> Comparison:
        """Compare means, standard deviations and correlations with those of another release.

        Constants and noise may differ. The tables are taken to have different rows, such as those
        of two months: for two releases of the same rows the errors are too large. Of a cumulative
        series, two windows without a common step are compared, with the joint law of their noise:
        ``later.last(13).compare(earlier.last(13))``.

        Parameters
        ----------
        other
            An opened release, a group or a pool; a number that it lacks is unknown.
        level
            Confidence level of the intervals.

        Raises
        ------
        RequestError
            If one of the two is not a second moment, `level` is out of range, or one is a step of a
            cumulative series and the other may have some of its rows.
        """
        from gramercy.api.comparison import Comparison
        from gramercy.estimators.series_steps import check_disjoint

        if not isinstance(other, ReleaseAnalyses):
            raise wordings.not_a_release(type(other).__name__)
        for each in (self, other):
            each._warn_or_own_units()
        check_disjoint((self.id, self._manifests), (other.id, other._manifests))
        return Comparison(self.id, other.id, (self.evidence, other.evidence), level)

    def graph_difference(self, other: ReleaseAnalyses, rate: float = 0.05) -> GraphDifference:
        """Find where the partial correlations of another release differ from those of this one.

        The tables are taken to have different rows, as by `compare`.

        Parameters
        ----------
        other
            An opened release, a group or a pool with the same columns.
        rate
            Upper bound on the expected share of false differences among the found ones.

        Raises
        ------
        RequestError
            If one of the two is not a second moment, their columns differ, what clipping took away
            is not known and differs, or they are steps of a cumulative series with common rows.
        """
        from gramercy.api.graph_difference import GraphDifference
        from gramercy.estimators.series_steps import check_disjoint

        if not isinstance(other, ReleaseAnalyses):
            raise wordings.not_a_release(type(other).__name__)
        for each in (self, other):
            each._needs_second_moment()
        check_disjoint((self.id, self._manifests), (other.id, other._manifests))
        return GraphDifference(self.id, other.id, (self.evidence, other.evidence), rate)

    def synthesize(
        self, rows: int = 10_000, *, missing: bool = True, integers: Sequence[str] = ()
    ) -> pd.DataFrame:
        """Synthetic rows with the released distributions and correlations.

        They come from a public seed: equal calls give equal rows, and a larger number starts with
        the rows of a smaller one. See `estimators.synthetic.Synthetic` for what they preserve.

        Parameters
        ----------
        rows
            Number of rows.
        missing
            Whether numeric cells are missing with the published shares.
        integers
            Numeric columns whose cells are whole numbers.

        Returns
        -------
        DataFrame
            The columns of the table, with levels, whole numbers and dates in types of their own.
            Its ``attrs`` say that it is synthetic, and of which release.

        Raises
        ------
        RequestError
            If the release has no means of the columns, or an argument is out of range.
        """
        from gramercy.estimators.copula.rows import Copula

        self._needs_second_moment()
        copula = Copula.of(self.evidence)
        table = copula.in_own_types(copula.draw(rows, missing, integers), integers)
        table.attrs |= {"synthetic": True, "release": self.id}
        return table

    @contextmanager
    def _grouped_by_another(self) -> Iterator[None]:
        """An unknown column by which the rows are grouped is an error that says so."""
        try:
            yield
        except RequestError as error:
            for by in (facts.by for facts in self._manifests):
                if by is not None and by.name == error.facts.get("column"):
                    raise families.ANALYSIS(
                        "The rows are grouped by '{column}', so it is not a column of the matrix.",
                        "Use .groups of the release: .rows and .means, .changes() and "
                        ".compare(A, B), and each of its groups {groups} is like a release.",
                        column=by.name,
                        groups=level_names(by.levels),
                    ) from None
            raise


def analysis(name: str, settings: Mapping[str, Any], evidence: Evidence) -> Estimate:
    """The estimate of this name; settings that are None keep their defaults."""
    from gramercy.estimators import registry

    given = {key: value for key, value in settings.items() if value is not None}
    spec = parse(registry[name], {"name": name, **given}, f"estimate '{name}'", RequestError)
    return spec.fit(evidence)
