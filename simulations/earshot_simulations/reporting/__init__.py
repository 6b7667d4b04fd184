"""Pages, pictures and tables of everything that simulations report.

`pages` renders templates: each stands beside the module whose page it is, extends `page.html` and
is made of the macros in `parts.html`. `drawing` draws a picture, which `charts` and `plane` are
made of; `panels` draws pictures of several panels, `tables` writes Markdown, `words` writes
numbers, and `resuming` shows the progress of runs that may be resumed. Read `pages.page` first,
then a page such as `sweeps.page` with its template. Nothing here knows a kind of phase: pages give
plain numbers and names. Every page loads nothing from elsewhere, and words become text, never
markup; keep both.
"""
