"""When to ask and what to show; pure."""
