"""Pages, pictures and tables of everything that simulations report.

`markup` makes a page from its parts, `drawing` a picture, which `charts` and `plane` are made of;
`panels` draws pictures of several panels, `tables` writes Markdown, `words` writes numbers, and
`resuming` shows the progress of runs that may be resumed. Read `markup.document` first, then a page
such as `sweeps.page`. Nothing here knows a kind of phase: pages give plain numbers and names. Every
page loads nothing from elsewhere, and words become text, never markup; keep both.
"""
