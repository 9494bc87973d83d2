"""Rows drawn from a Gaussian copula of published marginals and correlations.

Every numeric column is a function of one standard normal variable, and every column of levels a
function of several. `rows.latent_variables` chooses the correlations of these latent variables, so
that the columns have the released ones.
"""
