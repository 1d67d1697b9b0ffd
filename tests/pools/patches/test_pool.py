"""Patches of images: templates, masks, responses, memory, and models made of them."""

import math
import pickle
import weakref

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError

from mixnorm import GreedyOptions, ShareBoostClassifier, ShareBoostRegressor, load, save
from mixnorm.exceptions import FewerFeaturesWarning
from mixnorm.pools import Columns, Patches, Union
from mixnorm.pools.patches.patches_jit import LANES, coded_gradient, respond, respond_few

SMALL = Patches(size=3, n_templates=12, masks=9)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X.reshape(-1, 8, 8), y


def every(X):
    """The first and the end of all groups of images that are done side by side."""
    return 0, -(-len(X) // LANES)


def drawn(n=70, shape=(6, 7), seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    images = rng.standard_normal((n, *shape))
    images[:, :, 0] = 0.0
    return images.reshape(n, -1).astype(dtype)


def by_hand(rows, shape, pool, atom):
    """The response by its definition: the largest weighted product, or zero."""
    images = rows.reshape(-1, *shape).astype(np.float64)
    template, size = pool.template(atom), pool.template(atom).shape[0]
    scale = pool._find_scale(atom, rows.shape[1])
    k, j = divmod(atom[1], scale.across.n_bells)
    best = np.zeros(len(images))
    for y in range(shape[0] - size + 1):
        for x in range(shape[1] - size + 1):
            product = (images[:, y : y + size, x : x + size] * template).sum(axis=(1, 2))
            weight = scale.down.weights[k, y] * scale.across.weights[j, x]
            best = np.maximum(best, weight * product)
    return best


class TestResponses:
    @pytest.mark.parametrize("n", [1, LANES - 1, LANES, 2 * LANES + 3])
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_definition(self, n, dtype):
        X = drawn(n, dtype=dtype)
        pool = Patches(size=(2, 3), n_templates=4, masks=(2, 3), shape=(6, 7), reach=0.9)
        pool = pool.learn(drawn(), random_state=0)
        atoms = [(t, m) for t in range(8) for m in range(6)]
        found = pool.evaluate(X, atoms)
        assert found.dtype == dtype
        wanted = np.stack([by_hand(X, (6, 7), pool, atom) for atom in atoms], axis=1)
        atol = 100 * np.finfo(dtype).eps
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=atol)

    @pytest.mark.parametrize("dtype", ["uint8", "int64", "bool", "float16"])
    def test_dtypes(self, dtype):
        X = (np.abs(drawn()) * 2).astype(dtype)
        pool = Patches(size=2, n_templates=4, masks=4, shape=(6, 7)).learn(X, random_state=0)
        atoms = [(0, 0), (0, 2)]
        wanted = pool.evaluate(X.astype(np.float64), atoms)
        np.testing.assert_allclose(pool.evaluate(X, atoms), wanted, rtol=1e-3, atol=1e-5)

    def test_all_and_few_agree(self):
        X = drawn(100, dtype=np.float32)
        pool = Patches(size=2, n_templates=5, masks=4, shape=(6, 7)).learn(X, random_state=0)
        (scale,), (sets,) = pool.scales(42), pool.template_sets()
        taps = sets.reshape(5, 4).astype(np.float32)
        down, across = (b.weights.astype(np.float32) for b in (scale.down, scale.across))
        found = np.empty((20, 100), np.float32)
        respond(X, 7, taps, 2, down, across, np.empty(0, np.float32), found, *every(X))
        atoms = [(t, m) for t in range(5) for m in range(4)]
        np.testing.assert_array_equal(found.T, pool.evaluate(X, atoms))

    def test_bytes(self):
        X = drawn(100, dtype=np.float32)
        pool = Patches(size=2, n_templates=5, masks=4, shape=(6, 7)).learn(X, random_state=0)
        (scale,), (sets,) = pool.scales(42), pool.template_sets()
        taps = sets.reshape(5, 4).astype(np.float32)
        down, across = (b.weights.astype(np.float32) for b in (scale.down, scale.across))
        exact = pool.evaluate(X, [(t, m) for t in range(5) for m in range(4)]).T
        steps = exact.max(axis=1) / np.float32(200)  # some are cut
        steps[0] = exact[0].max() / np.float32(300)
        found = np.empty(exact.shape, np.uint8)
        respond(X, 7, taps, 2, down, across, steps, found, *every(X))
        wanted = np.minimum(np.floor(exact / steps[:, None] + 0.5), 255)
        assert found[0].max() == 255
        assert np.abs(found - wanted).max() <= 1  # rounded the other way where it is half

    def test_coded_gradient(self):
        rng = np.random.default_rng(0)
        codes = rng.integers(0, 256, (300, 2500), dtype=np.uint8)
        residual = rng.standard_normal((3, 2500))
        found = np.empty((300, 3))
        for begin, stop in [(0, 1), (1, 3)]:
            coded_gradient(codes, residual, found, begin, stop)
        np.testing.assert_allclose(found, codes @ residual.T, rtol=1e-10, atol=1e-8)

    @pytest.mark.parametrize("n", [1, 3, 7])
    def test_few_images_agree_with_many(self, n):
        X = drawn(50)
        pool = Patches(size=(2, 3), n_templates=4, masks=(2, 3), shape=(6, 7)).learn(X)
        atoms = [(t, m) for t in range(8) for m in range(6)]
        np.testing.assert_allclose(
            pool.evaluate(X[:n], atoms), pool.evaluate(X, atoms)[:n], rtol=1e-12, atol=1e-14
        )

    def test_empty_image(self):
        out = np.full((2, 1), np.nan)
        args = (np.ones(4), np.array([0]), np.array([2]), np.array([[0, 1, 0, 1]]))
        respond_few(np.zeros((2, 4)), 2, *args, np.ones((1, 1)), np.ones((1, 1)), out, 0, 1)
        np.testing.assert_array_equal(out, 0.0)

    def test_blind_to_brightness(self):
        X = drawn()
        pool = Patches(size=3, n_templates=4, masks=4, shape=(6, 7)).learn(X, random_state=0)
        atoms = [(t, m) for t in range(4) for m in range(4)]
        np.testing.assert_allclose(
            pool.evaluate(X + 3.0, atoms), pool.evaluate(X, atoms), atol=1e-12
        )

    def test_namespaces(self, xp):
        X = drawn(40)
        pool = Patches(size=(2, 4), n_templates=4, masks=(2, 1), shape=(6, 7), reach=0.8)
        pool = pool.learn(X, random_state=0)
        atoms = [(5, 1), (0, 0), (5, 0), (2, 1)]
        found = pool.evaluate(xp.asarray(X), atoms)
        np.testing.assert_allclose(np.asarray(found), pool.evaluate(X, atoms), atol=1e-12)
        there = pool.learn(xp.asarray(X), random_state=1).templates
        here = pool.learn(X, random_state=1).templates
        assert all(np.array_equal(a, b) for a, b in zip(there, here, strict=True))
        assert tuple(pool.evaluate(xp.asarray(X), []).shape) == (40, 0)


class TestPools:
    def test_equal(self):
        X = drawn()
        pool = Patches(size=2, n_templates=5, masks=1, shape=(6, 7))
        one, again, other = (pool.learn(X, random_state=seed) for seed in (0, 0, 1))
        assert pool == clone(pool)
        assert one == again
        assert one not in (pool, other, "pool")

    def test_learned_from_images(self):
        X = drawn()
        pool = Patches(size=2, n_templates=5, masks=1)
        found = pool.learn(X.reshape(-1, 6, 7), random_state=0)
        assert found == pool.for_images((6, 7)).learn(X, random_state=0)

    def test_templates_are_the_pool_s_own(self, digits):
        given = np.random.default_rng(0).standard_normal((4, 3, 3))
        pool = Patches(templates=given, masks=4)
        model = ShareBoostClassifier(3, pool=pool).fit(*digits)
        before = model.decision_function(digits[0])
        given *= 0.0
        np.testing.assert_array_equal(model.decision_function(digits[0]), before)

    def test_templates_as_lists(self):
        given = np.random.default_rng(0).standard_normal((4, 3, 3))
        for same in (given, [given], given.tolist(), list(given)):
            (found,) = Patches(templates=same).template_sets()
            np.testing.assert_array_equal(found, given)
        for wrong, error in ((5, TypeError), ((), ValueError)):
            with pytest.raises(error, match="templates"):
                Patches(templates=wrong).template_sets()

    def test_large_integers(self, digits):
        images, y = digits[0][:300], digits[1][:300]
        model = ShareBoostClassifier(4, pool=SMALL, random_state=0)
        wanted = clone(model).fit(images, y).path_["feature"].tolist()
        shifted = clone(model).fit(images.astype(np.int64) + 2**30, y)
        assert shifted.path_["feature"].tolist() == wanted


class TestMemory:
    def residual(self, n, k=3):
        rng = np.random.default_rng(1)
        residual = rng.standard_normal((n, k)) / n
        return (residual - residual.mean(axis=0)).astype(np.float32)

    def test_rounded_responses_choose_the_same(self, digits):
        X = digits[0].reshape(-1, 64).astype(np.float32)
        exact = SMALL.prepare(X, random_state=0)
        tight = clone(SMALL).set_params(max_gib=2 * 108 * len(X) / 2**30)
        rounded = tight.prepare(X, random_state=0)
        assert exact.exact
        assert not rounded.exact
        residual = self.residual(len(X))
        for rule in ("l1", "l2"):
            wanted = exact.top(residual, rule, 5, frozenset())
            found = rounded.top(residual, rule, 5, frozenset())
            assert [atom for atom, _ in found] == [atom for atom, _ in wanted]
            np.testing.assert_allclose([s for _, s in found], [s for _, s in wanted], rtol=1e-4)
        for atom, _ in wanted:
            np.testing.assert_allclose(rounded.columns(atom), exact.columns(atom), rtol=1e-6)
            np.testing.assert_allclose(rounded.scale(atom), exact.scale(atom), rtol=1e-6)

    def test_the_whole_path_is_the_same(self, digits):
        images, y = digits
        images = images.astype(np.float32)
        tight = clone(SMALL).set_params(max_gib=2 * 108 * len(y) / 2**30)
        wanted = ShareBoostClassifier(8, pool=SMALL, random_state=0).fit(images, y)
        found = ShareBoostClassifier(8, pool=tight, random_state=0).fit(images, y)
        assert found.path_["feature"].tolist() == wanted.path_["feature"].tolist()
        np.testing.assert_allclose(found.coef_, wanted.coef_, rtol=1e-2, atol=1e-4)

    @pytest.mark.parametrize("factor", [1e-12, 1.0, 1e6])
    def test_half_precision_in_any_unit(self, digits, factor):
        xp = pytest.importorskip("array_api_compat.torch")
        X = digits[0].reshape(-1, 64) * factor
        exact = SMALL.prepare(X, random_state=0)
        tight = clone(SMALL).set_params(max_gib=3 * 108 * len(X) / 2**30)
        rounded = tight.prepare(xp.asarray(X), random_state=0)
        assert not rounded.exact
        residual = self.residual(len(X)).astype(np.float64)
        wanted = exact.top(residual, "l1", 5, frozenset())
        found = rounded.top(xp.asarray(residual), "l1", 5, frozenset())
        assert [atom for atom, _ in found] == [atom for atom, _ in wanted]
        np.testing.assert_allclose([s for _, s in found], [s for _, s in wanted], rtol=1e-9)

    def test_scales_are_kept(self, digits, monkeypatch):
        X = digits[0].reshape(-1, 64).astype(np.float32)
        monkeypatch.setattr("mixnorm.pools.patches.prepared._RESPONSES_TO_KEEP", 1)
        tight = clone(SMALL).set_params(max_gib=2 * 108 * len(X) / 2**30)
        prepared = tight.prepare(X, random_state=0)
        sizes = [prepared.scale((t, 0)) for t in range(4)]
        monkeypatch.setattr(Patches, "evaluate", None)  # nothing is computed again
        np.testing.assert_array_equal([prepared.scale((t, 0)) for t in range(4)], sizes)

    def test_too_little(self, digits):
        tight = clone(SMALL).set_params(max_gib=1e-9)
        with pytest.raises(ValueError, match=r"108 responses to 1797 images .* raise max_gib"):
            ShareBoostClassifier(3, pool=tight).fit(*digits)

    def test_shortlist_has_a_mask_per_template(self, digits):
        X = digits[0].reshape(-1, 64).astype(np.float32)
        prepared = SMALL.prepare(X, random_state=0)
        listed = prepared.shortlist(self.residual(len(X)), "l1", 8, frozenset())
        assert len({template for (template, _), _ in listed}) == 8


class TestModels:
    def test_images_and_rows_are_the_same(self, digits):
        images, y = digits
        a = ShareBoostClassifier(10, pool=SMALL, random_state=0).fit(images, y)
        b = ShareBoostClassifier(10, pool=SMALL, random_state=0).fit(images.reshape(-1, 64), y)
        assert a.path_["feature"].tolist() == b.path_["feature"].tolist()
        np.testing.assert_allclose(a.coef_, b.coef_)
        np.testing.assert_array_equal(a.predict(images), b.predict(images.reshape(-1, 64)))
        assert a.score(images, y) > 0.85

    def test_columns_made_by_hand(self, digits):
        images, y = digits[0][:600].astype(np.float32), digits[1][:600]
        model = ShareBoostClassifier(
            6, pool=SMALL, random_state=0, options=GreedyOptions(rule="l1")
        ).fit(images, y)
        pool = SMALL.for_images((8, 8)).learn(images.reshape(-1, 64), random_state=0)
        atoms = [(t, m) for t in range(12) for m in range(9)]
        table = pool.evaluate(images.reshape(-1, 64), atoms)
        plain = ShareBoostClassifier(
            6, pool=Columns(), options=GreedyOptions(rule="l1", scale="max")
        ).fit(table, y)
        assert [t * 9 + m for t, m in model.path_["feature"]] == plain.path_["feature"].tolist()
        np.testing.assert_allclose(model.path_["loss"], plain.path_["loss"], rtol=1e-3)

    def test_prediction_paths_agree(self, digits):
        images, y = digits
        model = ShareBoostClassifier(9, pool=SMALL, random_state=0).fit(images[:900], y[:900])
        scores = model.decision_function(images[900:])
        stages = list(model.staged_decision_function(images[900:]))
        np.testing.assert_allclose(stages[-1], scores, atol=1e-9)
        np.testing.assert_allclose(
            stages[3], model.truncate(4).decision_function(images[900:]), atol=1e-9
        )
        predict = model.predictor()
        rows = images[900:].reshape(-1, 64)
        np.testing.assert_array_equal(predict(rows), model.predict(images[900:]))
        assert predict(rows[0]) == model.predict(rows[:1])[0]

    def test_cost(self, digits):
        model = ShareBoostClassifier(5, pool=SMALL, random_state=0).fit(*digits)
        pool = model.pool_
        wanted = 0
        for atom in model.path_["feature"]:
            top, bottom, left, right = pool._find_scale(atom, 64).window(atom[1])
            wanted += (bottom - top) * (right - left) * (9 + 1)
        assert model.cost_.multiply_adds == wanted + 5 * 10

    def test_not_square(self, digits):
        images, y = digits
        wide = np.concatenate([images, np.zeros((len(images), 8, 3))], axis=2)
        model = ShareBoostClassifier(5, pool=SMALL, random_state=0).fit(wide, y)
        assert model.score(wide, y) > 0.6
        flat = ShareBoostClassifier(5, pool=SMALL.for_images((8, 11)), random_state=0)
        flat.fit(wide.reshape(-1, 88), y)
        np.testing.assert_array_equal(flat.predict(wide), model.predict(wide))

    def test_own_templates(self, digits):
        edges = np.zeros((2, 3, 3))
        edges[0, 0], edges[0, 2] = 1.0, -1.0
        edges[1] = edges[0].T
        pool = Patches(templates=edges, masks=16)
        model = ShareBoostClassifier(15, pool=pool).fit(*digits)
        assert {template for template, _ in model.path_["feature"]} == {0, 1}
        np.testing.assert_array_equal(model.pool_.template((1, 0)), edges[1])

    def test_regressor_and_union(self, digits):
        images, y = digits
        pool = Union([Columns(), SMALL])
        targets = np.stack([y == 1, y == 7], axis=1).astype(float)
        model = ShareBoostRegressor(6, pool=pool, random_state=0).fit(images, targets)
        assert any(kind == 1 for kind, _ in model.path_["feature"])
        assert model.score(images, targets) > 0.2
        rows = images.reshape(-1, 64)
        np.testing.assert_allclose(model.predict(rows), model.predict(images))

    def test_pickle_and_file(self, digits, tmp_path):
        images, y = digits
        model = ShareBoostClassifier(6, pool=SMALL, random_state=0).fit(images, y)
        save(model, tmp_path / "model.mixnorm")
        for copy in (pickle.loads(pickle.dumps(model)), load(tmp_path / "model.mixnorm")):
            np.testing.assert_array_equal(
                copy.decision_function(images), model.decision_function(images)
            )
            assert copy.path_["feature"].tolist() == model.path_["feature"].tolist()
            assert copy.cost_ == model.cost_

    def test_warm_start_keeps_the_templates(self, digits):
        images, y = digits
        model = ShareBoostClassifier(3, pool=SMALL, warm_start=True, random_state=None)
        first = model.fit(images, y).path_["feature"].tolist()
        templates = model.pool_.templates
        model.set_params(n_features_to_select=6).fit(images, y)
        assert model.path_["feature"].tolist()[:3] == first
        assert all(map(np.array_equal, model.pool_.templates, templates))
        assert len(model.path_["feature"]) == 6

    def test_inputs(self, digits):
        images, y = digits
        pool = Patches(size=3, n_templates=10, masks=16, reach=0.5)
        model = ShareBoostClassifier(4, pool=pool, max_inputs=30, random_state=0).fit(images, y)
        assert 0 < len(model.selected_) <= 30

    def test_words(self, digits):
        model = ShareBoostClassifier(2, pool=SMALL, random_state=0).fit(*digits)
        pool, atom = model.pool_, model.path_["feature"][0]
        words = pool.describe(atom, [f"x{j}" for j in range(64)])
        assert words.startswith(f"patch {atom[0]} (3 x 3) near row ")
        picture = pool.mask(atom, 64)
        assert picture.shape == (8, 8)
        assert picture.max() <= 1.0
        assert np.count_nonzero(picture) == pool._find_scale(atom, 64).n_positions(atom[1])

    def test_blank_images(self):
        images, y = np.ones((20, 8, 8)), np.arange(20) % 2
        with pytest.warns(FewerFeaturesWarning):
            model = ShareBoostClassifier(3, pool=SMALL).fit(images, y)
        assert model.predict(images).shape == (20,)


class TestErrors:
    @pytest.mark.parametrize(
        ("parameters", "error"),
        [
            ({"size": 1}, "at least 2"),
            ({"size": ()}, "no size"),
            ({"size": 9}, r"larger than the images, which have 8 x 8"),
            ({"n_templates": 0}, "at least 1"),
            ({"masks": 7}, "square"),
            ({"spread": 0.0}, "positive"),
            ({"reach": math.inf}, "finite"),
            ({"max_gib": -1.0}, "positive"),
            ({"shape": (4, 4)}, "other images"),
            ({"templates": np.zeros((2, 3, 4))}, r"\(n_templates, size, size\)"),
            ({"templates": np.full((2, 3, 3), np.nan)}, "finite"),
            ({"templates": np.zeros((2, 9, 9))}, "larger than the images"),
        ],
    )
    def test_values(self, digits, parameters, error):
        pool = clone(SMALL).set_params(**parameters)
        with pytest.raises(ValueError, match=error):
            ShareBoostClassifier(3, pool=pool).fit(*digits)

    @pytest.mark.parametrize(
        "parameters", [{"size": 2.5}, {"n_templates": True}, {"spread": "1"}, {"masks": None}]
    )
    def test_types(self, digits, parameters):
        pool = clone(SMALL).set_params(**parameters)
        with pytest.raises(TypeError, match="number"):
            ShareBoostClassifier(3, pool=pool).fit(*digits)

    def test_rows_that_are_no_images(self):
        with pytest.raises(ValueError, match="not square"):
            ShareBoostClassifier(3, pool=SMALL).fit(np.zeros((4, 10)), [0, 1, 0, 1])
        with pytest.raises(ValueError, match="as rows here"):
            SMALL.prepare(np.zeros((4, 8, 8)))
        with pytest.raises(ValueError, match="12 pixels, but X has 10 columns"):
            Patches(size=2, shape=(3, 4)).prepare(np.zeros((4, 10)))

    def test_too_large_numbers(self):
        X = drawn(dtype=np.float32) * np.float32(1e30)
        with pytest.raises(ValueError, match="divide the images"):
            Patches(size=2, shape=(6, 7)).prepare(X)

    def test_other_images_than_those_of_the_fit(self, digits):
        model = ShareBoostClassifier(3, pool=SMALL, random_state=0).fit(*digits)
        with pytest.raises(ValueError, match="8"):
            model.predict(np.zeros((2, 4, 16)))

    def test_not_fitted(self):
        with pytest.raises(NotFittedError):
            _ = ShareBoostClassifier(pool=SMALL).pool_

    def test_no_templates_yet(self):
        with pytest.raises(ValueError, match="learned in fit"):
            SMALL.evaluate(np.zeros((2, 64)), [(0, 0)])

    @pytest.mark.parametrize("atom", [(12, 0), (0, 9), (0, 0, 0), (0.0, 0), "00"])
    def test_no_atoms(self, atom):
        X = drawn(shape=(8, 8))
        with pytest.raises(ValueError, match="atom"):
            SMALL.learn(X, random_state=0).n_columns(atom, 64)


def test_responses_are_freed_with_the_last_one_who_needs_them():
    # No cycle of references: on a GPU, the next fit would not find the memory.
    rows = drawn()
    pool = Patches(size=3, n_templates=4, masks=4).for_images((6, 7))
    data = pool.learn(rows, random_state=0).prepare(rows)
    data.columns((0, 0))
    left = weakref.ref(data)
    del data
    assert left() is None
