import json

import numpy as np
import pytest

pytest.importorskip("resource", reason="CPU limits need a POSIX system")

from benchmarks.harness.jobs import Job, Store
from benchmarks.shareboost_paper import chars, pieces, products
from benchmarks.shareboost_paper import classes as paper_classes

CURVE = [(3, 50.0), (5, 20.0), (9, 25.0), (12, 10.0)]


class TestClasses:
    @pytest.mark.parametrize(
        ("error", "features"), [(60.0, 3), (50.0, 3), (20.0, 5), (19.9, 12), (9.0, None)]
    )
    def test_first_model_that_is_as_good(self, error, features):
        assert paper_classes.count_needed(CURVE, error) == features

    def test_mean_over_orders(self):
        curves = [CURVE, [(1, 40.0), (2, 20.0)]]
        assert paper_classes.average_needed(curves, 20.0) == 3.5
        assert paper_classes.average_needed(curves, 10.0) is None
        assert paper_classes.average_needed([], 10.0) is None

    def test_targets_are_reached_by_all(self):
        shared = {"2": [CURVE], "4": [CURVE, CURVE]}
        apart = {"2": [CURVE], "4": [CURVE, [(8, 22.0)]]}
        assert paper_classes.find_targets([shared], (60.0, 20.0, 10.0, 5.0)) == [60.0, 20.0, 10.0]
        assert paper_classes.find_targets([shared, apart], (60.0, 20.0, 10.0, 5.0)) == [60.0]

    def test_same_error_for_every_pair(self):
        curves = {"2": [CURVE], "6": [CURVE]}
        assert paper_classes.count_by_classes(curves, 50.0) == {2: 3, 6: 3}
        assert paper_classes.count_by_classes(curves, 50.0, by_pair=True) == {2: 12, 6: 3}
        assert paper_classes.find_targets([curves], (50.0, 40.0), by_pair=True) == [50.0]

    def test_exponent(self):
        found = {2: 1.0, 4: 2.0, 8: 8.0, 16: 32.0}
        assert paper_classes.fit_exponent(found, 4) == pytest.approx(2)
        assert 1 < paper_classes.fit_exponent(found) < 2
        assert paper_classes.fit_exponent({2: 1.0}) is None

    def test_subsets_are_nested_and_all_classes_come_once(self):
        kept = list(paper_classes.draw_subsets(5, (2, 4, 5), 3))
        assert [size for size, _ in kept] == [2, 2, 2, 4, 4, 4, 5]
        for order in range(3):
            assert set(kept[order][1]) < set(kept[3 + order][1])
        assert len({tuple(classes) for _, classes in kept[3:6]}) > 1

    def test_counts_of_both_estimators(self):
        rng = np.random.default_rng(0)
        y = np.arange(120) % 3
        X = rng.standard_normal((120, 6)).astype(np.float32)
        X[:, :3] += 3 * np.eye(3)[y]
        for method in paper_classes.METHODS:
            model = paper_classes.make_estimator("letter", "columns", method, 1e-4, 3).fit(X, y)
            assert model.options_.scale == "max"  # as in the paper, whatever the default is
            curve = paper_classes.measure_curve(model, X, y)
            assert len(curve) == 3
            assert curve[0][0] == (1 if method == paper_classes.SHARED else 3)
            assert curve[-1][1] < 15

    def test_ridge_is_one_of_those_tried(self):
        rng = np.random.default_rng(0)
        y = np.arange(60) % 2
        X = rng.standard_normal((60, 4)).astype(np.float32) + y[:, None]

        def make(alpha):
            return paper_classes.make_estimator("letter", "columns", paper_classes.SHARED, alpha, 2)

        assert paper_classes.choose_alpha(make, X, y) in paper_classes.ALPHAS

    def test_checks(self):
        def curves(power):  # one feature per class, or one for every two
            return {"curves": {str(k): [[(k**power, 8.0)]] for k in (2, 4, 16)}}

        found = {"d/p/ShareBoost": curves(0.5), "d/p/one-vs-rest": curves(1.5)}
        checks = list(paper_classes.check_bar(found))
        assert {check.passed for check in checks} == {True}
        swapped = {"d/p/ShareBoost": curves(1.5), "d/p/one-vs-rest": curves(0.5)}
        assert {check.passed for check in paper_classes.check_bar(swapped)} == {False}
        assert not list(paper_classes.check_bar({"d/p/ShareBoost": curves(1)}))


class TestCharacters:
    @pytest.fixture(autouse=True)
    def few(self, monkeypatch):
        monkeypatch.setattr(chars, "TEMPLATES", 5)

    @pytest.fixture
    def stored(self, monkeypatch):
        from sklearn.utils import Bunch

        from mixnorm import datasets

        rng = np.random.default_rng(0)
        y = np.arange(360) % 40
        X = rng.integers(0, 256, (360, 20, 20), dtype=np.uint8)
        monkeypatch.setattr(datasets, "load", lambda name: Bunch(name=name, X=X, y=y))
        return X, y

    def test_bright_and_dark_characters_are_the_same(self):
        image = np.full((20, 20), 40, dtype=np.uint8)
        image[6:14, 9:11] = 200
        images = np.stack([image, 255 - image, image // 4, np.full_like(image, 7)])
        found = chars.level_images(images)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found[1], found[0], atol=1e-5)
        np.testing.assert_allclose(found[2], found[0], atol=1e-5)
        np.testing.assert_allclose(found[:3].mean(axis=(1, 2)), 0, atol=1e-5)
        np.testing.assert_allclose(found[:3].std(axis=(1, 2)), 1, rtol=1e-5)
        assert found[0, 10, 10] > 0
        assert (found[3] == 0).all()

    def test_a_column_for_every_patch(self, stored):
        X, y, X_test, y_test = chars.make_patches()
        assert X.shape == (226, 5 * 16)
        assert X_test.shape == (98, 5 * 16)
        assert X.dtype == X_test.dtype == np.float32
        assert set(y) == set(y_test) == set(range(36))
        fewer = chars.make_patches(rows=100)
        assert fewer[0].shape == (100, 80)
        np.testing.assert_array_equal(fewer[3], y_test)

    def test_columns_are_those_that_the_pool_would_fit(self):
        from mixnorm import ShareBoostClassifier
        from mixnorm.pools import Patches

        rng = np.random.default_rng(0)
        y = np.arange(150) % 3
        X = rng.standard_normal((150, 12, 12)).astype(np.float32)
        for k in range(3):
            X[y == k, 1 + 3 * k : 4 + 3 * k, 3:9] += 2
        columns, _ = chars.compute_responses(X, X[:1])
        # By the rule that has no shortlist: that of patches is one of templates.
        given = {"alpha": 1e-4, "options__rule": "l1", "options__scale": "max", "random_state": 0}
        pool = Patches(chars.SIZE, 5, chars.MASKS)
        patches = ShareBoostClassifier(3, pool=pool).set_params(**given).fit(X, y)
        plain = ShareBoostClassifier(3).set_params(**given).fit(columns, y)
        places = [template * chars.MASKS + mask for template, mask in patches.path_["feature"]]
        assert list(plain.path_["feature"]) == places

    def test_measured_like_the_others(self, stored):
        options = {"sizes": [2, 4], "orders": 1, "rounds": 2}
        for method in paper_classes.METHODS:
            found = paper_classes.measure("chars74k", "patches", method, **options)
            assert {size: len(curves) for size, curves in found["curves"].items()} == {
                "2": 1,
                "4": 1,
            }
            assert len(found["curves"]["4"][0]) == 2

    def test_sizes_end_with_all_classes(self):
        assert paper_classes.OF_36[-1] == chars.CLASSES


class TestProducts:
    def test_pairs_of_different_columns(self):
        X = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype=np.float32)
        made = products.multiply_columns(X)
        assert made.dtype == np.float32
        assert made.tolist() == [[2, 3, 6], [20, 24, 30]]
        assert products.count_atoms(np.vstack([X, X * [[1, -1, 1]]])) == 3

    def test_numbers_of_products(self):
        inputs = {"satimage": 36, "pendigits": 16, "isolet": 617}
        assert {n: d * (d - 1) // 2 for n, d in inputs.items()} == products.ATOMS

    def test_plan_keeps_large_tables_from_isolet(self):
        jobs = products.plan(["pendigits", "isolet"], 60)
        methods = {
            data: [j.method for j in jobs if j.data == data] for data in ("isolet", "digits")
        }
        assert "products" in methods["isolet"]
        assert "JointBoost" not in methods["isolet"]
        assert not methods["digits"]

    def test_size_is_not_cut_to_the_number_of_inputs(self):
        X = np.ones((3, 16), dtype=np.float32)
        assert products.METHODS["products"].most(X) == products.ATOMS["pendigits"]

    def test_rivals_are_methods(self):
        named = {*products.RIVALS, *sum(products.RIVALS.values(), ())}
        assert named <= set(products.METHODS)

    @pytest.mark.parametrize("name", ["products", "stumps", "JointBoost"])
    def test_every_round_is_a_point(self, name):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((90, 4)).astype(np.float32)
        y = (X[:, 0] * X[:, 1] > 0).astype(int) + (X[:, 2] * X[:, 3] > 0)
        method = products.METHODS[name]
        Z = method.convert(X)
        fitted = method.fit(Z, y, 3, **method.tune(Z, y, 3))
        if name.startswith(("products", "stumps")):
            assert fitted.options_.scale == "max"
        points = method.points(fitted, 3)
        assert [point.size for point in points] == [1, 2, 3]
        assert points[-1].share == 1
        assert np.mean(points[-1].predict(Z) == y) > 0.5
        assert points[0].features == 1

    def test_table_and_checks(self):
        runs = by_key(
            record("products", 60, seconds=2.0, error=5.0),
            record("JointBoost", 60, seconds=3.0, error=6.0),
            record("JointBoost, all cuts", 60, limit=300.0, status="timeout"),
        )
        found = list(products.check_bar(runs, {"satimage": 629}))
        assert [(c.asked, c.passed) for c in found] == [
            ("630", False),
            ("lower error from 5", True),
            ("faster", True),
            ("faster", True),
        ]
        (table,) = products.make_tables(runs)
        assert list(table.columns[-1].cells) == ["1.0", "1.5", "> 150.0"]


class TestPieces:
    FOUND = {  # noqa: RUF012
        "pieces": {"rows": 9, "seconds": 1.0, "points": [[100, 2.0], [200, 1.6]]},
        "svm": {"rows": 9, "seconds": 1.0, "points": [[5000, 1.4]]},
    }

    def test_checks(self):
        assert [check.passed for check in pieces.check_bar(self.FOUND)] == [True, True]
        many = self.FOUND | {"svm": self.FOUND["svm"] | {"points": [[3999, 1.4]]}}
        assert [check.passed for check in pieces.check_bar(many)] == [True, False]
        assert not list(pieces.check_bar({}))

    def test_table(self):
        (table,) = pieces.make_tables(self.FOUND)
        assert list(table.columns[-1].cells) == ["50", "25", ""]


def record(method, size, *, status="ok", error=None, **more):
    place = {"suite": products.SUITE, "data": "satimage", "method": method, "size": size}
    points = [{"size": s, "features": s, "error": error, "share": 1.0} for s in (10, size)]
    made = place | {"resampling": 0, "status": status} | more
    return made if error is None else made | {"points": points}


def by_key(*records):
    return {"{data}/{method}/{size}/{resampling}".format(**r): r for r in records}


def test_command_line_reports_what_is_stored(tmp_path, capsys):
    from benchmarks.__main__ import main

    path = tmp_path / "results.json"
    store = Store(path)
    job = Job(products.SUITE, "satimage", "products", 60)
    store.add(job, record("products", 60, seconds=2.0, error=5.0))
    store.put("pieces", TestPieces.FOUND)
    store.put("atoms", {"satimage": 630})
    assert main(["shareboost-paper", "--no-runs", "--json", str(path), "--check"]) == 0
    assert "630 products" in capsys.readouterr().out
    summary = json.loads(path.read_text())["summary"]
    assert [check["passed"] for check in summary] == [True, True, True]
