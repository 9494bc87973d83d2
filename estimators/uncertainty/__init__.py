"""What noise and sampling make of second moments and of what follows from them."""
