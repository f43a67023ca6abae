from .cli import PROGRAM, app

if __name__ == "__main__":
    app(prog_name=PROGRAM)
