"""One service on many machines: what balancers are told, and the service on a Ray cluster."""
