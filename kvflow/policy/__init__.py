"""What is kept, what is brought back, what is written to the host. Pure."""
