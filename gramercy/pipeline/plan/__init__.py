"""From a request to a plan, its forecast and its verdict; the table is not read."""
