"""A corpus through a pipeline: read, resolved and written in a stream, so that memory does not
grow with the corpus, and so that a run that was killed can go on.

    reading      files → items, one a document, good or bad
    chunks       items → chunks, the unit of work and of progress
    worker       a chunk → what is to be written of it; the same on one machine and on many
    records      a Doc → a JSON record, and records → a Parquet table
    journal      how far a run has come
    writing      chunks → files, safe against a kill
    running      all of it together
"""
