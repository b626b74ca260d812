"""One architecture twice: in torch and as ONNX graphs."""
