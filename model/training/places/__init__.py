"""Training of the ranker of places (``redraft train places``)."""
