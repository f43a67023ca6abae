"""The paper's equations, written out word by word and pair by pair, with none of the short cuts of
the package: slow, and easy to hold against section 3 of the paper. F(x) stands for a fully
connected layer with the layer norm that the released models have in it."""

import torch
from torch.nn.functional import gelu, layer_norm


def fully_connected(net, x):
    hidden = net.hidden.weight @ x + net.hidden.bias
    normed = layer_norm(gelu(hidden), hidden.shape, net.norm.weight, net.norm.bias, 1e-5)
    return net.output.weight @ normed + net.output.bias


def probability(logit):
    return 1 / (1 + torch.exp(-logit))


def extract_mentions(extractor, first, last, sentences):
    """p_start of every word; for starts over 0.5, p_end of the words to the end of the sentence."""
    starts, ends, mentions = [], {}, []
    for i in range(len(first)):
        starts.append(fully_connected(extractor.start_classifier, first[i]).squeeze())
        if probability(starts[-1]) <= 0.5:
            continue
        sentence_end = next(end for start, end in sentences if start <= i < end)
        for j in range(i, sentence_end):
            start = fully_connected(extractor.start_projection, first[i])
            end = fully_connected(extractor.end_projection, last[j])
            joined = torch.cat([end, start])
            ends[i, j] = fully_connected(extractor.span_classifier, joined).squeeze()
            if probability(ends[i, j]) > 0.5:
                mentions.append((i, j))
    return starts, ends, mentions


def biaffine(scorer, expert, mention, antecedent):
    """F_s(x_s)·W_ss·F_s(x_s') + F_e(x_e)·W_ee·F_e(x_e') + F_s(x_s)·W_se·F_e(x_e') +
    F_e(x_e)·W_es·F_s(x_s'), each with a bias on the antecedent; and, which is not in the paper,
    divided by the root of the width."""
    size = scorer.start_to_start_bias.shape[1]
    part = slice(expert * size, (expert + 1) * size)
    (x_s, x_e), (y_s, y_e) = mention, antecedent
    s, s_ = (fully_connected(scorer.start_networks, x)[part] for x in (x_s, y_s))
    e, e_ = (fully_connected(scorer.end_networks, x)[part] for x in (x_e, y_e))
    total = 0.0
    for name, left, right in (
        ("start_to_start", s, s_),
        ("end_to_end", e, e_),
        ("start_to_end", s, e_),
        ("end_to_start", e, s_),
    ):
        weight = scorer.get_parameter(f"{name}_weight")[expert]
        bias = scorer.get_parameter(f"{name}_bias")[expert]
        total = total + left @ weight @ right + bias @ right
    return total / size**0.5


def direct(scorer, mention, antecedent):
    (x_s, x_e), (y_s, y_e) = mention, antecedent
    return (
        fully_connected(scorer.start_to_start, x_s) @ y_s
        + fully_connected(scorer.end_to_end, x_e) @ y_e
        + fully_connected(scorer.start_to_end, x_s) @ y_e
        + fully_connected(scorer.end_to_start, x_e) @ y_s
    )


def distance(scorer, category, n_words):
    """One number for 0 and 1 words, one for 2 and 3, one for 4 to 7, and so on."""
    return scorer.weight[category, max(0, n_words.bit_length() - 1)]


def link_by_pairs(score, n_mentions):
    """Each mention joins the cluster of its most probable antecedent with p > 0.5."""
    clusters = []
    for i in range(n_mentions):
        scores = [score(i, j) for j in range(i)]
        best = max(range(i), key=lambda j: scores[j], default=None)
        if best is None or probability(scores[best]) <= 0.5:
            clusters.append([i])
        else:
            next(cluster for cluster in clusters if best in cluster).append(i)
    return clusters


def transformer_score(model, mention, cluster):
    """S(m, c): T over (h_m, h_f, …, h_g), of which the first output is read."""
    rows = torch.stack([mention, *cluster]) + model.positions.weight[: len(cluster) + 1]
    size = rows.shape[1]

    def norm(layer, x):
        return layer_norm(x, (size,), layer.weight, layer.bias, 1e-12)

    rows = norm(model.embedding_norm, rows)
    query, keys, values = (layer(rows) for layer in (model.query, model.key, model.value))
    heads = []
    for part in torch.arange(size).chunk(model.n_heads):
        weights = torch.softmax(query[0, part] @ keys[:, part].T / len(part) ** 0.5, dim=0)
        heads.append(weights @ values[:, part])
    x = norm(model.attention_norm, rows[0] + model.attention_output(torch.cat(heads)))
    x = norm(model.ffn_norm, x + model.ffn_output(gelu(model.ffn_hidden(x))))
    return model.classifier_output(torch.relu(model.classifier_hidden(x))).squeeze()


def vector_of(model, states):
    """The vector of a cluster: a gate mixes each mention into it."""
    vector = states[0]
    for state in states[1:]:
        gate = torch.sigmoid(model.gate(torch.cat([vector, state])))
        vector = gate * vector + (1 - gate) * state
    return vector


def linear_score(model, mention, cluster):
    vector = vector_of(model, cluster)
    return model.classifier(torch.cat([mention, vector, mention * vector])).squeeze()


def link_by_clusters(score, states):
    """Each mention joins the most probable cluster with p > 0.5, or opens one."""
    clusters = []
    for i, state in enumerate(states):
        scores = [score(state, [states[m] for m in cluster]) for cluster in clusters]
        best = max(range(len(scores)), key=lambda c: scores[c], default=None)
        if best is None or probability(scores[best]) <= 0.5:
            clusters.append([i])
        else:
            clusters[best].append(i)
    return clusters
