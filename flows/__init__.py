"""What a steward schedules: the order of steps, nothing else."""
