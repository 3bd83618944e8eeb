"""The grammar of the demo corpus: how its conversations go, whatever their topic.

A template names facts in braces, drawn once per dialogue. An ask may only name facts that were
said before (or that its exchange introduces), so everything asked picks up the context; an answer
may bring new ones.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Exchange:
    """Two turns: what one speaker says, and what the other may answer.

    Attributes:
        asks: ways to say the first turn.
        answers: ways to answer it.
        dull: answers that fit nearly everywhere and say next to nothing.
        introduces: facts that the asks may name although nobody did before.
        needs: facts that must have been said.
        unless: facts that must not have been said.
    """

    asks: tuple[str, ...]
    answers: tuple[str, ...]
    dull: tuple[str, ...] = ()
    introduces: frozenset[str] = frozenset()
    needs: frozenset[str] = frozenset()
    unless: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Plot:
    """A kind of conversation: fixed opening turns, exchanges in any order, a closing exchange."""

    opening: tuple[tuple[str, ...], ...]
    middle: tuple[Exchange, ...]
    closing: tuple[Exchange, ...]


def _facts(names: str) -> frozenset[str]:
    return frozenset(names.split())


_UNSURE = ("i do not know .", "i have no idea .", "i am not sure .", "maybe .")
_MILD = ("it is okay .", "not too bad .", "i think so .", "yes .", "not really .")
_WILLING = ("sure .", "okay .", "that sounds good .", "yes , of course .")
_DECLINING = ("no , thank you .", "not really .", "i do not think so .")
_GLAD = ("that is great .", "really ?", "that is nice .", "i see .", "wow .")
_SORRY = ("oh no .", "i am sorry to hear that .", "that is too bad .", "really ?")
_PARTING = ("okay .", "thank you .", "thanks a lot .", "goodbye .", "see you .", "you are right .")
DULL_REPLIES = frozenset(
    (*_UNSURE, *_MILD, *_WILLING, *_DECLINING, *_GLAD, *_SORRY, *_PARTING, "no .")
)
"""Replies that fit nearly everywhere: what a model says that ignores its context."""

_COMPANION = Exchange(
    ("did you go alone ?", "who was with you ?", "was anybody with you ?"),
    (
        "no , {name} came along , {she} is my {relation} .",
        "my {relation} {name} was with me .",
        "i was with {name} , my {relation} .",
        "{name} was there , and {she} brought {item} .",
    ),
    unless=_facts("name"),
)
_HOW_IS = Exchange(
    ("how is {name} these days ?", "and how is {name} ?", "what is new with {name} ?"),
    ("{she} {life} .", "{name} is fine , {she} {life} .", "you know {name} , {she} {life} ."),
    ("not too bad .", *_UNSURE[:1]),
)
_JOIN = Exchange(
    ("can i come along next time ?", "may i join you next time ?", "will you take me with you ?"),
    (
        "of course , let us meet {place} on {day2} .",
        "with pleasure , just bring {item} .",
        "yes , {name} and i will be {place} on {day2} .",
        "gladly , {name} would like to meet you .",
    ),
    _WILLING,
    needs=_facts("did"),
    unless=_facts("day2"),
)
_PLACE = Exchange(
    ("what is it like {place} ?", "is it nice {place} ?"),
    (
        "it is crowded on {day} , but quiet on {day2} .",
        "you only pay {price} pounds {place} .",
        "it is the best place to {hobby} , {name} found it .",
    ),
    _MILD[:2],
    needs=_facts("place"),
)
_LIKES_TOO = Exchange(
    ("does {name} like {hobbying} , too ?", "does {name} also {hobby} ?"),
    (
        "yes , {she} taught me how to {hobby} .",
        "no , {she} only did it because of me .",
        "{name} does , {she} thinks that {like} .",
    ),
    _MILD[2:],
    unless=_facts("like dislike"),
)
_FAREWELL = Exchange(
    (
        "sorry , i have to {chore} now .",
        "i must go now , but tell me more about {object} on {day2} .",
        "i must go now , let us talk about {name} another day .",
        "i must go now , but i will think of you on {day} .",
    ),
    ("see you on {day2} then .", "let us talk on {day2} .", "give me a call on {day2} ."),
    _PARTING,
    introduces=_facts("chore day2"),
    unless=_facts("chore day2"),
)
_GREETINGS = Exchange(
    ("say hello to {name} .", "please tell {name} that i miss {her} ."),
    ("i will , thank you .", "i will call {her} tonight .", "{name} will be pleased ."),
    _PARTING[:3],
)

_RECOUNT = Plot(
    opening=(
        (
            "what did you do on {day} ?",
            "how did you spend {day} ?",
            "how was your {day} ?",
            "you look happy , what did you do on {day} ?",
        ),
        (
            "i {did} {place} .",
            "{name} and i {did} .",
            "i {did} with my {relation} {name} .",
            "i was {place} and {did} .",
            "it was great , i {did} .",
            "i {did} , and my {relation} {name} helped me .",
        ),
    ),
    middle=(
        Exchange(
            ("did you enjoy {doing} ?", "did you have fun ?", "was it nice ?"),
            ("yes , {like} .", "not at all , {dislike} .", "very much , {like} ."),
            _MILD,
            unless=_facts("like dislike"),
        ),
        Exchange(
            ("where was that ?", "where exactly ?", "where did you do that ?"),
            (
                "{place} , as always .",
                "it was {place} , {name} knew the way .",
                "that was {place} , and it cost only {price} pounds .",
            ),
            unless=_facts("place"),
        ),
        Exchange(
            ("what did {name} say about {object} ?", "did {name} like {object} ?"),
            (
                "{she} wants to {do} again on {day2} .",
                "{name} said that {like} .",
                "{she} did not say much , {she} {life} .",
            ),
            _UNSURE,
            unless=_facts("like dislike"),
        ),
        Exchange(
            ("will you {do} again ?", "are you going to {do} again ?"),
            (
                "yes , on {day2} , and {name} wants to come , too .",
                "on {day2} , if i do not have to {chore} .",
                "yes , {name} has asked me already .",
            ),
            _UNSURE,
            unless=_facts("day2"),
        ),
        Exchange(
            _GLAD,
            (
                "yes , and {name} was there , too .",
                "yes , you should {do} some day .",
                "yes , but it cost {price} pounds .",
            ),
            unless=_facts("name price"),
        ),
        _COMPANION,
        _HOW_IS,
        _JOIN,
        _PLACE,
        _LIKES_TOO,
    ),
    closing=(
        Exchange(
            (
                "so you {did} on {day} , i envy you .",
                "so you {did} with {name} , how nice .",
                "so you {did} {place} , i envy you .",
            ),
            (
                "yes , {object} will stay in my memory .",
                "next time you must {do} , too .",
            ),
            _PARTING[:3],
        ),
        _FAREWELL,
        _GREETINGS,
        Exchange(
            ("have fun {place} on {day2} !", "enjoy {day2} !"),
            ("thank you , {name} and i will .", "you could come , too ."),
            _PARTING[:3],
        ),
        Exchange(_GLAD, ("yes , {day} was a good day .", "yes , i liked {object} .")),
    ),
)

_PLAN_MIDDLE = (
    Exchange(
        ("where shall we meet ?", "where do we meet ?"),
        (
            "let us meet {place} .",
            "{place} , at {time} .",
            "i will wait {place} at {time} .",
            "my {relation} {name} will pick us up .",
        ),
        unless=_facts("place"),
    ),
    Exchange(
        ("at what time ?", "when shall we start ?", "what time suits you ?"),
        (
            "at {time} .",
            "{time} would be best , i have to {chore} first .",
            "at {time} , if my {relation} {name} is ready by then .",
        ),
        unless=_facts("time chore"),
    ),
    Exchange(
        ("can my {relation} {name} come , too ?", "may i ask my {relation} {name} to join us ?"),
        (
            "of course , {she} is always welcome .",
            "gladly , i like {name} very much .",
            "i thought that {she} {life} .",
        ),
        _WILLING,
        introduces=_facts("name relation"),
        unless=_facts("name"),
    ),
    Exchange(
        ("shall i bring something ?", "what do i need ?", "do we need anything ?"),
        (
            "yes , please bring {item} .",
            "only {item} .",
            "i have everything , but {item} would help .",
        ),
        _DECLINING[:2],
        unless=_facts("item"),
    ),
    Exchange(
        ("how much does it cost ?", "is it expensive ?"),
        ("about {price} pounds .", "{price} pounds , i think .", "it is free on {date} ."),
        _UNSURE,
        unless=_facts("price"),
    ),
    Exchange(
        ("does {name} know how to {hobby} ?", "can {name} {hobby} ?"),
        (
            "yes , {name} says that {like} .",
            "{she} will learn it quickly .",
            "no , but {she} {life} .",
        ),
        (*_UNSURE, "i think so ."),
        unless=_facts("like"),
    ),
    Exchange(
        ("so on {date} , {place} at {time} ?", "{date} at {time} , is that right ?"),
        (
            "yes , {place} at {time} .",
            "exactly , and do not forget {item} .",
            "that is right , i will write it down .",
        ),
        ("yes .", "okay ."),
    ),
    _HOW_IS,
)
_PLAN_CLOSING = (
    Exchange(
        (
            "i am so glad that we will {do} on {date} .",
            "then i will tell everybody that we {do} on {date} .",
        ),
        (
            "so am i , see you on {date} .",
            "yes , {date} will be a good day .",
        ),
        _PARTING,
    ),
    Exchange(
        ("great , see you on {date} .", "good , then we will {do} on {date} ."),
        (
            "see you {place} .",
            "see you , and bring {item} .",
            "i am looking forward to it , {like} .",
        ),
        _PARTING,
    ),
    Exchange(_WILLING, ("see you on {date} then .", "i will call you before {date} .")),
    _GREETINGS,
)
_PROPOSALS = (
    "shall we {do} on {day} ?",
    "would you like to {do} with me on {day} ?",
    "do you want to {do} on {day} ?",
    "i want to {do} on {day} , will you come ?",
)
_PLAN = Plot(
    opening=(
        _PROPOSALS,
        (
            "good idea , i have wanted to do that for months .",
            "yes , {like} .",
            "i would love to , {like} .",
            "yes , on {day} i am free .",
            *_WILLING[1:3],
        ),
    ),
    middle=_PLAN_MIDDLE,
    closing=_PLAN_CLOSING,
)
PLAN_LATER = Plot(
    opening=(
        _PROPOSALS,
        (
            "sorry , i have to {chore} on {day} .",
            "on {day} i can not , my {relation} {name} is coming .",
            "not on {day} , i am {feeling} .",
        ),
        ("what about {date} then ?", "would {date} be better ?", "are you free on {date} ?"),
        (
            "yes , {date} is much better .",
            "on {date} i am free .",
            "good , {date} it is .",
            *_WILLING[1:3],
        ),
    ),
    middle=_PLAN_MIDDLE,
    closing=_PLAN_CLOSING,
)

_ASK_NAME = Exchange(
    ("have you asked {name} ?", "what does {name} say ?"),
    ("{she} told me to {remedy} .", "not yet , {she} {life} .", "{name} thinks that {cause} ."),
    _DECLINING[1:],
    unless=_facts("remedy cause"),
)
_TROUBLE = Plot(
    opening=(
        (
            "you look {feeling} , what is wrong ?",
            "what is the matter with you ?",
            "why are you so {feeling} ?",
        ),
        (
            "{trouble} .",
            "well , {trouble} .",
            "{trouble} , and i have to {chore} , too .",
            "{trouble} , and i wanted to {do} on {day2} .",
        ),
    ),
    middle=(
        Exchange(
            ("do you know why ?", "what is the reason ?", "why is that ?"),
            (
                "i think that {cause} .",
                "well , {cause} .",
                "my {relation} {name} says that {cause} .",
            ),
            _UNSURE,
            unless=_facts("cause"),
        ),
        Exchange(
            ("since when ?", "when did it start ?"),
            (
                "on {day} .",
                "on {day} , when i was {place} .",
                "on {day} , and it gets worse every hour .",
            ),
            _UNSURE[1:3],
            unless=_facts("day"),
        ),
        Exchange(
            ("you should {remedy} .", "why do you not {remedy} ?", "you could {remedy} ."),
            (
                "good idea , i will try that on {day2} .",
                "i tried that on {day} , but it did not help .",
                "my {relation} {name} told me the same .",
            ),
            ("maybe .", "you are right .", "okay ."),
            introduces=_facts("remedy"),
            unless=_facts("remedy day day2"),
        ),
        Exchange(
            ("who can help you ?", "can anybody help you ?"),
            (
                "my {relation} {name} , {she} knows a lot about {topic} .",
                "maybe {name} , my {relation} .",
                "{name} , but {she} {life} .",
            ),
            _UNSURE[:2],
            unless=_facts("name"),
        ),
        Exchange(
            ("shall i call {name} for you ?", "shall i talk to {name} ?"),
            (
                "yes , please tell {her} that {trouble} .",
                "yes , and ask {name} to bring {item} .",
                "no , {she} {life} .",
            ),
            ("yes .", *_DECLINING[:1]),
        ),
        Exchange(
            _SORRY,
            (
                "yes , and i wanted to {do} on {day2} .",
                "well , {cause} .",
                "thank you , {name} will help me .",
            ),
            unless=_facts("cause day2"),
        ),
        _ASK_NAME,
    ),
    closing=(
        Exchange(
            (
                "i will ask somebody about {topic} and call you .",
                "i will talk to {name} about it .",
            ),
            (
                "thank you , you are a good friend .",
                "yes , it is bad that {trouble} .",
            ),
            _PARTING,
        ),
        Exchange(
            ("i hope that {name} can help you .", "do not worry , {name} knows what to do ."),
            ("yes , {she} knows a lot about {topic} .", "i will call {her} tonight ."),
            _PARTING,
        ),
        Exchange(
            ("good luck on {day2} .", "then everything will be fine on {day2} ."),
            ("thank you , you are a good friend .", "i hope so , i will call you on {day2} ."),
            _PARTING,
        ),
        Exchange(_SORRY, ("it could be worse .", "yes , {trouble} , of all things .")),
        _FAREWELL,
    ),
)

_OPINION = Plot(
    opening=(
        (
            "do you like {hobbying} ?",
            "what do you think about {hobbying} ?",
            "would you like to {hobby} more often ?",
        ),
        (
            "yes , {like} .",
            "i love it , because {like} .",
            "no , {dislike} .",
            "not much , {dislike} .",
            "yes , i {did} on {day} , and {like} .",
        ),
    ),
    middle=(
        Exchange(
            ("how often do you {hobby} ?", "do you {hobby} every week ?"),
            ("every {day} , {place} .", "twice a week , with my {relation} {name} ."),
            _MILD[3:],
            needs=_facts("like"),
            unless=_facts("dislike day name"),
        ),
        Exchange(
            ("who taught you to {hobby} ?", "where did you learn it ?"),
            (
                "my {relation} {name} did , {place} .",
                "{name} taught me , {she} is my {relation} .",
                "{place} , when i was a child .",
            ),
            needs=_facts("like"),
            unless=_facts("dislike name place"),
        ),
        Exchange(
            ("so you will never {hobby} again ?", "but what if somebody asks you ?"),
            (
                "only if my {relation} {name} asks me .",
                "well , {name} wants to {do} with me on {day} .",
            ),
            ("i do not think so .", "no .", "maybe ."),
            needs=_facts("dislike"),
            unless=_facts("like name"),
        ),
        Exchange(
            ("but {dislike} , is that not true ?", "some people say that {dislike} ."),
            (
                "a little , but {like} .",
                "not {place} .",
                "my {relation} {name} says so , too .",
            ),
            ("not really .", "i do not think so .", "you are right ."),
            introduces=_facts("dislike"),
            needs=_facts("like"),
            unless=_facts("dislike name place"),
        ),
        Exchange(
            ("but {like} !", "other people say that {like} ."),
            (
                "that is true , but {dislike} .",
                "my {relation} {name} says the same .",
                "not {place} , in any case .",
            ),
            ("maybe .", "you are right .", "i do not think so ."),
            introduces=_facts("like"),
            needs=_facts("dislike"),
            unless=_facts("like name place"),
        ),
        Exchange(
            ("when did you last {hobby} ?", "when was the last time ?"),
            ("on {day} , with my {relation} {name} .", "last {day} , {place} .", "years ago ."),
            unless=_facts("day name place"),
        ),
        _HOW_IS,
        _PLACE,
    ),
    closing=(
        Exchange(
            (
                "so you {hobby} because {like} .",
                "i will remember that {like} .",
            ),
            (
                "yes , and you should {hobby} , too .",
                "yes , {like} , that is all .",
            ),
            _PARTING,
        ),
        Exchange(
            ("i will remember that {dislike} .",),
            (
                "yes , {dislike} , believe me .",
                "well , others like to {hobby} .",
            ),
            _PARTING,
        ),
        Exchange(
            ("maybe i should try it , too .", "i want to {hobby} , too ."),
            (
                "come {place} on {day2} .",
                "my {relation} {name} could teach you .",
                "then you need {item} .",
            ),
            ("yes , of course .", "that sounds good .", "maybe ."),
            needs=_facts("like"),
        ),
        Exchange(_GLAD[2:4], ("and you , do you like it ?", "ask {name} , {she} knows more .")),
        _GREETINGS,
        _FAREWELL,
    ),
)

_AFTERMATH = (
    Exchange(
        ("have you told anybody ?", "who knows about it ?"),
        (
            "only my {relation} {name} .",
            "my {relation} {name} knows , {she} was there .",
            "{name} knows , but {she} {life} .",
        ),
        unless=_facts("name"),
    ),
    Exchange(
        ("what did {name} say ?", "what does {name} think about it ?"),
        (
            "{she} could not believe it .",
            "{name} was speechless .",
            "{she} wants to {do} with me .",
        ),
        _UNSURE[:3],
    ),
    _HOW_IS,
)
_GOOD_NEWS = Plot(
    opening=(
        ("guess what , {good} !", "i have great news , {good} .", "listen , {good} !"),
        (
            "congratulations , how did that happen ?",
            "wonderful , how did you manage that ?",
            "i am so happy for you , tell me more .",
            *_GLAD,
        ),
        ("well , {how} .", "{how} .", "my {relation} {name} helped me , and {how} ."),
    ),
    middle=(
        Exchange(
            ("how will you celebrate ?", "we must celebrate that .", "will there be a party ?"),
            (
                "i will {do} with {name} on {day} .",
                "with a big dinner {place} .",
                "yes , {place} on {day} , and you must bring {item} .",
            ),
            _UNSURE,
            unless=_facts("day place"),
        ),
        Exchange(
            ("how long have you been {hobbying} ?", "have you always liked {hobbying} ?"),
            (
                "since last summer , my {relation} {name} taught me .",
                "for ten years , {like} .",
                "since i was {place} for the first time .",
            ),
            unless=_facts("name like place"),
        ),
        *_AFTERMATH,
    ),
    closing=(
        Exchange(
            ("what a day , i will tell {name} about it .", "so that is what comes of {hobbying} ."),
            (
                "yes , {good} , of all people .",
                "thank you , i am so happy that {good} .",
            ),
            _PARTING[:3],
        ),
        Exchange(
            ("{name} must be proud of you .", "enjoy it , and say hello to {name} ."),
            ("{she} is , {she} tells everybody .", "i will call {her} tonight ."),
            _PARTING[:3],
        ),
        Exchange(("see you on {day} then .",), ("see you {place} .", "do not forget {item} .")),
        Exchange(_GLAD[2:], ("yes , i am so happy that {good} .", "yes , and {like} .")),
        _FAREWELL,
    ),
)
_BAD_NEWS = Plot(
    opening=(
        ("i have bad news , {bad} .", "something terrible happened , {bad} .", "oh dear , {bad} ."),
        (
            "oh no , how did that happen ?",
            "that is terrible , what happened ?",
            "you poor thing , tell me more .",
            *_SORRY,
        ),
        ("well , {why} .", "{why} .", "it happened on {day} , {why} ."),
    ),
    middle=(
        Exchange(
            ("what will you do now ?", "and what now ?"),
            (
                "i will call my {relation} {name} .",
                "i think i will {do} , that always helps .",
                "first i have to {chore} .",
            ),
            _UNSURE,
            unless=_facts("name did chore"),
        ),
        Exchange(
            ("can i help you ?", "what can i do for you ?"),
            (
                "yes , could you {chore} for me ?",
                "come {place} on {day2} and bring {item} .",
                "you could talk to my {relation} {name} .",
            ),
            ("no , thank you .", *_UNSURE[:1]),
            unless=_facts("chore place name"),
        ),
        *_AFTERMATH,
    ),
    closing=(
        Exchange(
            (
                "do not worry too much about {day} .",
                "i will talk to {name} about it .",
            ),
            (
                "thank you , it is hard that {bad} .",
                "thank you , you are a good friend .",
            ),
            _PARTING[:3],
        ),
        Exchange(
            ("i will come {place} on {day2} .", "let us {do} on {day2} , that will cheer you up ."),
            ("thank you , {name} will come , too .", "thank you , {like} ."),
            _PARTING[:3],
        ),
        Exchange(
            ("let {name} help you .", "do not give up , {name} is on your side ."),
            ("i hope that {she} has time .", "{name} is always there for me ."),
            _PARTING[:3],
        ),
        Exchange(_SORRY[1:3], ("it could be worse .", "yes , i can not believe that {bad} .")),
        _FAREWELL,
    ),
)

PLOTS = (_RECOUNT, _PLAN, PLAN_LATER, _TROUBLE, _OPINION, _GOOD_NEWS, _BAD_NEWS)

ACKNOWLEDGEMENTS = ("i see ,", "oh ,", "aha ,")
FEELINGS = ("tired", "worried", "sad", "nervous", "pale", "upset", "exhausted", "angry")
CHORES = (
    "clean the windows",
    "do the laundry",
    "help my parents",
    "wait for the postman",
    "call the dentist",
    "mow the lawn",
    "look after the children",
    "answer a hundred emails",
    "pick up a parcel",
    "iron my shirts",
)
LIVES = (
    "has just moved to another town",
    "got engaged last month",
    "works far too much",
    "has a new haircut",
    "is on holiday in greece",
    "has found a new job",
    "is learning chinese",
    "became a grandparent",
    "has the flu",
    "bought a caravan",
    "is in love again",
    "never answers the phone",
)
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
TIMES = ("six", "half past seven", "noon", "eight", "quarter to nine", "ten", "five", "three")
PRICES = ("five", "ten", "twelve", "twenty", "thirty", "fifty")
WOMEN = (
    "anna", "maria", "lucy", "emma", "sarah", "julia", "nina", "helen", "olga", "ruth",
    "fatima", "grace",
)  # fmt: skip
MEN = (
    "paul", "peter", "david", "omar", "jack", "simon", "victor", "leo", "martin", "kenji",
    "oscar", "adam",
)  # fmt: skip
FEMALE_RELATIONS = ("sister", "aunt", "mother", "daughter")
MALE_RELATIONS = ("brother", "uncle", "father", "son")
RELATIONS = ("cousin", "neighbour", "colleague", "best friend", "flatmate", "boss")
