"""``redraft eval`` and the options and tables that its commands share."""
