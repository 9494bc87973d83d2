"""Sheets of Excel workbooks (.xlsx), read in bounded memory.

The libraries that were tried do not satisfy the rules of a source. One cell makes openpyxl refuse
a sheet (a number that is not one, an unknown string, a place that does not exist), and it is not
faster. So it is with calamine, which is faster, but holds all cells between the first and the last
in memory: one cell in the last row and column fills it.
"""
