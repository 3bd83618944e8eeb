from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
from sacrebleu.tokenizers.tokenizer_char import TokenizerChar
from sacrebleu.tokenizers.tokenizer_intl import TokenizerV14International
from sacrebleu.tokenizers.tokenizer_zh import TokenizerZh
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


PEERS = {
    "13a": Tokenizer13a(),
    "intl": TokenizerV14International(),
    "zh": TokenizerZh(),
    "char": TokenizerChar(),
}


@pytest.mark.parametrize("name", PEERS)
@pytest.mark.parametrize("text", TEXTS)
def test_tokens_are_those_of_sacrebleu(name, text):
    assert tokenizer(name)(text) == PEERS[name](unicodedata.normalize("NFC", text)).split()


@pytest.mark.parametrize("name", PEERS)
@given(
    text=st.text(st.sampled_from("aB1 .,-'\"&;:<>!_^~\\|\n一，。￥２é٣½€→“—।\u3000\U00020000😀"))
)
def test_tokens_of_any_text_are_those_of_sacrebleu(name, text):
    assert tokenizer(name)(text) == PEERS[name](text).split()


def test_zh_parts_the_characters_that_sacrebleu_parts():
    known = (chr(code) for code in range(0x80, 0x30000) if not 0xD800 <= code < 0xE000)
    for character in (c for c in known if unicodedata.is_normalized("NFC", c)):
        text = f"a {character}b"
        assert tokenizer("zh")(text) == PEERS["zh"](text).split(), hex(ord(character))


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        ("intl", "Él pagó 1,5 € , ¿ no ? Sí — “ ya ” 。"),
        ("zh", "Él pagó 1,5 € , ¿no ? Sí — “ ya ” 。"),
        ("char", "É l p a g ó 1 , 5 € , ¿ n o ? S í — “ y a ” 。"),
    ],
)
def test_tokens_of_a_sentence(name, tokens):
    assert " ".join(tokenizer(name)("Él pagó 1,5€,¿no? Sí—“ya”。")) == tokens


@pytest.mark.parametrize("name", ["default", "whitespace", "parlai", "bert", *PEERS])
def test_an_accent_of_its_own_makes_no_other_word(name):
    text = "Zoë's café, 한국어 が"
    decomposed = unicodedata.normalize("NFD", text)
    assert decomposed != text
    assert tokenizer(name)(decomposed) == tokenizer(name)(text)


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
