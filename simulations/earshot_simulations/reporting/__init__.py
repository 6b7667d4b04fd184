"""Pages, pictures and tables of everything that simulations report.

`pages` renders templates: each is beside its module, extends `page.html` and uses the macros in
`parts.html`. `drawing` draws single pictures, which `charts` and `plane` use; `panels` draws
several panels, `tables` writes Markdown and data frames, `words` formats numbers, and `resuming`
shows the progress of resumable runs. Read `pages.page` first, then a page such as `sweeps.page`
with its template. Nothing here depends on a kind of phase: pages pass plain numbers and names. Two
rules: a page loads no external resources, and all values are escaped.
"""
