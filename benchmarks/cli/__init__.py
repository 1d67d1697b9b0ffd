"""The command line and short scripts: from two CSV files of mnist to predictions.

Each line of the table is a few whole processes on all cores. Wall-clock seconds, CPU seconds and
peak memory count from start to end, imports included. "mixnorm fit, then predict" and the scripts
do the same work: they read the training file, fit 20 features, write the model, read the test
file, write the predictions and score them. The scripts are what a user without mixnorm would
write: they read with pandas, and choose and fit with abess or scikit-learn.

All of it is in ``command.py``.
"""
