"""LSP itself: messages in, answers out."""
