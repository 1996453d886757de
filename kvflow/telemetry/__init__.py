"""What a machine tells of itself: GPUs, host memory, processes."""
