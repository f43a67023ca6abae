import numpy as np
import pytest
from numpy.testing import assert_allclose
from spacy.util import registry
from thinc.api import get_current_ops
from thinc.types import Ragged

from spacy_maverick.encoder.pooling import reduce_first_last


def make_ragged(lengths, width=3):
    rng = np.random.default_rng(0)
    data = rng.normal(size=(sum(lengths), width)).astype("f")
    return Ragged(get_current_ops().asarray(data), get_current_ops().asarray(lengths, dtype="i"))


def test_first_and_last_stand_side_by_side():
    X = make_ragged([2, 1, 3])
    Y = reduce_first_last().predict(X)
    assert_allclose(Y[:, :3], X.dataXd[[0, 2, 3]])
    assert_allclose(Y[:, 3:], X.dataXd[[1, 2, 5]])


def test_words_without_pieces_give_zeros():
    X = make_ragged([0, 2, 0, 0, 1, 0])
    Y, backprop = reduce_first_last()(X, is_train=True)
    assert Y.shape == (6, 6)
    assert_allclose(Y[[0, 2, 3, 5]], 0)
    assert_allclose(Y[1], np.concatenate([X.dataXd[0], X.dataXd[1]]))
    assert backprop(np.ones_like(Y)).dataXd.shape == X.dataXd.shape
    assert reduce_first_last().predict(make_ragged([0, 0])).shape == (2, 6)


def test_gradient_is_that_of_the_function():
    X = make_ragged([2, 1, 0, 4])
    model = reduce_first_last()
    Y, backprop = model(X, is_train=True)
    dY = np.random.default_rng(1).normal(size=Y.shape).astype("f")
    dX = backprop(dY)
    assert list(dX.lengths) == [2, 1, 0, 4]
    for i, j in np.ndindex(*X.dataXd.shape):
        moved = X.dataXd.copy()
        moved[i, j] += 1.0
        change = model.predict(Ragged(moved, X.lengths)) - Y
        assert dX.dataXd[i, j] == pytest.approx(float((change * dY).sum()), abs=1e-5)


def test_layer_is_registered_and_knows_its_widths():
    model = registry.layers.get("spacy-maverick.reduce_first_last.v1")()
    assert model.attrs["first_last"] is True
    model.initialize(X=make_ragged([1, 2], width=5))
    assert (model.get_dim("nI"), model.get_dim("nO")) == (5, 10)
    lazy = reduce_first_last()
    lazy.predict(make_ragged([1, 2], width=4))
    assert lazy.get_dim("nO") == 8
