"""The network in torch: the one that is trained, and the reference for the ONNX graphs."""
