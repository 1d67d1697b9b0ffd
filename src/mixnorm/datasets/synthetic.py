"""Synthetic families that separate learning with shared features from other methods."""

import numbers

import numpy as np

from mixnorm._numbers import check_count, check_number

Seed = int | np.random.RandomState | None


def make_shared_bits(
    n_classes: int, n_samples: int | None = None, random_state: Seed = None
) -> tuple[np.ndarray, np.ndarray]:
    r"""Make classes that a few shared bits separate, or one large column per class.

    An example of class :math:`y \in \{0, \dots, k-1\}` is

    .. math:: x = [\mathrm{bin}(y),\; 2 \log_2(k)\, e_y]
              \in \mathbb{R}^{\log_2 k + k},

    where :math:`\mathrm{bin}(y) \in \{-1, +1\}^{\log_2 k}` is the binary
    code of :math:`y`, most significant bit first. The :math:`\log_2 k` bits
    are enough for all classes together; the indicators are cheaper for a
    penalty that counts every weight, so l1 and l2 regularisation use
    :math:`k` features. The columns are meant to be used raw: divided by
    their largest absolute values, the indicators lose their advantage.

    Parameters
    ----------
    n_classes : int
        Number of classes :math:`k`, a power of two, at least 2.
    n_samples : int, default=None
        Number of examples, classes as equal in number as possible, in random
        order. ``None`` gives one example of each class, in class order;
        since examples of a class are equal, more only repeat them.
    random_state : int, RandomState instance or None, default=None
        Fixes the order of the examples.

    Returns
    -------
    X : ndarray of shape (n_samples, log2(n_classes) + n_classes)
        The bits, then the indicators.
    y : ndarray of shape (n_samples,)
        The classes, ``0`` to ``n_classes - 1``.

    References
    ----------
    Shalev-Shwartz, Wexler, Shashua, "ShareBoost: Efficient multiclass
    learning with feature sharing", 2011, Appendix C, first example.

    Examples
    --------
    >>> from mixnorm.datasets import make_shared_bits
    >>> X, y = make_shared_bits(4)
    >>> X
    array([[-1., -1.,  4.,  0.,  0.,  0.],
           [-1.,  1.,  0.,  4.,  0.,  0.],
           [ 1., -1.,  0.,  0.,  4.,  0.],
           [ 1.,  1.,  0.,  0.,  0.,  4.]])
    """
    codes = _binary_codes(n_classes)
    y = _draw_classes(n_classes, n_samples, random_state)
    indicators = 2.0 * codes.shape[1] * np.eye(n_classes)
    return np.hstack([codes[y], indicators[y]]), y


def make_redundant_bits(
    n_classes: int,
    n_copies: int = 4,
    n_samples: int | None = None,
    *,
    zeroed: float = 0.1,
    random_state: Seed = None,
) -> tuple[np.ndarray, np.ndarray]:
    r"""Make several copies of the same bits, some of them zeroed.

    Every example holds ``n_copies`` copies of :math:`\mathrm{bin}(y)`, the
    code of :func:`make_shared_bits`; in a share ``zeroed`` of the examples
    one copy, drawn uniformly, is set to zero. Any one copy gives a good
    predictor. The :math:`\ell_{\infty,1}` norm, which charges the same for
    spreading the weights over all copies, prefers to spread; greedy selection
    breaks the tie and stays with few columns.

    Parameters
    ----------
    n_classes : int
        Number of classes, a power of two, at least 2.
    n_copies : int, default=4
        Number of copies of the bits.
    n_samples : int, default=None
        Number of examples, classes as equal in number as possible, in random
        order. ``None`` gives ten examples of each class, in class order.
    zeroed : float, default=0.1
        Share of the examples, between 0 and 1, in which one copy is zeroed.
    random_state : int, RandomState instance or None, default=None
        Fixes the order of the examples and what is zeroed.

    Returns
    -------
    X : ndarray of shape (n_samples, n_copies * log2(n_classes))
        The copies, one after another.
    y : ndarray of shape (n_samples,)
        The classes, ``0`` to ``n_classes - 1``.

    References
    ----------
    Shalev-Shwartz, Wexler, Shashua, "ShareBoost: Efficient multiclass
    learning with feature sharing", 2011, Appendix C, second example.

    Examples
    --------
    >>> from mixnorm.datasets import make_redundant_bits
    >>> X, y = make_redundant_bits(4, n_copies=3, random_state=0)
    >>> X.shape, int((X == 0).sum())
    ((40, 6), 8)
    """
    from sklearn.utils import check_random_state

    check_count("n_copies", n_copies)
    check_number("zeroed", zeroed)
    if not 0.0 <= zeroed <= 1.0:
        raise ValueError(f"zeroed={zeroed} is a share of the examples: give 0 <= zeroed <= 1.")
    codes = _binary_codes(n_classes)
    rng = check_random_state(random_state)
    if n_samples is None:
        y = np.repeat(np.arange(n_classes), 10)
    else:
        y = _draw_classes(n_classes, n_samples, rng)
    blocks = np.repeat(codes[y][:, None, :], n_copies, axis=1)
    rows = rng.permutation(len(y))[: round(zeroed * len(y))]
    blocks[rows, rng.randint(n_copies, size=len(rows))] = 0.0
    return blocks.reshape(len(y), -1), y


def _binary_codes(n_classes: int) -> np.ndarray:
    """Return the -1/+1 codes of 0 .. n_classes - 1, one row each."""
    if not isinstance(n_classes, numbers.Integral):
        raise TypeError(f"n_classes={n_classes!r} must be a whole number.")
    if n_classes < 2 or n_classes & (n_classes - 1):
        raise ValueError(
            f"n_classes={n_classes} must be a power of two, at least 2: "
            "the codes of the classes fill all combinations of bits."
        )
    n_bits = int(n_classes).bit_length() - 1
    shifts = np.arange(n_bits)[::-1]
    bits = (np.arange(n_classes)[:, None] >> shifts) & 1
    return np.where(bits == 1, 1.0, -1.0)


def _draw_classes(n_classes: int, n_samples: int | None, random_state: Seed) -> np.ndarray:
    """Return labels with class counts that differ by at most one."""
    from sklearn.utils import check_random_state

    if n_samples is None:
        return np.arange(n_classes)
    check_count("n_samples", n_samples)
    order: np.ndarray = check_random_state(random_state).permutation(n_samples)
    return order % n_classes
