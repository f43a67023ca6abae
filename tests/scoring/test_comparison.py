from spacy_maverick.scoring.comparison import Mark, compare_clusters

A, B, C, D, E, F = ((i, i + 1) for i in range(6))


def errors(marks):
    return {(mark.start, mark.end): mark.error for mark in marks if mark.error}


def clusters(marks):
    return {(mark.start, mark.end): mark.cluster for mark in marks}


def test_equal_clusters_have_equal_numbers_and_no_errors():
    comparison = compare_clusters([[A, B], [C, D]], [[D, C], [B, A]])
    assert clusters(comparison.gold) == {A: 1, B: 1, C: 2, D: 2}
    assert clusters(comparison.predicted) == clusters(comparison.gold)
    assert not comparison.errors


def test_missed_and_spurious_mentions():
    comparison = compare_clusters([[A, B, C]], [[A, B, D], [E, F]])
    assert errors(comparison.gold) == {C: "missed"}
    assert errors(comparison.predicted) == {D: "spurious", E: "spurious", F: "spurious"}
    assert clusters(comparison.predicted)[E] == 2  # no true cluster's number
    assert comparison.errors == {"missed": 1, "spurious": 3}


def test_merged_entities():
    comparison = compare_clusters([[A, B, C], [D, E]], [[A, B, C, D, E]])
    assert errors(comparison.predicted) == {D: "merged", E: "merged"}
    assert set(clusters(comparison.predicted).values()) == {1}


def test_a_split_entity():
    comparison = compare_clusters([[A, B, C, D, E]], [[D, E], [A, B, C]])
    assert errors(comparison.predicted) == {D: "split", E: "split"}
    assert clusters(comparison.predicted) == {A: 1, B: 1, C: 1, D: 2, E: 2}


def test_a_repeated_mention_counts_for_its_first_cluster():
    comparison = compare_clusters([[A, B]], [[A, B], [A, C]])
    assert clusters(comparison.predicted) == {A: 1, B: 1, C: 2}
    assert errors(comparison.predicted) == {C: "spurious"}


def test_one_side_may_be_empty():
    assert compare_clusters([], []).errors == {}
    assert compare_clusters([[A]], []).gold == [Mark(*A, 1, "missed")]
    assert compare_clusters([], [[A]]).predicted == [Mark(*A, 1, "spurious")]
