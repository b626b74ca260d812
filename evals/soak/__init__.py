"""Hours of work and mischief against the real processes: does it hold?"""
