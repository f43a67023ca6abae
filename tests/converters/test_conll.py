import os
import random
from collections import Counter
from pathlib import Path

import pytest

from spacy_maverick.converters import conll
from spacy_maverick.converters.conll import (
    ConllDocument,
    parse_brackets,
    read_conll,
    write_conll,
)
from spacy_maverick.errors import MaverickWarning

# Columns of CoNLL-2012 between spaces; two parts, the first with two sentences.
CONLL_2012 = """\
#begin document (nw/made/up_01); part 000
nw/made/up_01   0    0      Ada   NNP  (TOP(S(NP*    -    -   -   Ada_L.  (PERSON)   (0)
nw/made/up_01   0    1      met   VBD        (VP*  meet  01   1   Ada_L.     *         -
nw/made/up_01   0    2      her   PRP$       (NP*    -    -   -   Ada_L.     *    (1|(0)
nw/made/up_01   0    3   mother    NN        *)))    -    -   -   Ada_L.     *        1)

nw/made/up_01   0    0      She   PRP  (TOP(S(NP*    -    -   -   -     *   (1)
nw/made/up_01   0    1   smiled   VBD      (VP*))    -    -   -   -     *     -

#end document
#begin document (nw/made/up_01); part 001
nw/made/up_01   1    0   Yes   UH  (TOP*    -    -   -   -     *   -

#end document
"""


def read_text(tmp_path, text, **settings):
    path = tmp_path / "text.conll"
    path.write_text(text, encoding="utf8")
    return list(read_conll(path, **settings))


def make_text(cells, begin="#begin document (x); part 000"):
    rows = [f"x\t0\t{i}\tw{i}\t{cell}" for i, cell in enumerate(cells)]
    return "\n".join([begin, *rows, "#end document", ""])


def test_reads_conll_2012(tmp_path):
    first, second = read_text(tmp_path, CONLL_2012)
    assert (first.name, first.part) == ("nw/made/up_01", 0)
    assert (second.name, second.part) == ("nw/made/up_01", 1)
    assert [len(sentence) for sentence in first.sentences] == [4, 2]
    assert first.word_column == 3
    assert first.words == ["Ada", "met", "her", "mother", "She", "smiled"]
    assert [row[4] for row in first.rows] == ["NNP", "VBD", "PRP$", "NN", "PRP", "VBD"]
    assert first.sentences[0][1][9] == "Ada_L."
    assert first.clusters == {"0": [(0, 0), (2, 2)], "1": [(2, 3), (4, 4)]}
    assert second.clusters == {}
    assert not first.problems and not second.problems


def test_tab_columns_keep_empty_cells_and_spaces(tmp_path):
    text = (
        "#begin document (b); part 0\nb\t0\t0\tNew York\t_\t(5)\nb\t0\t1\t_\t_\t\n#end document\n"
    )
    (document,) = read_text(tmp_path, text)
    assert document.words == ["New York", "_"]
    assert document.rows[1] == ["b", "0", "1", "_", "_", ""]
    assert document.clusters == {"5": [(0, 0)]}


def test_words_may_hold_brackets_and_odd_spaces(tmp_path):
    text = "#begin document (b)\nb 0 0 (1) -\nb 0 1 a\u00a0b\u2028c (2)\nb 0 2 # -\n#end document"
    (document,) = read_text(tmp_path, text)
    assert document.words == ["(1)", "a\u00a0b\u2028c", "#"]
    assert document.clusters == {"2": [(1, 1)]}


@pytest.mark.parametrize(
    "header,name,part",
    [
        ("(bc/cctv/00); part 003", "bc/cctv/00", 3),
        ("(LuoTestCase); ", "LuoTestCase", 0),
        ("(a title (of sorts)); part 012", "a title (of sorts)", 12),
        ("4_9938_12.txt_1", "4_9938_12.txt_1", 0),
        ("12; part 7", "12", 7),
    ],
)
def test_headers(tmp_path, header, name, part):
    (document,) = read_text(tmp_path, make_text(["-"], f"#begin document {header}"))
    assert (document.name, document.part) == (name, part)


@pytest.mark.parametrize(
    "cells,clusters",
    [
        (["(2(1", "1)(3", "3)2)"], {"2": [(0, 2)], "1": [(0, 1)], "3": [(1, 2)]}),
        (["(2|(1", "1)|(3", "3)|2)"], {"2": [(0, 2)], "1": [(0, 1)], "3": [(1, 2)]}),
        (["(3)(4", "(5)4)", "_"], {"3": [(0, 0)], "4": [(0, 1)], "5": [(1, 1)]}),
        (["(1", "(2", "1)", "2)"], {"1": [(0, 2)], "2": [(1, 3)]}),
        (["(1", "(1", "1)", "1)"], {"1": [(0, 3), (1, 2)]}),
        (["(1", "1)(1", "1)"], {"1": [(0, 1), (1, 2)]}),
        (["(1(1)", "*", "(1)1)"], {"1": [(0, 0), (0, 2), (2, 2)]}),
        (["(e12-Person)", "", "(e12-Person)"], {"e12-Person": [(0, 0), (2, 2)]}),
    ],
)
def test_brackets(cells, clusters):
    assert parse_brackets(cells) == (clusters, Counter())


@pytest.mark.parametrize(
    "cells,clusters,problems",
    [
        (["(1", "(2)", "-"], {"2": [(1, 1)]}, {conll.UNCLOSED: 1}),
        (["1)", "(1)", "1)"], {"1": [(1, 1)]}, {conll.UNOPENED: 2}),
        (["1", "(2)|x|()", ")"], {"2": [(1, 1)]}, {conll.MALFORMED: 4}),
        (["(1(1", "1)1)", "(1)"], {"1": [(0, 1), (2, 2)]}, {conll.REPEATED: 1}),
        (["(1)(2)", "(2)"], {"1": [(0, 0)], "2": [(0, 0), (1, 1)]}, {conll.IN_TWO_CLUSTERS: 1}),
    ],
)
def test_broken_brackets_are_counted(cells, clusters, problems):
    assert parse_brackets(cells) == (clusters, problems)


def test_brackets_do_not_reach_into_the_next_document(tmp_path):
    first, second = read_text(tmp_path, make_text(["(1", "-"]) + make_text(["-", "1)"]))
    assert (first.clusters, first.problems) == ({}, {conll.UNCLOSED: 1})
    assert (second.clusters, second.problems) == ({}, {conll.UNOPENED: 1})


def test_words_are_found_by_the_token_numbers(tmp_path):
    semeval = "#begin document d\n1\tEl\tel\t_\t(1\n2\tgato\tgato\t_\t1)\n#end document\n"
    assert read_text(tmp_path, semeval)[0].words == ["El", "gato"]
    two_columns = "#begin document d\nnw/x_00 (1\nnw/x_00 1)\n#end document\n"
    (document,) = read_text(tmp_path, two_columns)
    assert document.words is None
    assert document.clusters == {"1": [(0, 1)]}
    word_first = "#begin document d\nthe DT (1\ncat NN 1)\n#end document\n"
    assert read_text(tmp_path, word_first)[0].words is None
    assert read_text(tmp_path, word_first, word_column=0)[0].words == ["the", "cat"]


@pytest.mark.parametrize("word_column", [4, 9, -1])
def test_impossible_word_column(tmp_path, word_column):
    with pytest.raises(ValueError, match=f"'x' part 0, token 0: no word in column {word_column}"):
        read_text(tmp_path, make_text(["-"]), word_column=word_column)


def test_lenient_about_what_does_no_harm(tmp_path):
    # Byte order mark, Windows line ends, comments, many blank lines, no end, no last line break.
    lines = ["\ufeff# made by hand", "", "#begin document (x); part 000", "# sentence 1"]
    text = "\r\n".join([*lines, "x 0 0 a (1)", "", "  ", "x 0 0 b -"])
    (document,) = read_text(tmp_path, text)
    assert document.words == ["a", "b"]
    assert len(document.sentences) == 2
    assert document.clusters == {"1": [(0, 0)]}
    assert document.problems == {conll.UNENDED: 1}


def test_document_without_rows(tmp_path):
    (document,) = read_text(tmp_path, "#begin document (x); part 000\n\n#end document\n")
    assert (document.sentences, document.clusters) == ([], {})


@pytest.mark.parametrize(
    "text,message",
    [
        ("", "no document found. Expected a line '#begin document"),
        ("# only a comment\n", "no document found"),
        ("x 0 0 a -\n", "line 1: expected '#begin document"),
        ('{"doc_key": 1}\n', "line 1: expected '#begin document"),
        (make_text(["-"]) + "x 0 0 a -\n", "line 4: expected '#begin document"),
        ("#begin document (x)\nword\n#end document\n", "line 2: .* at least 2 columns"),
        ("#begin document (x)\n#begin document (y)\n", "line 2: .* before 'x' has ended"),
        ("#end document\n", "line 1: '#end document' without a begin"),
    ],
)
def test_other_files_are_refused(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_text(tmp_path, text)


def test_binary_and_missing_files_are_refused(tmp_path):
    path = tmp_path / "binary.conll"
    path.write_bytes(b"#begin document (x)\nx 0 0 \xff\xfe -\n")
    with pytest.raises(ValueError, match="expected a text file in UTF-8"):
        list(read_conll(path))
    with pytest.raises(FileNotFoundError, match=r"missing\.conll"):
        list(read_conll(tmp_path / "missing.conll"))


def test_reads_one_document_at_a_time(tmp_path):
    path = tmp_path / "text.conll"
    path.write_text(make_text(["(1)"]) + "not a row\n", encoding="utf8")
    documents = read_conll(path)
    assert next(documents).clusters == {"1": [(0, 0)]}
    with pytest.raises(ValueError, match="line 4"):
        next(documents)


def test_writes_conll_2012(tmp_path):
    document = ConllDocument.from_words(
        "a b",
        3,
        [["Ada", "met", "her", "mother"], ["\n", "She"]],
        [[(0, 0), (2, 2)], [(2, 3), (5, 5)]],
        tags=["NNP", "VBD", "PRP$", "NN", "", None],
        speakers=["Ada L."] * 4 + [None] * 2,
    )
    path = tmp_path / "out.conll"
    write_conll([document], path)
    lines = path.read_text(encoding="utf8").split("\n")
    assert lines[0] == "#begin document (a b); part 003"
    assert lines[3].replace("\t", " ") == "a_b 3 2 her PRP$ * - - - Ada_L. * (1|(0)"
    assert lines[4].replace("\t", " ") == "a_b 3 3 mother NN * - - - Ada_L. * 1)"
    assert lines[5] == ""
    assert lines[6].replace("\t", " ") == "a_b 3 0 _ - * - - - - * -"
    assert lines[8:] == ["", "#end document", ""]
    (again,) = read_conll(path)
    assert (again.name, again.part) == ("a b", 3)
    assert again.words == ["Ada", "met", "her", "mother", "_", "She"]
    assert again.clusters == document.clusters


@pytest.mark.parametrize(
    "clusters,cells",
    [
        ([[(0, 3)], [(0, 1)], [(2, 3)], [(3, 3)]], ["(0|(1", "1)", "(2", "(3)|2)|0)"]),
        ([[(0, 1)], [(1, 3)], [(1, 1)]], ["(0", "0)|(1|(2)", "-", "1)"]),
        ([[(0, 1), (1, 1), (2, 3)]], ["(0", "(0)|0)", "(0", "0)"]),
        ([[(0, 2)], [(1, 3)]], ["(0", "(1", "0)", "1)"]),
        ([[(1, 2), (1, 2)]], ["-", "(0", "0)", "-"]),
    ],
)
def test_order_of_written_brackets(tmp_path, clusters, cells):
    document = ConllDocument.from_words("x", 0, [["a", "b", "c", "d"]], clusters)
    write_conll([document], tmp_path / "out.conll")
    (again,) = read_conll(tmp_path / "out.conll")
    assert [row[-1] for row in again.rows] == cells
    assert list(again.clusters.values()) == [sorted(set(cluster)) for cluster in clusters]


def test_mentions_that_cross_in_one_cluster_are_left_out(tmp_path):
    # The mentions of the last cluster share a token, of which the reference scorer would make one.
    clusters = [[(0, 2), (1, 3), (4, 4)], [(0, 4), (1, 2)], [(0, 1), (1, 2)]]
    document = ConllDocument.from_words("x", 0, [list("abcde")], clusters)
    with pytest.warns(MaverickWarning, match="left out 2 mentions that cross"):
        write_conll([document], tmp_path / "out.conll")
    (again,) = read_conll(tmp_path / "out.conll")
    assert again.clusters == {"0": [(0, 2), (4, 4)], "1": [(0, 4), (1, 2)], "2": [(0, 1)]}


@pytest.mark.parametrize("mention", [(-1, 0), (1, 2), (1, 0)])
def test_mentions_outside_of_the_text_are_refused(tmp_path, mention):
    document = ConllDocument.from_words("x", 0, [["a", "b"]], [[mention]])
    with pytest.raises(ValueError, match="'x' part 0 has 2 tokens, so it cannot hold a mention"):
        write_conll([document], tmp_path / "out.conll")


def test_values_for_each_word_are_needed():
    with pytest.raises(ValueError, match="has 2 words but 1 speakers"):
        ConllDocument.from_words("x", 0, [["a", "b"]], [], speakers=["S"])


def get_random_document(rng, part):
    """Nested, adjacent and crossing mentions; none that cross within their own cluster."""
    n_tokens = rng.randint(1, 30)
    clusters = []
    for _ in range(rng.randint(0, 8)):
        cluster = set()
        for _ in range(rng.randint(1, 6)):
            start = rng.randrange(n_tokens)
            end = min(n_tokens - 1, start + rng.choice([0, 0, 1, 2, 5, 20]))
            if not any(s < start <= e < end or start < s <= end < e for s, e in cluster):
                cluster.add((start, end))
        clusters.append(sorted(cluster))
    border = rng.randint(0, n_tokens)
    words = [rng.choice(["(1)", "-", "|", "#", "ü", "a"]) for _ in range(n_tokens)]
    return ConllDocument.from_words("r", part, [words[:border], words[border:]], clusters)


def test_reading_gives_back_what_was_written(tmp_path):
    rng = random.Random(0)
    documents = [get_random_document(rng, part) for part in range(300)]
    write_conll(iter(documents), tmp_path / "out.conll")
    n_read = 0
    for before, after in zip(documents, read_conll(tmp_path / "out.conll"), strict=True):
        assert after.part == before.part
        assert after.words == before.words
        assert sorted(after.clusters.items()) == sorted(before.clusters.items())
        n_read += sum(map(len, after.clusters.values()))
    assert n_read > 3000


def test_other_columns_survive_writing(tmp_path):
    documents = read_text(tmp_path, CONLL_2012)
    write_conll(documents, tmp_path / "out.conll")
    assert list(read_conll(tmp_path / "out.conll")) == documents


@pytest.mark.parametrize(
    "part,expected", [("train", (80, 169_456, 23_218)), ("dev", (10, 20_438, 3_053))]
)
def test_reads_all_of_litbank(part, expected):
    if "SPACY_MAVERICK_DATA" not in os.environ:
        pytest.skip("needs SPACY_MAVERICK_DATA, a folder with litbank")
    n_tokens = n_mentions = 0
    paths = sorted((Path(os.environ["SPACY_MAVERICK_DATA"]) / "litbank" / part).glob("*.conll"))
    for path in paths:
        (document,) = read_conll(path)
        assert document.word_column == 3
        assert not document.problems
        n_tokens += len(document.rows)
        n_mentions += sum(map(len, document.clusters.values()))
    assert (len(paths), n_tokens, n_mentions) == expected
