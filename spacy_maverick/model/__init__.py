"""The model as Thinc sees it. What is torch alone is in `modules/` and never sees a `Doc`."""

from ..allocation import keep_memory

# Whoever computes with torch comes by here.
keep_memory()
