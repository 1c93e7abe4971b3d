"""Specs print and parse back; errors of wrong ones say what would be right."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scoring import score

from rejoinder.errors import UsageError
from rejoinder.items import Item, Reference
from rejoinder.metrics.metric import make_metric
from rejoinder.spec import Spec, did_you_mean, parse

names = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True).filter(
    lambda name: name not in ("true", "false")
)
plain = (
    st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
    | st.from_regex(r"(~|\.{0,2}/|[A-Z]:\\|https?://)[^\n]{0,12}", fullmatch=True)
    | st.from_regex(r"[a-z0-9.:/-]{1,12}", fullmatch=True)
)
specs = st.recursive(
    st.builds(Spec, names),
    lambda inner: st.builds(
        lambda name, params: Spec(name, tuple(params.items())),
        names,
        st.dictionaries(names, plain | inner.filter(lambda s: s.params), max_size=3),
    ),
    max_leaves=4,
)


@given(specs)
def test_printing_and_parsing_are_inverse(spec: Spec) -> None:
    assert parse(str(spec)) == spec


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bleu", Spec("bleu")),
        (" bleu ( n = 2 , smooth = add-k ) ", Spec("bleu", (("n", 2), ("smooth", "add-k")))),
        ("a(x=1.5,y=-2,z=1e-3)", Spec("a", (("x", 1.5), ("y", -2), ("z", 0.001)))),
        ("a(t=13a)", Spec("a", (("t", "13a"),))),
        ("a(refs=top(3))", Spec("a", (("refs", Spec("top", (("k", 3),))),))),
        ("a(refs=soft(2.5))", Spec("a", (("refs", Spec("soft", (("b", 2.5),))),))),
        (r'a(m="b \"c\" \\d")', Spec("a", (("m", r'b "c" \d'),))),
        ("a(b=true,c=false)", Spec("a", (("b", True), ("c", False)))),
        ("bleu()", Spec("bleu")),
        ("a(m=/data/bert)", Spec("a", (("m", "/data/bert"),))),
        ("a(m=./bert,n=../b-2/c.d)", Spec("a", (("m", "./bert"), ("n", "../b-2/c.d")))),
        ("a(m=~/bert, n=~)", Spec("a", (("m", "~/bert"), ("n", "~")))),
        ("a(m=.,n=..)", Spec("a", (("m", "."), ("n", "..")))),
        (r"a(m=C:\Users\me\bert,n=d:/x)", Spec("a", (("m", r"C:\Users\me\bert"), ("n", "d:/x")))),
        ("a(m=b(x=/é/ü:1),n=.5)", Spec("a", (("m", Spec("b", (("x", "/é/ü:1"),))), ("n", 0.5)))),
        (
            "a(url=http://127.0.0.1:8000/v1,model=Qwen/Qwen2.5-0.5B)",
            Spec("a", (("url", "http://127.0.0.1:8000/v1"), ("model", "Qwen/Qwen2.5-0.5B"))),
        ),
        ("a(u=https://[::1]/x)", Spec("a", (("u", "https://[::1]/x"),))),
        ("a(m=llama3.2:1b, n=7:b)", Spec("a", (("m", "llama3.2:1b"), ("n", "7:b")))),
    ],
)
def test_parse(text: str, expected: Spec) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize(
    "path",
    [
        *("/data/bert", "./x", "../x", "~/x", r"C:\models\bert", "."),
        *("http://127.0.0.1:8000/v1", "https://a.example", "llama3.2:1b"),
    ],
)
def test_paths_are_printed_as_they_are_written(path: str) -> None:
    assert str(Spec("a", (("m", path),))) == f"a(m={path})"
    assert str(Spec("a", (("m", f"{path} b"),))).startswith('a(m="')


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "expected a name, found the end"),
        ("bleu(", "expected name=value|expected a value"),
        ("bleu(n=2", "expected ',' or '\\)', found the end"),
        ("bleu(n)", "expected '=' after 'n'"),
        ("bleu(n=2))", "expected the end, found '\\)'"),
        ("bleu(n=2,n=3)", "'n' is given twice"),
        ("bleu(n=)", "expected a value"),
        ("top(1,2)", "expected name=value"),
        ("bleu(3)", "'bleu\\(3\\)': expected name=value, found '3\\)'"),
        ("bleu(n=2,)", "expected name=value, found '\\)'"),
        ("a(x=1e999)", "1e999 is too large"),
        ("a(x=-1e999)", "-1e999 is too large"),
        ("a(x=" + "9" * 19 + ")", "more than 18 digits"),
        ("a(x=" + "9" * 5000 + ")", "more than 18 digits"),
        ("a(x=" * 5000, "too deeply nested"),
        ("a(x=" * 21 + "1" + ")" * 21, "too deeply nested"),
        ("bleu(n=2) extra", "expected the end"),
    ],
)
def test_errors_point_at_the_wrong_place(text: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        parse(text)


def test_ordinary_nesting_and_digits_are_fine() -> None:
    parse("a(x=" * 20 + "1" + ")" * 20)
    assert parse("a(x=999999999999999999)").params == (("x", 10**18 - 1),)
    assert parse("a(x=0.00012345678901234567)").params == (("x", 0.00012345678901234567),)


def test_no_allowed_parameter_leaves_the_range_of_numbers() -> None:
    for spec in (
        *(f"bleu(n=16,smooth={s},smooth_value={v})" for s in ("epsilon", "add-k") for v in ENDS),
        "bleu(n=16,smooth=nist,smooth_value=1000)",
        *(f"{name}(beta={b})" for name in ("rouge-l", "chrf", "meteor", "ribes") for b in ENDS),
        *(f"ribes(alpha={b})" for b in ENDS),
    ):
        for reply in ("a b c", "a x b", "z", ""):
            item = Item("1", reply, references=[Reference("a b c d")])
            assert 0 <= score([item], spec).values[0] < 1e9


ENDS = (1e-300, 1000.0)


def test_all_wrong_parameters_are_reported_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        make_metric("bleu(n=two,smoth=none,lower=3)")
    assert list(caught.value.messages) == [
        "bleu: n=two is not a whole number",
        "bleu has no parameter 'smoth': did you mean 'smooth' or 'smooth_value'?",
        "bleu: lower=3 is not true or false",
    ]


def test_did_you_mean_names_the_nearest_or_all() -> None:
    assert did_you_mean("blue", ["bleu", "wer"]) == "did you mean 'bleu'?"
    assert did_you_mean("zzz", ["wer", "bleu"]) == "known: bleu, wer"


@pytest.mark.parametrize(
    "spec",
    [
        "bleu(n=0)",
        "bleu(smooth=maybe)",
        "bleu(bp=long)",
        "bleu(smooth_value=-1.0)",
        "bleu(smooth_value=0)",
        "bleu(smooth_value=1001)",
        "bleu(smooth=nist,smooth_value=0.5)",
        "rouge-l(beta=1e7)",
        "chrf(beta=1e7)",
        "meteor(beta=1e7)",
        "meteor(alpha=1.5)",
        "ribes(alpha=1e7)",
        "ribes(beta=-1)",
        "bleu(refs=top(1000001))",
        "bleu(smooth_value=1e999)",
        "bleu(smooth=none,smooth_value=0.1)",
        "bleu(short=x)",
        "bleu(refs=some)",
        "bleu(refs=top(0))",
        "rouge-l(refs=all)",
        "bleu(tok=nonsense)",
        "bleu(tok=sentencepiece)",
        "recall(d=distinct)",
    ],
)
def test_parameters_out_of_range_are_usage_errors(spec: str) -> None:
    with pytest.raises(UsageError):
        make_metric(spec)


def test_signature_holds_every_parameter_and_the_version() -> None:
    from rejoinder import __version__

    assert make_metric("delta-bleu(n=2)").signature() == (
        "delta-bleu|n:2|smooth:epsilon|smooth_value:0.1|bp:closest|short:one|refs:all|tok:13a"
        f"|lower:no|version:{__version__}"
    )


def test_a_value_with_a_blank_should_be_quoted() -> None:
    with pytest.raises(UsageError, match=r'parentheses: model="/tmp/my models/bert"$'):
        parse("bertscore(model=/tmp/my models/bert)")


def test_a_name_with_a_number_suggests_the_parameter() -> None:
    from rejoinder.registry import METRICS

    with pytest.raises(UsageError, match=r"unknown metric 'bleu-2': did you mean 'bleu\(n=2\)'\?"):
        METRICS.find("bleu-2")
    with pytest.raises(UsageError, match="did you mean 'rouge-l'"):
        METRICS.find("rouge-2")
