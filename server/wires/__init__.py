"""One module per wire format: each translates requests in and answers out, nothing else."""
