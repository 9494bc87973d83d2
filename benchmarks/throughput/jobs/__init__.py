"""What is measured: a module each, with its contenders; the first of them is ours."""
