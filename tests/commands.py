"""Ways to run a command of ours, in this process."""

import json

from typer.testing import CliRunner

from spacy_maverick.cli import app


def run(command, *arguments, stdin=None):
    return CliRunner().invoke(app, [command, *map(str, arguments)], input=stdin)


def run_json(command, *arguments):
    """What a command that succeeds prints with --json."""
    result = run(command, *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def run_failing(command, *arguments, stdin=None):
    """What a command that fails says: on stderr alone, without a traceback."""
    result = run(command, *arguments, stdin=stdin)
    assert result.exit_code == 1, (result.exit_code, result.stdout, result.stderr)
    assert result.stdout == ""
    assert isinstance(result.exception, SystemExit)  # no traceback
    return result.stderr
