"""Who answers a request: a model in this process, or a server elsewhere."""
