"""Turn texts with mentions in brackets into the JSON lines of our own corpus, and check them.

A file holds one document: a line a sentence, "Name: " before it where somebody is known to speak,
mentions as "[Ada|1] found [[her|1] ring|2]". A line "#" and a title may stand first.

python scripts/read_brackets.py texts/ assets/annotated/train/more.jsonl
"""

import json
import re
from pathlib import Path
from typing import Annotated, Any

import spacy
import typer
from spacy.language import Language

from spacy_maverick.doc.categories import pronoun_table

SPEAKER = re.compile(r"^([A-Z][\w.'’ -]{0,40}): +")
CLOSING = re.compile(r"\|(\d+)\]")
#: "You", "it", "this" and "that" often mean nobody and nothing in particular.
VAGUE_GROUPS = {"2", "3-Sing-Neut", "Dem"}
PRONOUNS = {word for word, group in pronoun_table("en").groups.items() if group not in VAGUE_GROUPS}


def read_line(line: str) -> tuple[str, list[tuple[int, int, int]]]:
    """Take the brackets out of a line.

    RETURNS (Tuple[str, List[Tuple[int, int, int]]]): The text, and first character, end and
        cluster of each mention.
    """
    text, mentions, open_at, at = "", [], [], 0
    while at < len(line):
        closing = CLOSING.match(line, at)
        if line[at] == "[":
            open_at.append(len(text))
            at += 1
        elif closing:
            if not open_at:
                raise ValueError(f"a bracket closes that was not opened: {line}")
            mentions.append((open_at.pop(), len(text), int(closing[1])))
            at = closing.end()
        elif line[at] in "|]":
            raise ValueError(f"expected |number] at {line[at:][:20]!r}: {line}")
        else:
            text += line[at]
            at += 1
    if open_at:
        raise ValueError(f"a bracket is not closed: {line}")
    return text, mentions


def read_document(nlp: Language, path: Path) -> tuple[dict[str, Any], list[str]]:
    """Read a document, and list what may have been forgotten in it."""
    sentences, speakers, clusters, remarks = [], [], {}, []
    offset = 0
    for line in path.read_text("utf8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        speaker = SPEAKER.match(line)
        text, mentions = read_line(line[speaker.end() :].strip() if speaker else line.strip())
        doc = nlp.make_doc(text)
        words = [token for token in doc if not token.is_space]
        number = {token.i: i for i, token in enumerate(words)}
        covered = set()
        for start, end, cluster in mentions:
            span = doc.char_span(start, end)
            if span is None:
                raise ValueError(f"{text[start:end]!r} does not begin and end with words: {line}")
            first, last = number[span[0].i], number[span[-1].i]
            if last > first and words[last].text == ",":
                last -= 1  # it closes an apposition, and corpora leave it outside
            covered.add((first, last))
            clusters.setdefault(cluster, []).append([offset + first, offset + last])
        for i, token in enumerate(words):
            if token.lower_ in PRONOUNS and (i, i) not in covered:
                remarks.append(f"{token.text!r} in no cluster: {text}")
        sentences.append([token.text for token in words])
        speakers.append([speaker[1] if speaker else "-"] * len(words))
        offset += len(words)
    spans = [tuple(span) for cluster in clusters.values() for span in cluster]
    if len(spans) != len(set(spans)):
        raise ValueError("a span is marked twice")
    for number, cluster in clusters.items():
        if len(cluster) < 2:
            raise ValueError(f"cluster {number} has one mention")
    ordered = sorted(sorted(cluster) for cluster in clusters.values())
    if not any(speaker != "-" for row in speakers for speaker in row):
        speakers = [["-"] * len(row) for row in sentences]
    return {
        "doc_key": path.stem,
        "sentences": sentences,
        "speakers": speakers,
        "clusters": ordered,
    }, remarks


def main(
    texts: Annotated[Path, typer.Argument(help="A folder of .txt files")],
    output: Annotated[Path | None, typer.Argument(help="Where to write, if at all")] = None,
) -> None:
    nlp = spacy.blank("en")
    documents, faults = [], 0
    for path in sorted(texts.glob("*.txt")):
        try:
            document, remarks = read_document(nlp, path)
        except ValueError as error:
            faults += 1
            typer.echo(f"{path.name}: {error}", err=True)
            continue
        documents.append(document)
        for remark in remarks:
            typer.echo(f"{path.name}: {remark}", err=True)
    words = sum(len(row) for document in documents for row in document["sentences"])
    typer.echo(f"{len(documents)} documents, {words:,} words, {faults} with faults")
    if faults:
        raise typer.Exit(1)
    if output is not None:
        lines = [json.dumps(document, ensure_ascii=False) + "\n" for document in documents]
        output.write_text("".join(lines), "utf8")


if __name__ == "__main__":
    typer.run(main)
