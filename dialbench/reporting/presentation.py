"""How each measure is headed and printed; whatever is not listed here is printed plainly."""

from __future__ import annotations

import re
import unicodedata

from dialbench.records import Column

_DIVERSITY, _LEXICAL, _OVERLAP = "Diversity", "Lexical", "Overlap"
_EMBEDDING, _ENTAILMENT, _SEMANTIC = "Embedding", "Entailment", "Semantic"
_SYSTEM = "System"
_UNSEEN = ("Cc", "Cf", "Cs")
_SATURATED = "close to 1 for nearly any text"
_RATED = "people rated generic responses higher than others, see docs/metrics.md"

_KNOWN = {
    column.name: column
    for column in (
        Column("length", "Length", digits=1, direction="none", group=_LEXICAL),
        Column("different", "Different", digits=1, percent=True, direction="none", group=_LEXICAL),
        Column("mtld", "MTLD", digits=1, group=_LEXICAL),
        Column("mattr", "MATTR", group=_LEXICAL),
        Column("mattr-4", "MATTR-4", group=_LEXICAL, unranked=_SATURATED),
        *(Column(f"dist-{n}", f"Dist-{n}", group=_DIVERSITY) for n in (1, 2, 3)),
        *(
            Column(f"intra-dist-{n}", f"Intra-dist-{n}", group=_DIVERSITY, unranked=_SATURATED)
            for n in (1, 2, 3)
        ),
        *(Column(f"ead-{n}", f"EAD-{n}", group=_DIVERSITY) for n in (1, 2)),
        *(Column(f"ent-{n}", f"Ent-{n}", digits=2, group=_DIVERSITY) for n in (1, 2, 3, 4)),
        *(Column(f"rare-dist-{n}", f"Rare-dist-{n}", group=_DIVERSITY) for n in (1, 2, 3)),
        *(Column(f"ent-mm-{n}", f"Ent-MM-{n}", digits=2, group=_DIVERSITY) for n in (1, 2, 3, 4)),
        Column("self-bleu", "Self-BLEU", direction="lower", group=_DIVERSITY),
        *(
            Column(f"self-bleu-{n}", f"Self-BLEU-{n}", direction="lower", group=_DIVERSITY)
            for n in (2, 3)
        ),
        Column("compression-ratio", "Compression", digits=2, direction="lower", group=_DIVERSITY),
        Column("ngram-diversity", "N-gram diversity", group=_DIVERSITY),
        Column("self-repetition", "Self-repetition", direction="lower", group=_DIVERSITY),
        Column("homogenization", "Homogenization", direction="lower", group=_DIVERSITY),
        *(Column(f"within-dist-{n}", f"Within-dist-{n}", group=_DIVERSITY) for n in (1, 2)),
        Column("within-self-bleu", "Within-self-BLEU", direction="lower", group=_DIVERSITY),
        Column("novelty", "Novelty", group=_DIVERSITY),
        Column("generic-rate", "Generic", direction="none", group=_DIVERSITY, unranked=_RATED),
        Column("copy-rate", "Copied", direction="lower", group=_DIVERSITY),
        Column("duplicate-rate", "Duplicates", direction="lower", group=_DIVERSITY),
        *(Column(f"bleu-{n}", f"BLEU-{n}", group=_OVERLAP) for n in (1, 2, 3, 4)),
        Column("sacrebleu-4", "sacreBLEU", group=_OVERLAP),
        Column("bleu-parlai", "BLEU (ParlAI)", group=_OVERLAP),
        *(Column(f"bleu-plato-{n}", f"BLEU-{n} (PLATO)", group=_OVERLAP) for n in (1, 2)),
        *(Column(f"bleu-plato-new-{n}", f"BLEU-{n} (PLATO, new)", group=_OVERLAP) for n in (1, 2)),
        *(Column(f"bleu-coco-{n}", f"BLEU-{n} (COCO)", group=_OVERLAP) for n in (1, 2, 3, 4)),
        Column("meteor", "METEOR", group=_OVERLAP),
        Column("meteor-1.5", "METEOR 1.5", group=_OVERLAP),
        Column("meteor-coco", "METEOR (COCO)", group=_OVERLAP),
        *(Column(f"rouge-{n}", f"ROUGE-{n}", group=_OVERLAP) for n in (1, 2)),
        Column("rouge-l", "ROUGE-L", group=_OVERLAP),
        Column("rouge-l-coco", "ROUGE-L (COCO)", group=_OVERLAP),
        Column("cider", "CIDEr", group=_OVERLAP),
        Column("f1", "F1", group=_OVERLAP),
        Column("chrf", "chrF", group=_OVERLAP),
        Column("emb-average", "Average", group=_EMBEDDING),
        Column("emb-greedy", "Greedy", group=_EMBEDDING),
        Column("emb-extrema", "Extrema", group=_EMBEDDING),
        Column("ue", "UE", group=_ENTAILMENT),
        Column("ue-raw", "UE (unguarded)", group=_ENTAILMENT),
        Column("ue-soft", "UE (soft)", group=_ENTAILMENT),
        Column("ue-p-entail", "P(entailed)", group=_ENTAILMENT),
        Column("ue-entail", "Entailed", group=_ENTAILMENT),
        Column("ue-neutral", "Neutral", direction="none", group=_ENTAILMENT),
        Column("ue-contradict", "Contradicted", direction="lower", group=_ENTAILMENT),
        Column("bertscore", "BERTScore", group=_SEMANTIC),
        Column("mauve", "MAUVE", group=_SEMANTIC),
        Column("emb-sentence", "Sentence", group=_SEMANTIC),
        Column("emb-context", "Context", group=_SEMANTIC),
        Column("vendi", "Vendi", digits=1, group=_SEMANTIC),
        Column("within-vendi", "Within-Vendi", digits=2, group=_SEMANTIC),
        Column("perplexity", "Perplexity", digits=1, direction="lower", group=_SYSTEM),
        Column("context-gain", "Context gain", group=_SYSTEM),
        Column("word-recall", "Word recall", group=_SYSTEM),
        Column("parameters", "Parameters", digits=0, direction="none", group=_SYSTEM),
        Column("trained-parameters", "Trained", digits=0, direction="none", group=_SYSTEM),
        Column("random-parameters", "Random", digits=0, direction="none", group=_SYSTEM),
        Column("cases-per-second", "Cases/s", digits=1, group=_SYSTEM),
        Column("cases-per-ms", "Cases/ms", group=_SYSTEM),
        Column("seconds-per-word", "s/word", digits=4, direction="lower", group=_SYSTEM),
    )
}


def column_of(metric: str) -> Column:
    """The column of a measure, without a signature."""
    return _KNOWN.get(metric) or Column(metric, metric)


def clean(text: str) -> str:
    """`text` on one line, composed, and without characters that cannot be seen.

    What every outlet does to text from outside (tables, pages, CSV, the terminal): no escape
    sequence, no text direction and no line break of a system, a server or a file gets through.
    """
    text = unicodedata.normalize("NFC", " ".join(text.split()))
    return " ".join(visible(text).split())


def visible(text: str) -> str:
    """`text` without control and format characters and lone surrogates; line breaks stay."""
    return "".join(c for c in text if c == "\n" or unicodedata.category(c) not in _UNSEEN)


def slug(text: str) -> str:
    """`text` as the stem of a file name: letters, digits, `-`, `_` and inner dots."""
    return re.sub(r"[^\w.]+", "-", text, flags=re.ASCII).strip("-.") or "unnamed"
