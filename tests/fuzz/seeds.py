"""Small valid files of every format, made by code, which use each feature of its syntax."""

from __future__ import annotations

import bz2
import gzip

SVMLIGHT = [
    b"1 1:0.5 7:2 # a comment\n-1 qid:3 2:1e-3 4:-.5\n\n# a line of comment\n+1 5:1 3:2 3:4 9:nan\n",
    b"spam 0:1 2147483647:1\nham\t3000000000:2.5\r\n1,3 1:1#c\n \t2 1:123456789012345678901234567890\n",
    "größe 1:1\nn 2:4.9e-324 5:179769313486231570000000\n0 qid:7 1:0 qid:8\n".encode(),
    b"1 " + b" ".join(b"%d:%d.%d" % (n, n % 9, n % 7) for n in range(80)) + b"\n0 1:1\n" * 6,
]
VW = [
    b"1 | a b:2 c:-0.5\n-1 2.0 'tag|f x y:1e-3 |g:0.5 z\n\n1 0.5 0.25 tag2|f x:1\n",
    "spam |größe naïve:2 b^c \r\n1,3 | a:123456789012345678901234567890\n'only|a\n".encode(),
    b"1 |namespace_of_many_letters feature_of_many_letters:3.25 q\n2 | x:nan y\n" * 3,
    b"0 |a " + b" ".join(b"w%d:%d.5" % (n, n) for n in range(60)) + b"\n1 |a w1\n" * 5,
]
FASTTEXT = [
    b"__label__a some words\n__label__b  other\twords \n\n__label__a\n",
    "__label__größe naïve text\r\n__label__c,d x __y__ z\n".encode(),
    b"__label__a __label__b two labels\n__label__a x\n" * 4,
]
CONLL = [
    b"EU NNP B-NP B-ORG\nrejects VBZ B-VP O\n\n-DOCSTART- -X- O O\n\nPeter NNP B-NP B-PER\n\n",
    "der\tDET\nHund\tNOUN\r\n\r\n# # O\ngroße\tADJ\n\n\n10\u00a0000\tNUM\n".encode(),
    b"# sent_id = 1\na D\ndog N\n\n# text = b c\nb X\nc Y\n\n",
]
CONLLU = [
    b"# newdoc\n# text = They buy\n1\tThey\tthey\tPRON\tPRP\tCase=Nom\t2\tnsubj\t_\t_\n"
    b"2\tbuy\tbuy\tVERB\tVBP\t_\t0\troot\t_\tSpaceAfter=No\n\n",
    "1-2\tvámonos\t_\t_\t_\t_\t_\t_\t_\t_\n1\tvamos\tir\tVERB\t_\t_\t0\troot\t_\t_\n"
    "2\tnos\tnosotros\tPRON\t_\t_\t1\tobj\t_\t_\n2.1\tx\t_\t_\t_\t_\t_\t_\t_\t_\n\n1\ta\ta\tX\t_\t_\t_\t_\t_\t_\n".encode(),
]
SENTENCES = [b"The dog  barks .\n\nIt\tis late\r\n", "Schöne Grüße\n10\u00a0000 dogs\n".encode()]
CSV = [  # rows of the columns n (numbers), t (texts) and label
    b'1,a,p\n2.5,"b, c",q\n,"said ""no""",p\n-3e2, padded ,q\n',
    'NA,"two\nlines",p\r\n7,größe,q\n\n+.5,"",p\n12345678901234567890,?,q\n'.encode(),
    b'4,5" disc,p\n5,"\ttab",q\n6,x\ry,p\n' * 3,
]
JSONL = [  # rows with the keys n (a number), t (a text) and label
    b'{"n": 1, "t": "a", "label": "p"}\n{"n": 2.5, "label": "q", "t": "b \\"c\\" \\u00e9"}\n\n{"label": "p"}\n',
    '{"n": null, "t": "größe\\n", "label": "q"}\r\n{"n": -3e2, "t": "", "label": "p", "o": {"x": []}}\n'.encode(),
    b'{"n":12345678901234567890,"t":"2020-01-01","label":"p"}\n{"label":"q","t":null,"n":true}\n' * 2,
    b'{"n":1,"t":"a","label":"p","l":[null,1.5]}\n{"n":2,"t":"b","label":"q","l":[2,null],"o":[{"x":null},{"x":[1]}]}\n',
]


def zstd(text: bytes) -> bytes:
    import pyarrow as pa

    return pa.compress(text, codec="zstd", asbytes=True)


TEXTS = [SVMLIGHT[0] * 20, b"".join(b"%d %d:1.%d\n" % (n % 2, n, n * 7919) for n in range(400))]
GZIP = [gzip.compress(text, mtime=0) for text in TEXTS]
GZIP += [gzip.compress(TEXTS[0][:500], mtime=0) + gzip.compress(TEXTS[0][500:], mtime=0)]  # two members
BZIP2 = [bz2.compress(text) for text in TEXTS]
BZIP2 += [bz2.compress(TEXTS[0][:500]) + bz2.compress(TEXTS[0][500:])]
ZSTD = [zstd(text) for text in TEXTS]
ZSTD += [zstd(TEXTS[0][:500]) + zstd(TEXTS[0][500:])]
