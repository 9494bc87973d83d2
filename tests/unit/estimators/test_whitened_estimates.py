"""Estimates from a matrix that was drawn in the metric of a pilot matrix."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import islice

import numpy as np
import pytest
from numpy.typing import NDArray

from gramercy.estimators.components import Components
from gramercy.estimators.discriminant import Discriminant
from gramercy.estimators.graphical_lasso import GraphicalLasso
from gramercy.estimators.input_matrix import with_diagonal_floor
from gramercy.estimators.pooling.pool import pooled
from gramercy.estimators.ridge import Ridge
from gramercy.estimators.threshold import ThresholdedCovariance
from gramercy.estimators.tuning.stability import redraws
from gramercy.schemas.evidence import Evidence
from tests.support.noisy_matrices import ar
from tests.support.private_release import level_column, numeric_columns, privately_scaled
from tests.support.problems import stein_loss
from tests.support import simulated_release

Array = NDArray[np.float64]

ROWS, COLUMNS, STRENGTH = 20_000, 12, 0.9
