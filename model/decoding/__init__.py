"""From a cached prompt to finished answers."""
