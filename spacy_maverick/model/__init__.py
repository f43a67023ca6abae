"""The model as Thinc sees it. What is torch alone is in `modules/` and never sees a `Doc`."""
