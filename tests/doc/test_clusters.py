import numpy as np
import pytest
import spacy
from documents import FAMILY, make_doc
from spacy.tokens import Doc

from spacy_maverick.doc.clusters import (
    align_clusters,
    character_borders,
    cluster_keys,
    find_prefix,
    get_clusters,
    scored_mentions,
    set_clusters,
)

NLP = spacy.blank("en")


def ends_of(doc):
    return np.concatenate([np.full(len(sent), sent.end) for sent in doc.sents])


def test_keys_are_in_order_of_their_numbers():
    doc = NLP("one two three four five six seven eight nine ten eleven twelve")
    set_clusters(doc, [[(i, i + 1)] for i in range(12)])
    assert cluster_keys(doc) == [f"coref_clusters_{i}" for i in range(1, 13)]
    assert get_clusters(doc) == [[(i, i + 1)] for i in range(12)]


def test_writing_replaces_own_keys_and_no_others():
    doc = NLP("a b c d")
    doc.spans["sc"] = [doc[0:1]]
    doc.spans["coref_clusters_gold"] = [doc[0:2]]
    set_clusters(doc, [[(0, 1), (1, 2)], [(2, 3), (3, 4)]], scores=[[0.5, 0.5], [0.25, 1]])
    set_clusters(doc, [[(2, 3), (3, 4)]], scores=[[0.75, 1]])
    assert sorted(doc.spans) == ["coref_clusters_1", "coref_clusters_gold", "sc"]
    assert [span.text for span in doc.spans["coref_clusters_1"]] == ["c", "d"]
    assert doc.spans["coref_clusters_1"].attrs["scores"] == [0.75, 1.0]


def test_spans_and_pairs_are_written_alike():
    doc = NLP("Ann saw Eve and Ann")
    set_clusters(doc, [[doc[0:1], doc[4:5]], ((2, 3), np.array([0, 3]))])
    assert get_clusters(doc) == [[(0, 1), (4, 5)], [(2, 3), (0, 3)]]
    set_clusters(doc, doc._.coref_clusters)
    set_clusters(doc, [doc.spans["coref_clusters_1"]])
    assert get_clusters(doc) == [[(0, 1), (4, 5)]]
    set_clusters(doc, (iter([mention]) for mention in [(0, 1), (0, 2)]))
    assert get_clusters(doc) == [[(0, 1)], [(0, 2)]]


@pytest.mark.parametrize(
    ["clusters", "message"],
    [
        ([[(0, 1)], [(1, 2), (3, 5)]], r"4 words, but mention 2 of cluster 2 is \(3, 5\)"),
        ([[(-1, 1)]], r"within the Doc.*mention 1 of cluster 1 is \(-1, 1\)"),
        ([[(2, 1)]], r"within the Doc.*is \(2, 1\)"),
        ([[(0, 1), (2, 2)]], r"at least one word.*\(2, 3\) is the word 2 alone"),
        ([[(0, 1), (2, 3), (0, 1)]], r"once.*but mention 3 of cluster 1 is \(0, 1\) again"),
        ([[(0, 1)], []], "cluster 2 is empty"),
        ([(0, 1), (2, 3)], r"list of lists.*mention 1 of cluster 1: 0"),
        ([0, 1], r"list of lists.*cluster 1: 0"),
        (["ab"], r"list of lists.*cluster 1: 'ab'"),
        ([[(0.0, 1.0)]], r"list of lists.*\(0.0, 1.0\)"),
        ([[(0, 1, 2)]], r"list of lists.*\(0, 1, 2\)"),
    ],
)
def test_nonsense_is_refused_by_name_and_changes_nothing(clusters, message):
    doc = NLP("a b c d")
    set_clusters(doc, [[(0, 1), (1, 2)]])
    with pytest.raises(ValueError, match=message):
        set_clusters(doc, clusters)
    assert get_clusters(doc) == [[(0, 1), (1, 2)]]


def test_spans_where_lists_of_them_belong_and_of_other_documents_are_refused():
    doc, other = NLP("a b c d"), NLP("a b c d")
    with pytest.raises(ValueError, match=r"list of lists.*cluster 1: a b"):
        set_clusters(doc, [doc[0:2], doc[3:4]])
    with pytest.raises(ValueError, match="mention 1 of cluster 1 is a b of another"):
        set_clusters(doc, [[other[0:2]]])


def test_a_span_that_a_group_has_twice_is_read_once():
    doc = NLP("a b c d")
    doc.spans["coref_clusters_1"] = [doc[2:3], doc[0:1], doc[2:3], doc[1:1]]
    assert get_clusters(doc) == [[(2, 3), (0, 1)]]
    set_clusters(doc, get_clusters(doc))


def test_groups_without_mentions_are_passed_over():
    doc = NLP("a b c d")
    doc.spans["coref_clusters_1"] = []
    doc.spans["coref_clusters_2"] = [doc[1:1]]
    doc.spans["coref_clusters_3"] = [doc[0:1]]
    assert get_clusters(doc) == [[(0, 1)]]


def test_the_prefix_is_found_that_was_written_last():
    doc = NLP("a b c d")
    doc.spans["sc"] = [doc[0:1]]
    assert find_prefix(doc) == "coref_clusters"
    set_clusters(doc, [[(0, 1)]], "given")
    set_clusters(doc, [[(1, 2)]], "own")
    doc.spans["others"] = [doc[0:1]]
    assert find_prefix(doc) == "own"
    assert doc.spans["own_1"].attrs == {"coref_prefix": "own"}
    # The default one comes before all others.
    doc.spans["coref_clusters_1"] = [doc[0:1]]
    assert find_prefix(doc) == "coref_clusters"


def test_mentions_come_with_their_scores():
    doc = NLP("a b c d")
    set_clusters(doc, [[(0, 1), (2, 4)]], scores=[[0.5, 0.25]])
    key = "coref_clusters_1"
    pairs = [(span.text, score) for span, score in scored_mentions(doc, key)]
    assert pairs == [("a", 0.5), ("c d", 0.25)]
    doc.spans[key] = [doc[0:1], doc[1:1], doc[3:4]]
    pairs = [(span.text, score) for span, score in scored_mentions(doc, key)]
    assert pairs == [("a", None), ("d", None)]
    doc.spans[key].attrs["scores"] = [0.5]
    # What was added later has no score.
    pairs = [(span.text, score) for span, score in scored_mentions(doc, key)]
    assert pairs == [("a", 0.5), ("d", None)]


def test_gold_clusters_may_be_numbered_from_0():
    doc = NLP("a b c d")
    doc.spans["coref_clusters_0"] = [doc[0:1], doc[1:2]]
    doc.spans["coref_clusters_1"] = [doc[2:3], doc[3:4]]
    assert get_clusters(doc) == [[(0, 1), (1, 2)], [(2, 3), (3, 4)]]


def test_borders_do_not_depend_on_white_space_or_tokens():
    one = NLP("I can't\n\n go.")
    other = Doc(NLP.vocab, words=["I", "can't", "go", "."])
    assert character_borders(one).tolist() == [[0, 1], [1, 3], [3, 6], [6, 6], [6, 8], [8, 9]]
    assert character_borders(other).tolist() == [[0, 1], [1, 6], [6, 8], [8, 9]]


def test_white_space_within_a_token_does_not_count():
    doc = Doc(NLP.vocab, words=["New York", "grows"])
    assert character_borders(doc).tolist() == [[0, 7], [7, 12]]


def test_nothing_is_counted_in_whole_numbers_too():
    empty = Doc(NLP.vocab)
    assert character_borders(empty).dtype.kind == "i"
    gold = align_clusters(empty, empty, np.zeros(0, dtype=int))
    assert gold.mentions.shape == (0, 2)
    assert [array.dtype.kind for array in (gold.mentions, gold.partition, gold.starts)] == ["i"] * 3


def test_same_tokens_align_exactly():
    doc = make_doc(FAMILY, NLP.vocab)
    gold = align_clusters(doc, doc, ends_of(doc))
    clusters = get_clusters(doc)
    aligned = [[] for _ in clusters]
    for (first, last), number in zip(gold.mentions.tolist(), gold.partition, strict=True):
        aligned[number].append((first, last + 1))
    assert aligned == sorted(clusters)
    assert gold.mentions.tolist() == sorted(gold.mentions.tolist())
    assert np.flatnonzero(gold.starts == 1).tolist() == sorted({m[0] for m in gold.mentions})
    assert not gold.unknown_spans


def test_other_tokens_align_by_characters_and_the_rest_is_unknown():
    reference = Doc(NLP.vocab, words=["Anna", "'s", "co-author", "met", "her"])
    set_clusters(reference, [[(0, 1), (4, 5)], [(0, 3), (2, 3)]])
    words = ["Anna's", "co", "-", "author", "met", "her"]
    predicted = Doc(NLP.vocab, words=words, sent_starts=[True] + [False] * 5)
    gold = align_clusters(predicted, reference, ends_of(predicted))
    # "Anna" is half of a predicted word: it cannot be said. The others can.
    assert gold.mentions.tolist() == [[0, 3], [1, 3], [5, 5]]
    assert gold.partition.tolist() == [0, 0, 1]
    assert gold.unknown_spans == {(0, 0)}
    assert gold.starts.tolist() == [1, 1, 0, 0, 0, 1]


def test_a_start_with_no_sure_mention_is_unknown():
    reference = Doc(NLP.vocab, words=["Anna", "'s", "book"])
    set_clusters(reference, [[(0, 1), (2, 3)]])
    predicted = Doc(NLP.vocab, words=["Anna's", "book"], sent_starts=[True, False])
    gold = align_clusters(predicted, reference, ends_of(predicted))
    assert gold.starts.tolist() == [-1, 1]


def test_a_mention_across_sentences_is_clustered_but_not_extracted():
    reference = Doc(NLP.vocab, words=list("abcdef"))
    set_clusters(reference, [[(1, 4), (5, 6)]])
    predicted = Doc(NLP.vocab, words=list("abcdef"), sent_starts=[1, -1, -1, 1, -1, -1])
    gold = align_clusters(predicted, reference, ends_of(predicted))
    assert gold.mentions.tolist() == [[1, 3], [5, 5]]
    assert gold.starts.tolist() == [0, -1, 0, 0, 0, 1]


def test_a_mention_in_two_clusters_counts_for_the_first():
    doc = Doc(NLP.vocab, words=list("abcd"), sent_starts=[1, -1, -1, -1])
    set_clusters(doc, [[(0, 1), (1, 2)], [(1, 2), (3, 4)]])
    gold = align_clusters(doc, doc, ends_of(doc))
    assert gold.mentions.tolist() == [[0, 0], [1, 1], [3, 3]]
    assert gold.partition.tolist() == [0, 0, 1]


def test_mentions_of_white_space_are_left_out():
    reference = NLP("a \n b")
    set_clusters(reference, [[(1, 2), (0, 1), (2, 3)]])
    predicted = Doc(NLP.vocab, words=["a", "b"], sent_starts=[True, False])
    gold = align_clusters(predicted, reference, ends_of(predicted))
    assert gold.mentions.tolist() == [[0, 0], [1, 1]]
    assert not gold.unknown_spans


def test_white_space_is_not_learned_from():
    predicted = NLP("a \n b")
    predicted[0].is_sent_start = True
    gold = align_clusters(predicted, Doc(NLP.vocab, words=["a", "b"]), np.full(3, 3))
    assert gold.starts.tolist() == [0, -1, 0]


def test_texts_that_differ_are_told():
    with pytest.raises(ValueError, match="same text"):
        align_clusters(NLP("a b"), NLP("a c"), np.full(2, 2))


def test_questions_say_what_of_the_gold_is_known():
    reference = NLP("Ann saw Eve. She waved at her. Bob and Tom left, and he smiled.")
    words = [token.text for token in reference]
    ann, eve, she, her = (words.index(word) for word in ("Ann", "Eve", "She", "her"))
    bob, tom, he = (words.index(word) for word in ("Bob", "Tom", "he"))
    set_clusters(reference, [[(ann, ann + 1), (she, she + 1)], [(eve, eve + 1), (her, her + 1)]])
    questions = [[(ann, ann + 1), (eve, eve + 1), (she, she + 1)]]
    questions.append([(bob, bob + 1), (tom, tom + 1), (he, he + 1)])
    reference.user_data["coref_questions"] = questions
    ends = np.full(len(reference), len(reference))
    gold = align_clusters(NLP.make_doc(reference.text), reference, ends)
    assert gold.mentions[:, 0].tolist() == [ann, eve, she, bob, tom, he]
    # "Eve" is in a cluster with what nobody was asked about.
    assert gold.partition.tolist() == [0, 1, 0, 2, 3, 4]
    assert gold.questions.tolist() == [0, 0, 0, 1, 1, 1]
    assert set(np.delete(gold.starts, [ann, eve, she, bob, tom, he])) == {-1}


def test_what_is_asked_of_has_to_align_and_counts_for_its_first_cluster():
    reference = Doc(NLP.vocab, words=["Anna", "'s", "aunt", "saw", "her", "and", "him"])
    set_clusters(reference, [[(2, 3), (4, 5)], [(6, 7), (4, 5)]])
    reference.user_data["coref_questions"] = [[(0, 1), (2, 3), (4, 5), (6, 7)]]
    predicted = Doc(NLP.vocab, words=["Anna's", "aunt", "saw", "her", "and", "him"])
    gold = align_clusters(predicted, reference, np.full(6, 6))
    assert gold.mentions[:, 0].tolist() == [1, 3, 5]
    assert gold.partition.tolist() == [0, 0, 1]
