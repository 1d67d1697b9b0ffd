"""Losses by name."""

import pytest

from mixnorm.losses import JOINT, SCALAR, Hinge, Huber, MulticlassHinge, as_loss


def test_names_depend_on_the_table():
    assert as_loss("hinge", SCALAR) == Hinge()
    assert as_loss("hinge", JOINT) == MulticlassHinge()
    mine = Huber(2.0)
    assert as_loss(mine, SCALAR) is mine


@pytest.mark.parametrize("loss", ["huger", "margin", Huber, None, 3, object()])
def test_what_is_no_loss(loss):
    with pytest.raises(ValueError, match=r"is not known; choose one of \['absolute', 'eps"):
        as_loss(loss, SCALAR)
