"""Damaged files, each known by the seed that it was made with."""

import copy
import io
import json
import zipfile
import zlib

import srsly

#: What readers trip over.
PIECES = [
    *(
        b"\t",
        b"\n",
        b"\n\n",
        b" " * 50,
        b"\0",
        b"\xff",
        b"\xed\xa0\x80",
        b"\r",
        "\u2028\u202e".encode(),
    ),
    *(b"(", b")", b"|", b"((1)", b"1)1)", b"-", b"_", b"*", b"#begin document (a); part 9"),
    *(b"#end document\n", b"[" * 200, b"[]", b"{}", b'"', b"null", b"NaN", b"-1", b"9" * 30),
    *(b"[1/999999]", b"[0/0]", b"1-2", b"1.1", b"# newdoc id = x\n", b"Entity=(e1", b'"\\ud800"'),
]
#: What may stand where JSON has something else.
VALUES = [None, True, 0, -1, 3, 10**30, 0.5, float("nan"), "", "Ada", "\ud800", [], [[]], [0, 1]]
VALUES += [{}, {"text": 1}, {"id": None}, [None], [{}], ["a"], [[0, 1]], [[[0, 0]]]]
#: What msgpack can hold of these, and bytes, which JSON cannot.
PACKABLE = [value for value in VALUES if value not in (10**30, "\ud800")]
PACKABLE += [b"", b"\x80", b"\x81\x01", b"\0" * 8, b"\xff" * 8, 2**31, 2**63, -(2**63)]


def damage(original, choose):
    """A part of a file, most often all of it, with bytes cut out, doubled, changed or put in."""
    content = bytearray(original)
    if choose.random() < 0.5:
        start = choose.randrange(len(content) + 1)
        content = content[start : start + choose.randrange(1500)]
    for _ in range(choose.randrange(1, 6)):
        damage_once(content, choose)
    return bytes(content)


def damage_once(content, choose):
    start = choose.randrange(len(content) + 1)
    end = min(len(content), start + choose.randrange(60))
    kind = choose.randrange(6)
    if kind == 0:
        del content[start:end]
    elif kind == 1:
        content[start:start] = content[start:end]
    elif kind == 2:
        content[start:start] = choose.choice(PIECES)
    elif kind == 3:
        content[start:end] = choose.randbytes(choose.randrange(20))
    elif kind == 4:
        other = choose.randrange(len(content) + 1)
        content[start:end] = content[other : other + choose.randrange(60)]
    elif content:
        content[start % len(content)] ^= 1 << choose.randrange(8)


def damage_text(original, choose):
    """Damage that leaves UTF-8: what is not text is refused before anything in it is read."""
    return damage(original, choose).decode("utf-8", "ignore").encode()


def misshapen(record, choose, values=VALUES):
    """Values in places where others belong, and keys that are not there."""
    record = copy.deepcopy(record)
    for _ in range(choose.randrange(1, 4)):
        holder, key = None, None
        inner = record
        while (
            isinstance(inner, dict | list) and inner and (holder is None or choose.random() < 0.8)
        ):
            keys = list(inner) if isinstance(inner, dict) else range(len(inner))
            holder, key = inner, choose.choice(keys)
            inner = inner[key]
        if holder is None:
            record = choose.choice(values)
        elif choose.random() < 0.25:
            del holder[key]
        elif isinstance(inner, bytes) and choose.random() < 0.7:
            content = bytearray(inner)
            damage_once(content, choose)
            holder[key] = bytes(content)
        else:
            holder[key] = copy.deepcopy(choose.choice(values))
    return record


def damage_json(record, choose):
    """JSON with values of other kinds."""
    return json.dumps(misshapen(record, choose)).encode()


def damage_docs(original, choose):
    """A `.spacy` file that is damaged within: one with damaged bytes cannot be unpacked."""
    unpacked = zlib.decompress(original)
    if choose.random() < 0.3:
        return zlib.compress(damage(unpacked, choose))
    record = misshapen(srsly.msgpack_loads(unpacked), choose, PACKABLE)
    return zlib.compress(srsly.msgpack_dumps(record))


def damage_pickle(original, choose):
    """A checkpoint whose pickle is damaged, in an archive that is not."""
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(original)) as old, zipfile.ZipFile(packed, "w") as new:
        for name in old.namelist():
            content = bytearray(old.read(name))
            if name.endswith("data.pkl"):
                for _ in range(choose.randrange(1, 4)):
                    damage_once(content, choose)
            new.writestr(name, bytes(content))
    return packed.getvalue()
