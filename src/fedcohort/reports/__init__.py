"""WHAT IT LOOKED LIKE: tables, figures and pages. Reads results and computes none.

`findings` holds results in the form that charts and pages need, and `pages` makes them from a run.
`recommendation` says which scheme to use. `charts` describes every figure once. `figures` draws it
for print, `svg` for the page, which `html` writes. `report` writes tables and figures of the paper,
with `markup` for files and `tables` for the terminal.
"""
