"""HTTP routes: one module for each family of APIs."""
