"""LightGBM and XGBoost for ``benchmarks.trees``: settings, rounds, costs and lean calls."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from benchmarks.harness.peers import Boosted, LightGBM, XGBoost


@dataclass(frozen=True)
class Booster:
    """A library of boosted trees, with fifteen settings of two parameters."""

    peer: ClassVar[Boosted]
    grid: ClassVar[Sequence[Mapping[str, Any]]]
    # Numbers of rounds at which errors are measured; the first rounds of a fit are a shorter fit.
    rounds: ClassVar[Sequence[int]] = (*range(1, 21), 25, 30, 40, 50, 65, 80, 100, 150)

    def fit(self, X: np.ndarray, y: np.ndarray, settings: Mapping[str, Any], rounds: int) -> Any:
        """Fit a number of rounds."""
        return self.peer.model(**settings, n_estimators=rounds).fit(X, y)

    def order(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return all columns, the largest gain in a fit with the defaults first."""
        return self.peer.order(X, y)

    def predict(self, model: Any, X: np.ndarray, rounds: int) -> np.ndarray:
        """Predict with the first rounds."""
        raise NotImplementedError

    def lean(self, model: Any) -> Callable[[np.ndarray], Any]:
        """Return the fastest function that predicts labels of rows."""
        raise NotImplementedError

    def leaves(self, model: Any, X: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        """Return the leaf of each row in each tree, and the depths of the leaves by tree."""
        raise NotImplementedError

    def costs(self, model: Any, X: np.ndarray) -> np.ndarray:
        """Return operations per row by number of rounds.

        There is a comparison for every inner node that a row passes, and an addition for every
        tree.
        """
        reached, depths = self.leaves(model, X[:1000])
        each = [depth[leaves].mean() + 1 for depth, leaves in zip(depths, reached.T, strict=True)]
        classes = int(model.n_classes_)
        spent = np.cumsum(each).reshape(-1, classes if classes > 2 else 1)[:, -1]
        # A fit ends early if no split is left; the model then stays the same in later rounds.
        return np.pad(spent, (0, model.n_estimators - len(spent)), mode="edge")


class _LightGBM(Booster):
    peer = LightGBM()
    grid = tuple(
        {"num_leaves": leaves, "learning_rate": rate}
        for leaves, rate in itertools.product((2, 4, 8, 16, 31), (0.1, 0.3, 0.6))
    )

    def predict(self, model: Any, X: np.ndarray, rounds: int) -> np.ndarray:
        return np.asarray(model.predict(X, num_iteration=rounds))

    def lean(self, model: Any) -> Callable[[np.ndarray], Any]:
        predict, classes = model.booster_.predict, model.classes_

        def call(X: np.ndarray) -> Any:
            return classes[predict(X, raw_score=True, num_threads=1).argmax(axis=1)]

        return call

    def leaves(self, model: Any, X: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        depths = []
        for part in model.booster_.model_to_string().split("Tree=")[1:]:
            lines = dict(line.split("=", 1) for line in part.splitlines() if "=" in line)
            children = (lines.get(f"{side}_child", "") for side in ("left", "right"))
            sides = [[int(child) for child in text.split()] for text in children]
            depths.append(compute_leaf_depths(*sides))
        return model.predict(X, pred_leaf=True), depths


class _XGBoost(Booster):
    peer = XGBoost()
    grid = tuple(
        {"max_depth": depth, "learning_rate": rate}
        for depth, rate in itertools.product((1, 2, 3, 4, 6), (0.1, 0.3, 0.6))
    )

    def predict(self, model: Any, X: np.ndarray, rounds: int) -> np.ndarray:
        return np.asarray(model.predict(X, iteration_range=(0, rounds)))

    def lean(self, model: Any) -> Callable[[np.ndarray], Any]:
        predict, classes = model.get_booster().inplace_predict, model.classes_

        def call(X: np.ndarray) -> Any:
            return classes[
                predict(X, predict_type="margin", validate_features=False).argmax(axis=1)
            ]

        return call

    def leaves(self, model: Any, X: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        from xgboost import DMatrix

        booster = model.get_booster()
        stored = json.loads(booster.save_raw("json"))["learner"]["gradient_booster"]["model"]
        depths = [
            compute_node_depths(t["left_children"], t["right_children"]) for t in stored["trees"]
        ]
        return booster.predict(DMatrix(X), pred_leaf=True).reshape(len(X), -1).astype(int), depths


BOOSTERS: dict[str, Booster] = {"lightgbm": _LightGBM(), "xgboost": _XGBoost()}


def compute_leaf_depths(left: Sequence[int], right: Sequence[int]) -> np.ndarray:
    """Return the depth of each leaf; a negative child is leaf ``-1 - child``, others are nodes.

    Nodes come before their children. A tree without nodes is one leaf, of depth 0.
    """
    nodes, leaves = [0] * len(left), [0] * (len(left) + 1)
    for node, children in enumerate(zip(left, right, strict=True)):
        for child in children:
            if child < 0:
                leaves[-1 - child] = nodes[node] + 1
            else:
                nodes[child] = nodes[node] + 1
    return np.asarray(leaves)


def compute_node_depths(left: Iterable[int], right: Iterable[int]) -> np.ndarray:
    """Return the depth of each node; a leaf has children of -1. Nodes precede their children."""
    pairs = list(zip(left, right, strict=True))
    depths = [0] * len(pairs)
    for node, children in enumerate(pairs):
        for child in children:
            if child > 0:
                depths[child] = depths[node] + 1
    return np.asarray(depths)
