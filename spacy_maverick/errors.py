class MaverickWarning(UserWarning):
    """Something a user of spacy-maverick should know and can change."""
