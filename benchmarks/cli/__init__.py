"""The command line: mnist from two CSV files to predictions with 20 features, beside short scripts.

Every line is timed as whole processes, on all cores: wall-clock seconds, CPU seconds and peak
memory from start to end, imports included. "mixnorm fit, then predict" and the scripts do the same
work: they read the training file, fit, write the model, read the test file, write predictions and
score them. The scripts are what a user without mixnorm would write: pandas to read, abess or
scikit-learn to choose and fit.

All of it is in ``command.py``.
"""
