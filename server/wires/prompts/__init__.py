"""What a prompt of somebody else's format means; pure."""
