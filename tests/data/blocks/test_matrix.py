

def test_large_arrays_by_row_are_in_files(tmp_path):
    scores = np.asfortranarray(np.random.default_rng(0).standard_normal((50, 3)))
    table = from_arrays(np.zeros((50, 2)), memory=32 * scores.nbytes - 1, folder=str(tmp_path))
    matrix = BlockMatrix(table, np.dtype(float))
    kept = matrix.keep_rows(scores)
    assert np.array_equal(kept, scores)
    assert kept.flags.f_contiguous
    assert type(kept) is np.ndarray
    base = kept
    while isinstance(base.base, np.ndarray):
        base = base.base
    assert isinstance(base, np.memmap)
    assert not list(tmp_path.iterdir())  # the file has no name
    assert matrix.keep_rows(scores[:10]) is not kept
    small = scores[:40]
    assert matrix.keep_rows(small) is small
