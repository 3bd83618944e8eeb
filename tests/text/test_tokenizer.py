from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from dialbench.errors import UnknownName
from dialbench.text.tokenizer import _TOKEN, _normalise, detokenize, tokenize, tokenizer

TEXTS = [
    "Don't you know the answer, a 3.5-litre engine?!",
    "I can't; she'll say “it’s an O'Neill thing” (really)...",
    "Zoë's naïve CAFÉ — 20% off, e.g. $1,000.50 & more <unk> [sic]",
    "你好，世界。Привет, мир! 한국어 ｆｕｌｌ",
    "😀👍🏽 <3 ^_^ `code` \\ back | pipe ~ tilde",
    "a\u00a0b\u2009c\td\r\ne\u200bf\x00g\ufffdh\u0085i",
    "x -\ny 2-3 U.S. 1. .5 ,6 &quot;q&quot; &amp;lt; <skipped>z",
    "The an a THE other and",
    "",
    " \n ",
]


def bert(text):
    normal = BertNormalizer(lowercase=True).normalize_str(text)
    return [token for token, _ in BertPreTokenizer().pre_tokenize_str(normal)]


def parlai(text):
    marks = "!\"#$%&()*+,-./:;<=>?@[]\\^`{|}~_'"
    words = "".join(" " if c in marks else c for c in text.lower()).split()
    return [word for word in words if word not in ("a", "an", "the")]


@pytest.mark.parametrize("text", TEXTS)
def test_bert_tokens_are_those_of_the_tokenizers_library(text):
    assert tokenizer("bert")(text) == bert(text)


@pytest.mark.parametrize("text", TEXTS)
def test_13a_tokens_are_those_of_sacrebleu(text):
    assert tokenizer("13a")(text) == Tokenizer13a()(text).split()


@given(st.text(st.sampled_from("aB1 .,-'\"&;:<>!_^~\\|\n")))
def test_13a_tokens_of_any_ascii_text_are_those_of_sacrebleu(text):
    assert tokenizer("13a")(text) == Tokenizer13a()(text).split()


@given(st.text(st.sampled_from("athn 'e_-.\"(]\\,X")))
def test_parlai_drops_punctuation_and_articles(text):
    assert tokenizer("parlai")(text) == parlai(text)


def test_parlai_on_a_sentence():
    assert " ".join(tokenizer("parlai")("The cat's hat, an old-ish one, fell.")) == (
        "cat s hat old ish one fell"
    )


def test_whitespace_keeps_case_and_punctuation():
    assert tokenizer("whitespace")(" A  b.\tC's \n") == ["A", "b.", "C's"]


def test_default_tokens():
    assert tokenizer("default") is tokenize
    assert " ".join(tokenize("I don't KNOW, she'll say <unk>!")) == (
        "i do n't know , she 'll say <unk> !"
    )
    assert tokenize("I ’ m here") == ["i", "'m", "here"]
    assert tokenize("") == []


@given(st.text(st.sampled_from("aN '’n t s .,-<>unk_ä\u0301\u00a0\u2028\x1c\x85\n")))
def test_default_tokens_do_not_depend_on_what_stands_beyond_white_space(text):
    assert tokenize(text) == _TOKEN.findall(_normalise(text))


@pytest.mark.parametrize("text", TEXTS)
def test_default_tokens_survive_the_way_back(text):
    tokens = tokenize(text)
    assert tokenize(detokenize(tokens)) == tokens


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(UnknownName, match="'whitespace'"):
        tokenizer("whitespaces")
