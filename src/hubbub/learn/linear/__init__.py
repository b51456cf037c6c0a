"""Linear models: regression, logistic regression, support vectors and the perceptron."""
