"""Every loss of DECCRL (Yin et al., "Learning Cluster-level Representations"), one loop per sum, in float64.

Slow on purpose: each line that is an equation of the paper names it, and nothing is rearranged for speed or
for numerical range. ``weights`` are this project's addition: how often each text occurs in the corpus. A mean
over texts becomes the weighted mean and a soft frequency the weighted one; among the negatives of an anchor a
repeated text counts once. Equal weights give back the paper's equations.

Where the paper is misprinted or leaves room:

* Eq. 2-3 have two forms: NT-Xent with the positive and 2M - 2 negatives, and the printed one, whose M - 1
  negatives are of the other view only and whose denominator lacks the positive (it needs two texts).
* Eq. 4 divides both anchors of a text by M: twice SCCL's scale.
* Eq. 6, a softmax over probabilities, is nearly uniform; the assignment is the argmax of Eq. 5.
* Eq. 7's denominator is read as the sum over k' of o_ik'^2 / f_k'; 0/0 for a cluster nobody belongs to is 0.
* Eq. 13 is read as the logarithm of beta_k theta_i, and a text is decoded by the mixture of the clusters:
  log of the sum over k of o_ik beta_k theta_i.
* Eq. 14's sigma comes as a log-variance; the prior of Eq. 15 is the standard normal.
* Eq. 15 is divided by the text's number of words, both parts alike. Texts without a word of the vocabulary
  add nothing and do not count in the mean; where no text has one, the loss is 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .sccl_oracle import FloatArray, _weight_list, _weighted_mean, similarity


def softmax(scores: Sequence[float] | FloatArray) -> list[float]:
    """The exponentials of the scores, divided by their sum."""
    total = 0.0
    for score in scores:
        total += math.exp(score)
    return [math.exp(score) / total for score in scores]


def linear(inputs: npt.ArrayLike, weight: npt.ArrayLike, bias: npt.ArrayLike | None = None) -> FloatArray:
    """A fully connected layer, such as FC_e of Eq. 1: row x becomes W x + b, ``weight`` being outputs x inputs."""
    x, w = np.asarray(inputs, dtype=np.float64), np.asarray(weight, dtype=np.float64)
    b = np.zeros(len(w)) if bias is None else np.asarray(bias, dtype=np.float64)
    y = np.zeros((len(x), len(w)), dtype=np.float64)
    for i in range(len(x)):
        for o in range(len(w)):
            y[i, o] = b[o]
            for d in range(x.shape[1]):
                y[i, o] += x[i, d] * w[o, d]
    return y


def relu(inputs: npt.ArrayLike) -> FloatArray:
    """Negative numbers become 0."""
    x = np.asarray(inputs, dtype=np.float64)
    return np.where(x > 0.0, x, 0.0)


# --- the instance level ---


def contrast(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    temperature: float,
    weights: npt.ArrayLike | None = None,
    *,
    printed: bool = False,
) -> float:
    """L_CL of two M x D views, not normalised, paired by row: NT-Xent, or Eq. 2-3 as printed."""
    v = (np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64))
    m = len(v[0])
    losses = []
    for i in range(m):
        both = 0.0
        for own, other in ((v[0], v[1]), (v[1], v[0])):
            numerator = math.exp(similarity(own[i], other[i]) / temperature)  # Eq. 2-3, numerator
            denominator = 0.0 if printed else numerator
            for n in range(m):
                if n != i:
                    denominator += math.exp(similarity(own[i], other[n]) / temperature)  # Eq. 2-3, denominator
                    if not printed:
                        denominator += math.exp(similarity(own[i], own[n]) / temperature)
            both += -math.log(numerator / denominator)  # Eq. 2-3
        losses.append(both)
    return _weighted_mean(losses, _weight_list(weights, m))  # Eq. 4


# --- cluster selection ---


def student_t(latent: npt.ArrayLike, centers: npt.ArrayLike, alpha: float) -> FloatArray:
    """Soft assignment o (M x K) of each latent vector h to each center c."""
    h, c = np.asarray(latent, dtype=np.float64), np.asarray(centers, dtype=np.float64)
    o = np.zeros((len(h), len(c)), dtype=np.float64)
    for i in range(len(h)):
        normaliser = 0.0
        for k in range(len(c)):
            squared_distance = 0.0
            for d in range(h.shape[1]):
                squared_distance += (float(h[i, d]) - float(c[k, d])) ** 2
            o[i, k] = (1.0 + squared_distance / alpha) ** (-(alpha + 1.0) / 2.0)  # Eq. 5, numerator
            normaliser += float(o[i, k])  # Eq. 5, denominator
        for k in range(len(c)):
            o[i, k] = o[i, k] / normaliser  # Eq. 5
    return o


def printed_assignment(o: npt.ArrayLike) -> FloatArray:
    """s, the softmax of the probabilities o; kept to show that it names the same cluster."""
    return np.array([softmax(row) for row in np.asarray(o, dtype=np.float64)])  # Eq. 6


def target_distribution(o: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> FloatArray:
    """Sharpened target t (M x K), each cluster discounted by its (weighted) soft frequency."""
    o = np.asarray(o, dtype=np.float64)
    w = _weight_list(weights, len(o))
    t = np.zeros_like(o)
    for i in range(len(o)):
        normaliser = 0.0
        for k in range(o.shape[1]):
            f_k = 0.0
            for n in range(len(o)):
                f_k += w[n] * float(o[n, k])  # Eq. 7, f_k
            t[i, k] = float(o[i, k]) ** 2 / f_k if f_k > 0.0 else 0.0  # Eq. 7, numerator
            normaliser += float(t[i, k])  # Eq. 7, denominator
        for k in range(o.shape[1]):
            t[i, k] = t[i, k] / normaliser  # Eq. 7
    return t


def cluster_loss(t: npt.ArrayLike, o: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> float:
    """L_Cluster: the (weighted) mean over texts of KL[t_i || o_i]; 0 log 0 is 0."""
    t, o = np.asarray(t, dtype=np.float64), np.asarray(o, dtype=np.float64)
    losses = []
    for i in range(len(t)):
        divergence = 0.0
        for k in range(t.shape[1]):
            if t[i, k] > 0.0:
                divergence += float(t[i, k]) * math.log(float(t[i, k]) / float(o[i, k]))  # Eq. 8
        losses.append(divergence)
    return _weighted_mean(losses, _weight_list(weights, len(losses)))  # Eq. 9


# --- cluster-level representations: the generative part ---


def topic_embeddings(
    centers: npt.ArrayLike, topics: npt.ArrayLike, weight: npt.ArrayLike, bias: npt.ArrayLike
) -> FloatArray:
    """alpha (K x T x E): FC_g, one linear layer, of each center c_k followed by each topic vector u_t."""
    c, u = np.asarray(centers, dtype=np.float64), np.asarray(topics, dtype=np.float64)
    alpha = np.zeros((len(c), len(u), len(np.asarray(weight))), dtype=np.float64)
    for k in range(len(c)):
        for t in range(len(u)):
            joined = [[*c[k], *u[t]]]
            alpha[k, t] = linear(joined, weight, bias)[0]  # Eq. 10
    return alpha


def word_distributions(rho: npt.ArrayLike, alpha: npt.ArrayLike) -> FloatArray:
    """beta (K x V x T) from the V x E word vectors: each topic of each cluster a distribution over the words."""
    rho, alpha = np.asarray(rho, dtype=np.float64), np.asarray(alpha, dtype=np.float64)
    n_clusters, n_topics, width = alpha.shape
    beta = np.zeros((n_clusters, len(rho), n_topics), dtype=np.float64)
    for k in range(n_clusters):
        for t in range(n_topics):
            scores = []
            for v in range(len(rho)):
                dot = 0.0
                for d in range(width):
                    dot += float(rho[v, d]) * float(alpha[k, t, d])
                scores.append(dot)
            beta[k, :, t] = softmax(scores)  # Eq. 11
    return beta


def word_probabilities(o: npt.ArrayLike, beta: npt.ArrayLike, theta: npt.ArrayLike) -> FloatArray:
    """p (M x V): each text's words under the mixture of the clusters."""
    o, beta, theta = (np.asarray(array, dtype=np.float64) for array in (o, beta, theta))
    n_clusters, n_words, n_topics = beta.shape
    p = np.zeros((len(o), n_words), dtype=np.float64)
    for i in range(len(o)):
        for v in range(n_words):
            for k in range(n_clusters):
                of_cluster = 0.0
                for t in range(n_topics):
                    of_cluster += float(beta[k, v, t]) * float(theta[i, t])  # Eq. 12-13, beta_k theta_i
                p[i, v] += o[i, k] * of_cluster
    return p


# --- cluster-level representations: the inference part ---


def normalised_counts(counts: npt.ArrayLike) -> FloatArray:
    """Each row of word counts divided by its sum; a text without words stays 0."""
    bow = np.array(counts, dtype=np.float64)
    for i in range(len(bow)):
        total = 0.0
        for count in bow[i]:
            total += float(count)
        if total > 0.0:
            bow[i] = [float(count) / total for count in bow[i]]
    return bow


def inference_network(
    counts: npt.ArrayLike,
    *,
    hidden_weight: npt.ArrayLike,
    hidden_bias: npt.ArrayLike,
    mean_weight: npt.ArrayLike,
    mean_bias: npt.ArrayLike,
    logvar_weight: npt.ArrayLike,
    logvar_bias: npt.ArrayLike,
) -> tuple[FloatArray, FloatArray]:
    """(mu, log-variance), each M x T, from word counts: one hidden layer with ReLU and two linear heads."""
    hidden = relu(linear(normalised_counts(counts), hidden_weight, hidden_bias))
    return linear(hidden, mean_weight, mean_bias), linear(hidden, logvar_weight, logvar_bias)


def topic_proportions(mu: npt.ArrayLike, logvar: npt.ArrayLike, noise: npt.ArrayLike) -> FloatArray:
    """theta (M x T): the softmax of the sample mu + noise * sigma."""
    mu, logvar, noise = (np.asarray(array, dtype=np.float64) for array in (mu, logvar, noise))
    theta = np.zeros_like(mu)
    for i in range(len(mu)):
        sample = []
        for t in range(mu.shape[1]):
            sample.append(float(mu[i, t]) + float(noise[i, t]) * math.exp(0.5 * float(logvar[i, t])))  # Eq. 14
        theta[i] = softmax(sample)  # Eq. 13, theta_i
    return theta


def normal_divergence(mu: npt.ArrayLike, logvar: npt.ArrayLike) -> list[float]:
    """KL of N(mu_i, diag(exp(logvar_i))) from N(0, I), text by text."""
    mu, logvar = np.asarray(mu, dtype=np.float64), np.asarray(logvar, dtype=np.float64)
    divergences = []
    for i in range(len(mu)):
        total = 0.0
        for t in range(mu.shape[1]):
            variance = math.exp(float(logvar[i, t]))
            total += 0.5 * (float(mu[i, t]) ** 2 + variance - float(logvar[i, t]) - 1.0)  # Eq. 15, D_KL
        divergences.append(total)
    return divergences


def reconstruction_loss(
    counts: npt.ArrayLike,
    o: npt.ArrayLike,
    beta: npt.ArrayLike,
    mu: npt.ArrayLike,
    logvar: npt.ArrayLike,
    noise: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
) -> float:
    """L_RC: the negative evidence lower bound per word, with one noise sample a text."""
    n = np.asarray(counts, dtype=np.float64)
    p = word_probabilities(o, beta, topic_proportions(mu, logvar, noise))  # Eq. 13-14
    divergences = normal_divergence(mu, logvar)
    w = _weight_list(weights, len(n))
    losses, kept = [], []
    for i in range(len(n)):
        log_likelihood, length = 0.0, 0.0
        for v in range(n.shape[1]):
            if n[i, v] > 0.0:
                log_likelihood += float(n[i, v]) * math.log(float(p[i, v]))  # Eq. 13
                length += float(n[i, v])  # N_i
        if length > 0.0:
            losses.append((-log_likelihood + divergences[i]) / length)  # Eq. 15
            kept.append(w[i])
    return _weighted_mean(losses, kept) if losses else 0.0


def latent_reconstruction(
    latent: npt.ArrayLike,
    *,
    down_weight: npt.ArrayLike,
    down_bias: npt.ArrayLike,
    up_weight: npt.ArrayLike,
    up_bias: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
) -> float:
    """The LSR variant: h -> L/2 (ReLU) -> L, squared error, mean over dimensions, (weighted) mean over texts."""
    h = np.asarray(latent, dtype=np.float64)
    rebuilt = linear(relu(linear(h, down_weight, down_bias)), up_weight, up_bias)
    losses = []
    for i in range(len(h)):
        squared = 0.0
        for d in range(h.shape[1]):
            squared += (float(h[i, d]) - float(rebuilt[i, d])) ** 2
        losses.append(squared / h.shape[1])
    return _weighted_mean(losses, _weight_list(weights, len(losses)))


def deccrl_total(
    contrastive: float, cluster: float, reconstruction: float, *, lambda_c: float = 1.0, lambda_r: float = 0.1
) -> float:
    """The whole objective, from L_CL, L_Cluster and L_RC (or the LSR loss in its place)."""
    return contrastive + lambda_c * cluster + lambda_r * reconstruction  # Eq. 16
