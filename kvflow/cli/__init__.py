"""One small file a command; everything heavy is imported when the command runs."""
