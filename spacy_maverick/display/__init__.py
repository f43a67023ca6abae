"""Clusters for people to look at: in a page, in a notebook, in a terminal, with displaCy.

marks.py     what is marked in a text
colours.py   colours for everyone
content.py   what is shown of a document: its blocks, turns, mentions and entities
markup.py    mentions in a text, as HTML
page.py      pages that stand by themselves, and `view`; style, script and frame are page.css,
             page.js and page.html
terminal.py  the same in a terminal
server.py    a page on this machine in which people type
"""

from .content import displacy_data
from .page import View, view

__all__ = ["View", "displacy_data", "view"]
