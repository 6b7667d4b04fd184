"""Pages and pictures of everything that simulations report.

`markup` makes a page from its parts, `drawing` a picture, which `charts` and `plane` are made of;
`words` writes numbers. Read `markup.document` first, then a page such as `sweeps.page`. Nothing
here knows a phase: pages give plain numbers and names. Every page loads nothing from elsewhere, and
words become text, never markup; keep both.
"""
