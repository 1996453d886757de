"""Pictures of one thing each: plain functions from what is known to lines of pieces."""
