"""Templates adjusted to a task: sums, slopes, sweeps, and tuned models."""

import pickle

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_digits

from mixnorm import (
    GreedyOptions,
    ShareBoostClassifier,
    ShareBoostClassifierCV,
    ShareBoostRegressor,
    load,
    save,
)
from mixnorm.exceptions import InterruptedFitWarning
from mixnorm.pools import Patches
from mixnorm.pools.patches.responses import PatchParts
from mixnorm.pools.patches.tuning import PatchAdjustment, _sums, _sums_compiled

POOL = Patches(size=3, n_templates=15, masks=4)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X.reshape(-1, 8, 8)[:700], y[:700]


def prepared(n=90, size=(2, 3), dtype=np.float64):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 30)).astype(dtype)
    pool = Patches(size=size, n_templates=4, masks=(2, 2), shape=(5, 6))
    return X, pool.prepare(X, random_state=0)


def by_hand(X, data, atom, slope, bend):
    """The sums by their definition, image by image."""
    pool = data.pool
    template, scale = pool.template(atom), pool._find_scale(atom, 30)
    size = scale.size
    top, bottom, left, right = scale.window(atom[1])
    down, across = scale.weights(atom[1])
    gradient, curvature = np.zeros(size * size), np.zeros((size * size, size * size))
    for image, s, b in zip(X.reshape(-1, 5, 6), slope, bend, strict=True):
        best, patch = 0.0, np.zeros(size * size)
        for y in range(top, bottom):
            for x in range(left, right):
                part = image[y : y + size, x : x + size]
                weight = down[y - top] * across[x - left]
                if weight * (part * template).sum() > best:
                    best = weight * (part * template).sum()
                    patch = weight * (part - part.mean()).ravel()
        gradient += s * patch
        curvature += b * np.outer(patch, patch)
    return gradient, curvature


class TestSums:
    atoms = ((0, 0), (5, 3), (2, 0), (7, 1), (5, 0))

    def derivatives(self, n):
        rng = np.random.default_rng(1)
        return rng.standard_normal((5, n)), rng.random((5, n))

    def test_compiled(self):
        X, data = prepared()
        slopes, bends = self.derivatives(len(X))
        parts = PatchParts(data.pool, self.atoms, 30)
        found = list(_sums_compiled(X, parts, slopes, bends))
        assert [place for place, *_ in found] == [0, 1, 2, 3, 4]
        for place, gradient, curvature in found:
            wanted = by_hand(X, data, self.atoms[place], slopes[place], bends[place])
            np.testing.assert_allclose(gradient, wanted[0], atol=1e-10)
            np.testing.assert_allclose(curvature, wanted[1], atol=1e-10)

    def test_namespaces(self, xp, monkeypatch):
        X, data = prepared()
        slopes, bends = self.derivatives(len(X))
        parts = PatchParts(data.pool, self.atoms, 30)
        monkeypatch.setattr(
            "mixnorm.pools.patches.responses._PRODUCTS_AT_A_TIME", 4000
        )  # several blocks
        there = (xp.asarray(array) for array in (slopes, bends))
        found = {place: sums for place, *sums in _sums(xp.asarray(X), parts, *there)}
        for place, gradient, curvature in _sums_compiled(X, parts, slopes, bends):
            np.testing.assert_allclose(found[place][0], gradient, atol=1e-10)
            np.testing.assert_allclose(found[place][1], curvature, atol=1e-10)


class TestAdjustment:
    def test_slope_is_that_of_the_loss(self):
        _, data = prepared(300)
        rng = np.random.default_rng(2)
        atoms = [(0, 0), (6, 2), (3, 1)]
        target, weights = rng.standard_normal(300), np.array([1.0, -2.0, 0.5])

        def loss(pairs):
            score = sum(
                w * r * data.columns(a)[0] for w, (a, r) in zip(weights, pairs, strict=True)
            )
            return 0.5 * np.mean((score - target) ** 2), score

        before, score = loss([(atom, 1.0) for atom in atoms])
        slopes = weights[:, None] * (score - target) / 300
        bends = np.repeat(weights[:, None] ** 2 / 300, 300, axis=1)
        adjustment = data.adjust(atoms, slopes, bends)
        change = 1e-6
        after, _ = loss(adjustment.move(change))
        assert (before - after) / change == pytest.approx(adjustment.slope, rel=1e-3)
        assert adjustment.slope > 0
        np.testing.assert_allclose(loss(adjustment.move(0.0))[0], before, rtol=1e-12)
        assert loss(adjustment.move(0.3))[0] < before

    def test_new_templates_are_normal_and_take_the_place_of_older_ones(self):
        X, data = prepared()
        plain = data.pool
        slopes, bends = TestSums().derivatives(len(X))
        adjustment = data.adjust(TestSums.atoms, slopes, bends)
        for length in (0.5, 0.1):
            atoms = [atom for atom, _ in adjustment.move(length)]
            assert sorted(number for number, _ in atoms) == [8, 9, 10, 11, 12]
            assert [mask for _, mask in atoms] == [mask for _, mask in TestSums.atoms]
            for old, new in zip(TestSums.atoms, atoms, strict=True):
                template = data.pool.template(new)
                assert template.shape == plain.template(old).shape
                assert np.linalg.norm(template) == pytest.approx(1.0)
                assert template.mean() == pytest.approx(0.0, abs=1e-12)
                column = data.pool.evaluate(X, [new])[:, 0] / data.scale(new)
                np.testing.assert_allclose(data.columns(new)[0], column, rtol=1e-12)
        assert sum(map(len, data.pool.template_sets())) == 13


class TestModels:
    def fitted(self, digits, tune, **more):
        model = ShareBoostClassifier(
            8, pool=POOL, alpha=1e-5, random_state=0, options=GreedyOptions(tune=tune)
        )
        return model.set_params(**more).fit(*digits)

    def test_the_loss_falls(self, digits):
        losses = [self.fitted(digits, tune).path_["loss"][-1] for tune in (0, 1, 3, 6)]
        assert np.all(np.diff(losses) < 0)
        assert losses[-1] < 0.7 * losses[0]

    def test_templates_that_are_integers(self, digits):
        given = np.round(10 * np.random.default_rng(0).standard_normal((6, 3, 3))).astype(int)
        losses = [
            ShareBoostClassifier(
                6, pool=Patches(templates=part, masks=4), options=GreedyOptions(tune=3)
            )
            .fit(*digits)
            .path_["loss"][-1]
            for part in (given, given.astype(float))
        ]
        assert losses[0] == pytest.approx(losses[1], rel=1e-3)

    def test_atoms(self, digits):
        model = self.fitted(digits, 2)
        assert [number for number, _ in model.atoms_] == list(range(15, 23))
        assert model.atoms_[-1] == model.path_["feature"][-1]
        assert self.fitted(digits, 0).atoms_ == self.fitted(digits, 0).path_["feature"].tolist()

    def test_other_sizes_stay(self, digits):
        plain, tuned = (self.fitted(digits, tune) for tune in (0, 3))
        images, _ = digits
        np.testing.assert_array_equal(
            plain.truncate(7).decision_function(images), tuned.truncate(7).decision_function(images)
        )
        assert tuned.cost_ == plain.cost_
        masks = [[mask for _, mask in m.model_.path.rounds[-1].support] for m in (plain, tuned)]
        assert masks[0] == masks[1]

    def test_predictions_are_those_of_the_path(self, digits):
        images, y = digits
        model = self.fitted(digits, 3)
        scores = model.decision_function(images)
        np.testing.assert_allclose(list(model.staged_decision_function(images))[-1], scores)
        loss = model.model_.outputs.loss
        value, _ = loss.value_and_residual(
            scores, loss.encode(y, 10, scores), np.full(len(y), 1.0 / len(y))
        )
        assert value == pytest.approx(model.path_["loss"][-1], rel=1e-6)

    def test_copies(self, digits, tmp_path):
        model = self.fitted(digits, 2)
        save(model, tmp_path / "model.mixnorm")
        wanted = model.decision_function(digits[0])
        for copy in (pickle.loads(pickle.dumps(model)), load(tmp_path / "model.mixnorm")):
            np.testing.assert_array_equal(copy.decision_function(digits[0]), wanted)

    def test_rounded_responses(self, digits):
        tight = clone(POOL).set_params(max_gib=2 * 60 * 700 / 2**30)
        images = digits[0].astype(np.float32)
        tuned = ShareBoostClassifier(
            8, pool=tight, alpha=1e-5, random_state=0, options=GreedyOptions(tune=3)
        )
        plain = clone(tuned).set_params(options__tune=0)
        losses = [m.fit(images, digits[1]).path_["loss"][-1] for m in (plain, tuned)]
        assert losses[1] < losses[0]

    def test_going_on(self, digits):
        model = self.fitted(digits, 2, warm_start=True)
        before = model.path_["loss"][-1]
        model.set_params(n_features_to_select=11).fit(*digits)
        assert len(model.path_["loss"]) == 11
        assert model.path_["loss"][-1] < before

    def test_after_steps_back(self, digits):
        plain, tuned = (self.fitted(digits, tune, options__backward=3) for tune in (0, 3))
        assert len(tuned.path_["loss"]) == len(plain.path_["loss"]) == 8
        assert tuned.path_["loss"][-1] < plain.path_["loss"][-1]

    @pytest.mark.parametrize("sweeps", [0, 2])
    def test_an_interrupt_keeps_the_sweeps_done(self, digits, monkeypatch, sweeps):
        wanted, calls = self.fitted(digits, sweeps), []
        move = PatchAdjustment.move

        def interrupted(self, length):
            calls.append(length)
            found = move(self, length)
            if len(calls) == sweeps + 1:
                raise KeyboardInterrupt
            return found

        monkeypatch.setattr(PatchAdjustment, "move", interrupted)
        with pytest.warns(InterruptedFitWarning):
            found = self.fitted(digits, 6)
        assert calls[-1] == 0.0
        np.testing.assert_allclose(
            found.decision_function(digits[0]), wanted.decision_function(digits[0]), rtol=1e-6
        )

    def test_regressor(self, digits):
        images, y = digits
        plain, tuned = (
            ShareBoostRegressor(6, pool=POOL, random_state=0, options=GreedyOptions(tune=tune)).fit(
                images, y == 3
            )
            for tune in (0, 4)
        )
        assert tuned.score(images, y == 3) > plain.score(images, y == 3) + 0.02

    def test_sizes_by_cross_validation(self, digits):
        model = ShareBoostClassifierCV(
            5, pool=POOL, cv=2, random_state=0, options=GreedyOptions(tune=1)
        ).fit(*digits)
        assert model.score(*digits) > 0.4

    def test_namespaces(self, digits, xp):
        wanted = self.fitted(digits, 3, options__tol=1e-8)
        images, y = xp.asarray(digits[0]), xp.asarray(digits[1])
        with sklearn.config_context(array_api_dispatch=True):
            found = self.fitted((images, y), 3, options__tol=1e-8)
            scores = found.decision_function(images)
        assert found.path_["loss"][-1] == pytest.approx(wanted.path_["loss"][-1], rel=1e-4)
        np.testing.assert_allclose(
            np.asarray(scores), wanted.decision_function(digits[0]), rtol=1e-2, atol=1e-2
        )


class TestErrors:
    def test_pools_without(self, digits):
        rows = digits[0].reshape(-1, 64)
        with pytest.raises(TypeError, match=r"tune=1 adjusts atoms.* Set tune=0"):
            ShareBoostClassifier(3, options=GreedyOptions(tune=1)).fit(rows, digits[1])

    @pytest.mark.parametrize(
        ("tune", "error"), [(-1, ValueError), (1.5, TypeError), (True, TypeError)]
    )
    def test_numbers(self, digits, tune, error):
        with pytest.raises(error, match="tune"):
            ShareBoostClassifier(3, pool=POOL, options=GreedyOptions(tune=tune)).fit(*digits)
