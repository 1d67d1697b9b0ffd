"""The numbers by which compiled loops know losses; they are here to be read without numba."""

PERCEPTRON = 0  # one for a mistake; its derivative is that of the hinge of the class predicted
MULTICLASS_HINGE = 1
SOFTMAX = 2  # its constant is the margin
BOX = 3  # of numbers; its constants are those of its box
MARGIN_BOX = 4  # of targets -1 and +1, as all that follow
LOGISTIC = 5
