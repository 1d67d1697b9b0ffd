"""Texts of ``--help`` in addition to the options: examples and notes."""

ABOUT = """\
Learn from a table with a few features that all classes share.

examples:
  mixnorm fit cars.csv --target class --features 20 --report report.html
  mixnorm path cars.csv --target class
  mixnorm predict cars.mixnorm new.csv --output predictions.csv
  mixnorm show cars.mixnorm
  mixnorm stream rows.csv --target label         # a row at a time; --resume continues
  mixnorm advise cars.csv --target class         # which norm to use
  mixnorm demo
"""
ENDINGS = """\
exit status: 0 done, 1 a problem with the data (one line explains it), 2 wrong usage.
"""
FIT = """\
examples:
  mixnorm fit cars.csv --target class --features 20 --report report.html --model cars.mixnorm
  mixnorm fit cars.csv --target class            # cross-validation chooses the size
  mixnorm fit cars.csv --target class --nested   # and measures the error on separate rows
  mixnorm fit prices.parquet --target price --task regression --drop id
  zcat big.csv.gz | mixnorm fit - --target label --features 10 --model big.mixnorm
  mixnorm fit news20.svm --features 50           # LIBSVM files contain the target
  mixnorm fit cars.csv --target class --pool stumps --max-inputs 5 --max-features 60
  mixnorm fit 'data/*.parquet' --target label --features 20 --memory 1GiB
  mixnorm fit data --target label --features 20 --cluster tcp://host:8786 --checkpoint run.ckpt
Parquet files in a folder or of a pattern are read block by block, and need not fit into memory.
Ctrl-C stops the search, keeps the features found so far, and writes the model and the report.
"""
PATH = """\
examples:
  mixnorm path cars.csv --target class
  mixnorm path cars.csv --target class --features 60 --json > curve.json
"""
PREDICT = """\
examples:
  mixnorm predict cars.mixnorm new.csv --output predictions.csv
  mixnorm predict cars.mixnorm new.csv --probabilities --keep id
  cat new.csv | mixnorm predict cars.mixnorm -
  mixnorm predict cars.mixnorm 'new/*.parquet' --output predictions.parquet   # of any size
The new table needs only the columns that the model uses (mixnorm show lists them).
"""
STREAM = """\
examples:
  mixnorm stream rows.csv --target label --model rows.mixnorm
  mixnorm stream rows.csv --model rows.mixnorm --resume      # continue where it stopped
  tail -f log.csv | mixnorm stream --target label --model log.mixnorm --checkpoint 1000
  mixnorm stream words.jsonl --target topic --hash 262144 --predictions guesses.csv
  mixnorm stream prices.csv --target price --learner regressor --every 10000
Ctrl-C stops after the current row and keeps what was learned. mixnorm predict applies the model.
"""
ADVISE = """\
examples:
  mixnorm advise cars.csv --target class --report advice.html
  mixnorm advise prices.parquet --target price --task regression
All norms are compared on the same folds: l1,1 (few weights), l2,1 (few columns), l2,2 (no weight is
zero) and trace (few directions).
"""
COMPLETION = """\
example:
  mixnorm completion bash > ~/.local/share/bash-completion/completions/mixnorm
"""
