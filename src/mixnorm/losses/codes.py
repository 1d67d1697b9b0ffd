"""The numbers of losses in compiled loops, in a module of their own that does not load numba."""

PERCEPTRON = 0  # one for a mistake; its derivative is that of the hinge of the predicted class
MULTICLASS_HINGE = 1
SOFTMAX = 2  # its constant is the margin
BOX = 3  # targets are numbers; the constants are those of the box
MARGIN_BOX = 4  # targets are -1 and +1, here and in all codes from here on
LOGISTIC = 5
