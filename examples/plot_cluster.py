"""
Rows on a cluster
=================

A table that does not fit into memory is read in blocks of rows. Here two workers of a Dask
cluster on this machine compute the sums over the blocks. The model is the one that a single
thread finds, to the last bit.
"""

# %%
# The rows lie in Parquet files: 30 columns, of which six decide between four classes. A real
# table would have millions of rows; this one is small, so that the page is built quickly.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from dask.distributed import Client, LocalCluster

from mixnorm import ShareBoostClassifier
from mixnorm.data import read_parquet

rng = np.random.default_rng(0)
weights = np.zeros((30, 4))
weights[:6] = rng.standard_normal((6, 4)) * np.linspace(1.5, 0.5, 6)[:, None]
folder = tempfile.TemporaryDirectory()
for part in range(3):
    X = rng.standard_normal((50_000, 30)).astype(np.float32)
    label = np.argmax(X @ weights + rng.gumbel(size=(50_000, 4)), axis=1)
    columns = {f"x{j}": X[:, j] for j in range(30)} | {"label": label}
    pq.write_table(pa.table(columns), Path(folder.name) / f"part{part}.parquet")

# %%
# One thread of this process, then two workers. ``Client`` makes the cluster the one that tables
# use.
# The workers of this page are threads too; without ``processes=False`` they are processes, and a
# script then starts the cluster under ``if __name__ == "__main__":``.

options = {"target": "label", "block_rows": 16_384, "memory": "100 MB"}
alone = ShareBoostClassifier(8).fit(read_parquet(folder.name, executor=1, **options))

cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0")
with cluster, Client(cluster):
    table = read_parquet(folder.name, **options)
    together = ShareBoostClassifier(8).fit(table)

print("chosen:", together.selected_names_)
print("the same bits:", np.array_equal(alone.coef_, together.coef_))

# %%
# A path of eight features does not read the table eight times. One pass finds means and deviations.
# Then, in tables of at least 131,072 rows, a sample of rows ranks the columns, and only those that
# may be chosen are read.

size = sum(file.stat().st_size for file in Path(folder.name).iterdir())
print(f"read {table.bytes_read / size:.1f} times the size of the files")

losses = together.path_["loss"]
fig, ax = plt.subplots(figsize=(6, 3.5))
ax.plot(np.arange(len(losses) + 1), [together.null_loss_, *losses], marker="o")
ax.set_xlabel("features")
ax.set_ylabel("training loss")
ax.set_title("The whole path, from blocks of rows")
plt.show()
folder.cleanup()
