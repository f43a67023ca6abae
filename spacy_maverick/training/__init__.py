"""What `spacy train` needs of us, and a loop of our own that can be killed and resumed."""
