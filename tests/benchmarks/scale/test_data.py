"""The drawn tables: which columns matter, what the files hold, the same seed."""

import numpy as np
import pytest

pytest.importorskip("pyarrow")

from benchmarks.scale import data, panel


class TestTable:
    def test_columns_that_matter(self):
        truth = data.draw_truth(60)
        assert len(set(truth.order)) == data.USEFUL == 25
        sizes = np.sqrt(np.mean(truth.weights**2, axis=1))
        assert set(np.flatnonzero(sizes)) == set(truth.order)
        # Strengths are 125 %, 120 %, ..., 5 %, in units that give the scores their deviation.
        unit = sizes[truth.order[-1]] / 0.05
        np.testing.assert_allclose(sizes[truth.order] / unit, np.arange(25, 0, -1) * 0.05)
        np.testing.assert_allclose(np.sum(sizes**2), data.SIGNAL**2)
        np.testing.assert_allclose(truth.weights.sum(axis=1), 0.0, atol=1e-12)

    def test_few_columns_all_matter(self):
        assert sorted(data.draw_truth(7).order) == list(range(7))

    def test_files(self, small_groups, tmp_path):
        from pyarrow import parquet

        table = data.prepare_table(750, 30, tmp_path, test_rows=120)
        files = [parquet.ParquetFile(path) for path in sorted(table.train.iterdir())]
        assert [file.metadata.num_rows for file in files] == [300, 300, 150]
        assert [file.num_row_groups for file in files] == [3, 3, 2]
        assert files[0].schema_arrow.names == [*data.name_columns(30), data.TARGET]
        first = files[0].metadata.row_group(0)
        assert "RLE_DICTIONARY" not in first.column(0).encodings
        X, y = data.read_arrays(table.train, 750)
        assert (X.dtype, X.flags.f_contiguous, X.shape) == (np.float32, True, (750, 30))
        assert set(y) <= set(range(data.CLASSES))
        assert table.bytes == sum(path.stat().st_size for path in table.train.iterdir())
        assert not list(tmp_path.glob("*.partial"))

    def test_same_seed_same_rows(self, small_groups, tmp_path):
        many, few = (
            data.prepare_table(rows, 30, tmp_path / str(rows), test_rows=50) for rows in (350, 230)
        )
        X, y = data.read_arrays(many.train, 230)
        for place in (few, data.prepare_table(230, 30, tmp_path / "again", test_rows=50)):
            X_few, y_few = data.read_arrays(place.train, 230)
            np.testing.assert_array_equal(X_few, X)
            np.testing.assert_array_equal(y_few, y)
        X_test, _ = data.read_arrays(many.test, 50)
        assert not np.array_equal(X_test, X[:50])
        other = data.prepare_table(230, 30, tmp_path / "other", seed=1, test_rows=50)
        assert not np.array_equal(data.read_arrays(other.train, 230)[0], X)

    def test_a_table_is_drawn_once(self, small_groups, tmp_path, monkeypatch):
        table = data.prepare_table(100, 5, tmp_path, test_rows=10)
        monkeypatch.setattr(data, "write_rows", None)
        assert data.prepare_table(100, 5, tmp_path, test_rows=10) == table

    def test_an_interrupted_draw_leaves_nothing(self, small_groups, tmp_path, monkeypatch):
        def interrupt(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr(data, "describe_truth", interrupt)
        with pytest.raises(KeyboardInterrupt):
            data.prepare_table(100, 5, tmp_path, test_rows=10)
        assert not list(tmp_path.iterdir())

    def test_too_many_rows(self, small_groups, tmp_path):
        table = data.prepare_table(100, 5, tmp_path, test_rows=10)
        with pytest.raises(ValueError, match="has 100 rows, but 101"):
            data.read_arrays(table.train, 101)

    def test_errors_of_the_true_model(self):
        found = data.describe_truth(data.draw_truth(40))
        assert 25 < found["best_error"] < found["best_error_20"] < 40
        assert len(found["useful"]) == len(found["strengths"]) == 25

    def test_cache(self, monkeypatch, tmp_path):
        monkeypatch.setenv("MIXNORM_CACHE", str(tmp_path))
        assert data.find_cache() == tmp_path / "scale"
        monkeypatch.delenv("MIXNORM_CACHE")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert data.find_cache() == tmp_path / "mixnorm" / "scale"

    def test_largest_penalty(self, small_groups, tmp_path):
        from mixnorm import MixedNormClassifier

        table = data.prepare_table(400, 8, tmp_path, test_rows=10)
        scale = data.find_scale(table)
        X, y = data.read_arrays(table.train, 400)
        for share, active in ((1.01, False), (0.99, True)):
            model = MixedNormClassifier("l2,1", alpha=share * scale["alpha_max"]).fit(X, y)
            assert np.any(model.coef_) == active
            if not active:
                assert scale["null_loss"] == pytest.approx(model.objective_, rel=1e-4)
        assert data.find_scale(table) == scale


class TestPanel:
    def test_panel(self, tmp_path, monkeypatch):
        monkeypatch.setattr(panel, "CELLS_AT_ONCE", 100)
        made = panel.prepare_panel(250, 400, tmp_path)
        X, y = made.read()
        assert (X.shape, X.format, X.dtype) == ((250, 400), "csr", np.float32)
        assert X.nnz / (250 * 400) == pytest.approx(panel.FILLED, rel=0.2)
        assert set(y) == set(range(panel.TYPES))
        assert X.data.min() == 1
        np.testing.assert_array_equal(X.data, np.round(X.data))
        again, _ = panel.prepare_panel(250, 400, tmp_path / "again").read()
        assert (again != X).nnz == 0
        X_test, _ = made.read("test")
        assert (X_test != X).nnz > 0

    def test_types_differ_in_their_markers(self):
        rates = panel.draw_rates(500)
        assert rates.shape == (panel.TYPES, 500)
        raised = rates > rates.min(axis=0)
        assert raised.any(axis=1).all()
        assert raised.sum(axis=1).max() <= panel.MARKERS
