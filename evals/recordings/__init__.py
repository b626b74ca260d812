"""What people typed, read back."""
