"""ONNX graphs of the model, and the weights that they read."""
