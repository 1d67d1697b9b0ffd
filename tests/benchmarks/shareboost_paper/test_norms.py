"""Mixed norms beside ShareBoost: products of inputs, and copies of the same bits."""

import numpy as np
import pytest

pytest.importorskip("resource", reason="CPU limits need a POSIX system")

from benchmarks.shareboost_paper import bits as paper_bits
from benchmarks.shareboost_paper import norms, products


class TestNorms:
    def test_plan(self):
        jobs = norms.plan(["satimage", "isolet"])
        methods = {
            data: {j.method for j in jobs if j.data == data} for data in ("satimage", "isolet")
        }
        assert {"l2,1", "linf,1", "l2,1, standardised"} <= methods["satimage"]
        assert methods["isolet"].isdisjoint(methods["satimage"])
        assert not norms.METHODS.keys() & products.METHODS.keys()

    @pytest.mark.parametrize("name", ["l2,1", "linf,1, standardised", "l2,1 of inputs"])
    # In single precision the smallest penalties may end above the gap, by rounding.
    @pytest.mark.filterwarnings("ignore::mixnorm.exceptions.NotConvergedWarning")
    def test_every_penalty_is_a_point(self, name):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((150, 5)).astype(np.float32)
        y = (X[:, 0] * X[:, 1] > 0).astype(int) + (X[:, 2] * X[:, 3] > 0)
        method = norms.METHODS[name]
        Z = method.convert(X)
        points = method.points(method.fit(Z, y, 8), 8)
        assert len(points) == 8
        assert points[0].features == 0
        assert points[-1].features > 1
        if method.expand:
            assert np.mean(points[-1].predict(Z) == y) > 0.6

    def test_predictions_are_those_of_the_classifier(self):
        from mixnorm import MixedNormClassifier

        rng = np.random.default_rng(0)
        X = rng.standard_normal((100, 6)) * 4 + 2
        y = np.asarray(["a", "b", "c"])[np.argmax(X[:, :3], axis=1)]
        method = norms.Path(standardise=True, expand=False, ratio=0.1)
        fitted = method.fit(X, y, 4)
        last = method.points(fitted, 4)[-1]
        scaled = (X - X.mean(axis=0)) / X.std(axis=0)
        model = MixedNormClassifier("l2,1", alpha=fitted[3].alphas[-1], tol=1e-6).fit(scaled, y)
        assert np.mean(last.predict(X) == model.predict(scaled)) > 0.97

    def test_error_of_the_last_model_that_is_small_enough(self):
        sizes, errors = (0, 3, 8, 7, 15), (90.0, 50.0, 30.0, 28.0, 20.0)
        points = [{"features": f, "error": e} for f, e in zip(sizes, errors, strict=True)]
        record = {"points": points}
        assert [norms.find_error(record, size) for size in (2, 3, 7, 10, 15, 16)] == [
            None,
            50.0,
            28.0,
            28.0,
            20.0,
            None,
        ]
        assert norms.find_error({"status": "timeout"}, 5) is None

    def test_table_and_checks(self):
        def record(suite, method, error):
            points = [{"size": s, "features": s, "error": error} for s in (10, 20, 40)]
            place = {"suite": suite, "data": "satimage", "method": method, "size": 60}
            return place | {"status": "ok", "seconds": 1.0, "points": points}

        runs = {
            "a": record(products.SUITE, "products", 5.0),
            "b": record(norms.SUITE, "l2,1", 6.0),
            "c": record(norms.SUITE, "linf,1", 4.0),
        }
        (table,) = norms.make_tables(runs)
        assert list(table.columns[0].cells) == ["products", "l2,1", "linf,1"]
        assert [check.passed for check in norms.check_bar(runs)] == [True, False]
        assert not list(norms.make_tables({"a": runs["a"]}))


class TestBits:
    def test_whole_distribution(self):
        X, y, weight = paper_bits.list_outcomes(8, 3, zeroed=0.3)
        assert X.shape == (8 * 4, 9)
        assert weight.sum() == pytest.approx(8)
        # Of each class a tenth has the first copy zeroed.
        assert weight[(X[:, 0] == 0) & (y == 5)] == pytest.approx([0.1])

    @pytest.mark.parametrize(("classes", "copies"), [(16, 4), (16, 8), (32, 4)])
    def test_mixed_norm_uses_every_copy_and_shareboost_does_not(self, classes, copies):
        data = paper_bits.list_outcomes(classes, copies)
        bits = int(np.log2(classes))
        spread = paper_bits.measure_norm("linf,1", *data)
        assert spread["features"] == [bits * copies] * len(paper_bits.SHARES)
        greedy = paper_bits.measure_shareboost(*data, 3 * bits)
        assert paper_bits.count_needed(greedy, 0.0) <= 2 * bits
        assert greedy["errors"][bits - 1] <= 100 * paper_bits.ZEROED

    def test_drawn_rows_are_spread_over_many_copies(self):
        data = paper_bits.draw_examples(16, 8)
        greedy = paper_bits.measure_shareboost(*data, 12)
        features = paper_bits.measure_norm("linf,1", *data)["features"]
        assert features[-1] == 32
        assert paper_bits.count_needed(greedy, 0.0) <= 8

    def test_table_and_checks(self):
        found = {"all": paper_bits.measure((16,), (2, 4))}
        assert len(list(paper_bits.make_tables(found))) == 2
        assert [check.passed for check in paper_bits.check_bar(found)] == [True, True]
        assert not list(paper_bits.make_tables({}))
        assert not list(paper_bits.check_bar({}))
        sparse = found["all"]["curves"]["whole/16/4"]["linf,1"]
        sparse["features"] = [4] * len(paper_bits.SHARES)
        assert [check.passed for check in paper_bits.check_bar(found)] == [False, True]
