"""The words everyone speaks. The ground floor: imports nothing of ours."""
