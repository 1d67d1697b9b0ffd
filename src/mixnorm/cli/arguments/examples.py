"""What --help says beside the options: what a command is for, and examples of it."""

ABOUT = """\
Learn from a table with few features, shared by all classes.

examples:
  mixnorm fit cars.csv --target class --features 20 --report report.html
  mixnorm path cars.csv --target class
  mixnorm predict cars.mixnorm new.csv --output predictions.csv
  mixnorm show cars.mixnorm
  mixnorm stream rows.csv --target label         # a row at a time; goes on with --resume
  mixnorm advise cars.csv --target class         # which norm to use
  mixnorm demo
"""
ENDINGS = """\
exit status: 0 done, 1 the data do not allow it (one line says why), 2 wrong usage.
"""
FIT = """\
examples:
  mixnorm fit cars.csv --target class --features 20 --report report.html --model cars.mixnorm
  mixnorm fit cars.csv --target class            # the size is chosen by cross-validation
  mixnorm fit cars.csv --target class --nested   # and its error measured without optimism
  mixnorm fit prices.parquet --target price --task regression --drop id
  zcat big.csv.gz | mixnorm fit - --target label --features 10 --model big.mixnorm
  mixnorm fit news20.svm --features 50           # LIBSVM files carry their target
  mixnorm fit cars.csv --target class --pool stumps --max-inputs 5 --max-features 60
Ctrl-C ends the search, keeps the features found so far, and writes model and report.
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
The new table needs only the columns that the model uses (mixnorm show lists them).
"""
STREAM = """\
examples:
  mixnorm stream rows.csv --target label --model rows.mixnorm
  mixnorm stream rows.csv --model rows.mixnorm --resume      # go on where it was stopped
  tail -f log.csv | mixnorm stream --target label --model log.mixnorm --checkpoint 1000
  mixnorm stream words.jsonl --target topic --hash 262144 --predictions guesses.csv
  mixnorm stream prices.csv --target price --learner regressor --every 10000
Ctrl-C ends it after the row, and keeps what was learned. mixnorm predict applies the model.
"""
ADVISE = """\
examples:
  mixnorm advise cars.csv --target class --report advice.html
  mixnorm advise prices.parquet --target price --task regression
Norms are compared on the same folds: l1,1 (single weights), l2,1 (whole columns), l2,2 (none set to
zero) and trace (few directions).
"""
COMPLETION = """\
example:
  mixnorm completion bash > ~/.local/share/bash-completion/completions/mixnorm
"""
