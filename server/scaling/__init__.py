"""Several machines: settings for load balancers, and the service on a Ray cluster."""
