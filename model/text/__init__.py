"""What texts and languages are; no model in sight."""
