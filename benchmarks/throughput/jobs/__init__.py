"""The measured jobs, one module each, with their contenders; Gramercy is the first one."""
