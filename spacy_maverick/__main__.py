from .cli import PROGRAM, app


def main() -> None:
    """The script `spacy-maverick`."""
    app(prog_name="spacy-maverick")


if __name__ == "__main__":
    app(prog_name=PROGRAM)
