import warnings

_told: set[str] = set()


class MaverickWarning(UserWarning):
    """Something a user of spacy-maverick should know and can change."""


def warn_once(text: str) -> None:
    """Warn of what would be said of every batch, or by every component, the first time only.

    text (str): The warning. Another text is another warning.
    """
    if text not in _told:
        _told.add(text)
        warnings.warn(text, MaverickWarning, stacklevel=3)
