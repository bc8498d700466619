"""Packs conversations into one flat token row, exactly as if each stood alone.

Sequences may share a prefix (the tool prompt): it is computed once and each continuation sees it. Attention runs in
chunks of QUERIES queries, each with the list of raw keys and compressed entries that its tokens may see; nothing leaks
between conversations. Positions, windows and entry borders are those of the conversation alone.
"""
import dataclasses

import numpy as np
import torch

QUERIES = 64


@dataclasses.dataclass
class Keys:
    """Keys of a chunk: index [C,K] into flat rows or entries, mask [C,QUERIES,K] uint8."""
    index: torch.Tensor
    mask: torch.Tensor


@dataclasses.dataclass
class Packed:
    tokens: torch.Tensor      # [T] int64, T a multiple of QUERIES
    position: torch.Tensor    # [T]
    following: torch.Tensor   # [T] next token, -1 where there is no loss
    after_next: torch.Tensor  # [T] the token after that, -1 where there is no loss (for the MTP block)
    entries: dict             # ratio -> [E,slots] token index of each slot, -1 for none
    entry_position: dict      # ratio -> [E] position of an entry's first token
    raw: Keys
    compressed: dict          # ratio -> Keys
    real_tokens: int


class _Segment:
    """Tokens that continue a parent segment; path = flat index of every token from position 0 on."""

    def __init__(self, start, tokens, targets, parent):
        self.start, self.tokens, self.targets = start, tokens, targets
        before = parent.path if parent else np.zeros(0, np.int64)
        self.first = len(before)
        self.path = np.concatenate([before, start + np.arange(len(tokens))])
        self.entries = {r: list(e) for r, e in parent.entries.items()} if parent else {}


def _shared(sequences, limit):
    """Length of the common prefix of token lists, at most limit."""
    n = min(limit, min(len(s) for s in sequences))
    first = sequences[0]
    for i in range(n):
        if any(s[i] != first[i] for s in sequences):
            return i
    return n


def segments(sequences, share):
    """Splits (tokens, targets, prompt length) triples into segments; shared prefixes come first, prompt tokens only."""
    out, at = [], 0

    def add(tokens, targets, parent):
        nonlocal at
        segment = _Segment(at, tokens, targets, parent)
        at += len(tokens)
        out.append(segment)
        return segment

    def grow(items, parent):
        done = parent.path.size if parent else 0
        if len(items) > 1:
            n = _shared([s[0] for s in items], min(s[2] for s in items) - 1)
            if n - done >= 16:
                parent = add(items[0][0][done:n], [-1] * (n - done), parent)
                done = n
            elif parent is None or n <= done:
                pass
            groups = {}
            for s in items:
                groups.setdefault(s[0][done], []).append(s)
            if len(groups) > 1 or n - done >= 16:
                for group in groups.values():
                    grow(group, parent)
                return
        for tokens, targets, _ in items:
            add(tokens[done:], targets[done:], parent)

    if share:
        grow(sequences, None)
    else:
        for tokens, targets, _ in sequences:
            add(tokens, targets, None)
    return out


def _new_entries(segment, ratio, slots, index, position):
    """Appends the entries that this segment completes."""
    known = segment.entries.setdefault(ratio, [])
    for b in range(len(known), len(segment.path) // ratio):
        own = segment.path[b * ratio : (b + 1) * ratio]
        if slots == 2 * ratio:
            before = segment.path[(b - 1) * ratio : b * ratio] if b else np.full(ratio, -1)
            own = np.concatenate([before, own])
        known.append(len(index))
        index.append(own)
        position.append(b * ratio)


def _keys(pieces, chunks):
    """pieces: per chunk a list of (query offset, key index, mask [q,k])."""
    width = max(1, max(sum(len(k) for _, k, _ in p) for p in pieces))
    index, mask = np.zeros((chunks, width), np.int64), np.zeros((chunks, QUERIES, width), np.uint8)
    for c, parts in enumerate(pieces):
        at = 0
        for q, keys, visible in parts:
            n = len(keys)
            index[c, at : at + n] = keys
            mask[c, q : q + visible.shape[0], at : at + n] = visible
            at += n
    return Keys(torch.from_numpy(index), torch.from_numpy(mask))


def pack(sequences, window, ratios=(4, 128), share=False, pad=2):
    """sequences: (tokens, targets, prompt length); targets[i] is the token after tokens[i], or -1 without loss."""
    parts = segments(sequences, share)
    real = sum(len(s.tokens) for s in parts)
    total = -(-real // QUERIES) * QUERIES
    if total > real:
        parts.append(_Segment(real, [pad] * (total - real), [-1] * (total - real), None))
    chunks = total // QUERIES
    index, where = {r: [] for r in ratios}, {r: [] for r in ratios}
    raw, compressed = [[] for _ in range(chunks)], {r: [[] for _ in range(chunks)] for r in ratios}
    position = np.empty(total, np.int64)
    for s in parts:
        end = s.start + len(s.tokens)
        position[s.start : end] = s.first + np.arange(len(s.tokens))
        for r in ratios:
            _new_entries(s, r, 2 * r if r == 4 else r, index[r], where[r])
        flat = s.start
        while flat < end:
            stop = min(end, (flat // QUERIES + 1) * QUERIES)
            c, q = flat // QUERIES, flat % QUERIES
            at = s.first + np.arange(flat - s.start, stop - s.start)
            low = max(0, at[0] - window + 1)
            place = np.arange(low, at[-1] + 1)
            raw[c].append((q, s.path[low : at[-1] + 1],
                           (place[None] <= at[:, None]) & (place[None] > at[:, None] - window)))
            for r in ratios:
                n = (at[-1] + 1) // r
                visible = np.arange(n)[None] < (at[:, None] + 1) // r
                compressed[r][c].append((q, np.array(s.entries[r][:n], np.int64), visible))
            flat = stop
    tokens = np.concatenate([np.asarray(s.tokens, np.int64) for s in parts])
    following = np.concatenate([np.asarray(s.targets, np.int64) for s in parts])
    after = np.full(total, -1, np.int64)
    for s in parts:  # the target of the next token in the same segment
        after[s.start : s.start + len(s.tokens) - 1] = following[s.start + 1 : s.start + len(s.tokens)]
    slots = {r: 2 * r if r == 4 else r for r in ratios}
    entries = {r: torch.from_numpy(np.array(index[r], np.int64).reshape(-1, slots[r])) for r in ratios}
    return Packed(torch.from_numpy(tokens), torch.from_numpy(position), torch.from_numpy(following),
                  torch.from_numpy(after), entries, {r: torch.tensor(where[r], dtype=torch.int64) for r in ratios},
                  _keys(raw, chunks), {r: _keys(compressed[r], chunks) for r in ratios}, real)
