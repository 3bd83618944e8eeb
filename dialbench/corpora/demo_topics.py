"""The words of the demo corpus: what people do, like, suffer and say, topic by topic.

Text is in the form of tokenised corpora: lower case, no contractions, spaces around punctuation.
Parts of an entry are separated by ` | `; the dataclass says what they are.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Topic:
    """The phrases of one topic.

    Attributes:
        name: the topic as people name it.
        hobby: doing it at all: infinitive | gerund.
        activities: one occasion: infinitive | past | gerund | object.
        places: where it happens, with preposition.
        likes: what is good about it, as clauses.
        dislikes: what is bad about it, as clauses.
        troubles: problem, as a clause | its cause, as a clause | its remedy, as an infinitive.
        good: good news, as a clause | how it came about, as a clause.
        bad: bad news, as a clause | how it came about, as a clause.
        items: what one may bring along.
        talks: question | answer | answer | ...
    """

    name: str
    hobby: str
    activities: tuple[str, ...]
    places: tuple[str, ...]
    likes: tuple[str, ...]
    dislikes: tuple[str, ...]
    troubles: tuple[str, ...]
    good: tuple[str, ...]
    bad: tuple[str, ...]
    items: tuple[str, ...]
    talks: tuple[str, ...]


TOPICS = (
    Topic(
        name="music",
        hobby="make music | making music",
        activities=(
            "play the guitar | played the guitar | playing the guitar | the guitar",
            "sing some old songs | sang some old songs | singing some old songs | the old songs",
            "hear a jazz band | heard a jazz band | hearing a jazz band | the jazz band",
            "practise the piano | practised the piano | practising the piano | the piano",
        ),
        places=("at the music school", "in the concert hall", "at the jazz club"),
        likes=(
            "a good melody makes me calm",
            "the rhythm gives me energy",
            "everybody in the choir is so friendly",
        ),
        dislikes=("the drums are far too loud", "my voice is terrible", "the notes are so small"),
        troubles=(
            "a string of my guitar is broken | it was very old | buy a new set of strings",
            "the piano sounds wrong | nobody tuned it for years | call a piano tuner",
            "my throat hurts after every song | i sing too high | take a few singing lessons",
        ),
        good=(
            "i won the song contest | i practised every single evening",
            "our band will be on the radio | a reporter heard us at a wedding",
        ),
        bad=(
            "my violin was stolen | i left it on the bus",
            "our concert was cancelled | the singer has lost her voice",
        ),
        items=("your flute", "some sheet music", "a microphone"),
        talks=(
            "do you play an instrument | yes , i play the trumpet | no , but i sing in a choir "
            "| i tried the violin once , it sounded like a cat",
            "what kind of music do you like | mostly jazz | old folk songs , to be honest "
            "| anything with a good drummer",
        ),
    ),
    Topic(
        name="cooking",
        hobby="cook | cooking",
        activities=(
            "cook a vegetable soup | cooked a vegetable soup | cooking a vegetable soup "
            "| the vegetable soup",
            "roast a chicken | roasted a chicken | roasting a chicken | the chicken",
            "make fresh pasta | made fresh pasta | making fresh pasta | the pasta",
            "fry some fish | fried some fish | frying some fish | the fish",
        ),
        places=("in the hostel kitchen", "at the cooking class", "at the community centre"),
        likes=(
            "the whole house smells of garlic and butter",
            "fresh herbs taste wonderful",
            "a warm meal brings everybody to the table",
        ),
        dislikes=(
            "washing the dishes takes forever",
            "i always burn the onions",
            "the recipes are too long",
        ),
        troubles=(
            "my soup tastes of nothing | i forgot the salt | add some pepper and lemon juice",
            "the oven stays cold | the fuse is gone | ask an electrician",
            "the rice sticks to the pan | the heat is too high | use more water",
        ),
        good=(
            "my pasta recipe is in the newspaper | i sent it to the editor in spring",
            "i got a job as a cook | the chef liked my mushroom sauce",
        ),
        bad=(
            "i burned the whole dinner | i fell asleep on the sofa",
            "i cut my finger badly | the knife slipped on a carrot",
        ),
        items=("a sharp knife", "a bottle of olive oil", "some fresh basil"),
        talks=(
            "what is your favourite dish | lamb with mint sauce | a simple tomato salad "
            "| my grandmother's potato pie",
            "do you follow recipes | never , i just taste it | yes , word for word "
            "| only for desserts",
        ),
    ),
    Topic(
        name="football",
        hobby="play football | playing football",
        activities=(
            "watch the cup final | watched the cup final | watching the cup final | the cup final",
            "train the junior team | trained the junior team | training the junior team "
            "| the junior team",
            "play a match in the rain | played a match in the rain | playing a match in the rain "
            "| the match",
        ),
        places=("at the stadium", "on the school field", "at the sports ground"),
        likes=(
            "the fans sing all the time",
            "we are a real team",
            "a late goal is the best feeling in the world",
        ),
        dislikes=(
            "the referee is always against us",
            "my knees hurt after every game",
            "the tickets cost a fortune",
        ),
        troubles=(
            "we lose every game | our goalkeeper is afraid of the ball | find a new goalkeeper",
            "my ankle is swollen | a defender kicked me | put some ice on it",
            "nobody comes to training | it starts too early | move the training to the evening",
        ),
        good=(
            "we won the league | our striker scored three goals in the last game",
            "i was chosen as captain | the coach likes my passes",
        ),
        bad=(
            "we lost the derby | the referee gave them a penalty",
            "i broke my leg | i slipped on the wet grass",
        ),
        items=("a pair of boots", "your scarf", "a spare shirt"),
        talks=(
            "which team do you support | the red one , like my grandfather | none , i just like "
            "the game | the local one , although they always lose",
            "which position do you play | i am a defender | in goal , because i am tall "
            "| on the bench , mostly",
        ),
    ),
    Topic(
        name="travel",
        hobby="travel | travelling",
        activities=(
            "visit an old castle | visited an old castle | visiting an old castle | the old castle",
            "join a walking tour | joined a walking tour | joining a walking tour "
            "| the walking tour",
            "explore a hidden village | explored a hidden village | exploring a hidden village "
            "| the hidden village",
            "ride the cable car | rode the cable car | riding the cable car | the cable car",
        ),
        places=("on the west coast", "in the capital", "near the border"),
        likes=(
            "you meet people from every country",
            "foreign cities always surprise me",
            "the view from the plane is magic",
        ),
        dislikes=(
            "the airports are too crowded",
            "i miss my own bed",
            "i never understand the language",
        ),
        troubles=(
            "my passport is not valid any more | i did not look at the date "
            "| go to the embassy tomorrow",
            "my suitcase did not arrive | it is still in madrid | fill in a form at the airport",
            "our flight is delayed | there is snow on the runway | look for a hotel",
        ),
        good=(
            "i won a trip to norway | i answered a quiz in a magazine",
            "i am going to live in spain for a year | my company opens an office there",
        ),
        bad=(
            "i missed my flight | the taxi got stuck in a tunnel",
            "i lost my wallet abroad | somebody took it at the market",
        ),
        items=("your passport", "a good map", "a small backpack"),
        talks=(
            "which country would you like to see | iceland , because of the volcanoes | japan in "
            "april | any country with good trains",
            "do you travel light | yes , one bag is enough | no , i pack everything i own "
            "| i try to , but i never manage",
        ),
    ),
    Topic(
        name="films",
        hobby="watch films | watching films",
        activities=(
            "see a silent comedy | saw a silent comedy | seeing a silent comedy "
            "| the silent comedy",
            "watch a horror film | watched a horror film | watching a horror film "
            "| the horror film",
            "shoot a short film | shot a short film | shooting a short film | the short film",
        ),
        places=("at the film school", "at the film festival", "in the open air theatre"),
        likes=(
            "a good story makes me forget everything",
            "the actors are brilliant",
            "i love the smell of popcorn",
        ),
        dislikes=(
            "the endings are always sad",
            "people talk all through the film",
            "most plots are too predictable",
        ),
        troubles=(
            "i can not find the tickets | they were in my old coat | print them again",
            "the sound of our film is awful | the wind was too strong | record the voices again",
            "our main actor has left | he was offered a role on television "
            "| rewrite the last scene",
        ),
        good=(
            "my short film won a prize | the jury loved the camera work",
            "i met a famous actress | she sat next to me on the tram",
        ),
        bad=(
            "the little cinema is closing | the rent has become too high",
            "all my film material is gone | the hard disk crashed",
        ),
        items=("some popcorn", "a blanket", "your glasses"),
        talks=(
            "who is your favourite actor | the old man with the deep voice | i like every "
            "actor who can dance | somebody from the silent era",
            "do you prefer comedies or thrillers | comedies , life is hard enough | thrillers , "
            "the darker the better | documentaries , actually",
        ),
    ),
    Topic(
        name="books",
        hobby="read books | reading books",
        activities=(
            "read a crime novel | read a crime novel | reading a crime novel | the crime novel",
            "finish a long biography | finished a long biography | finishing a long biography "
            "| the biography",
            "borrow some poems | borrowed some poems | borrowing some poems | the poems",
        ),
        places=("in the library", "at the bookshop", "at the reading club"),
        likes=(
            "i can be somebody else for an hour",
            "the language is beautiful",
            "you learn so much about history",
        ),
        dislikes=(
            "the chapters are endless",
            "i fall asleep after two pages",
            "there are too many characters",
        ),
        troubles=(
            "i have to pay a fine at the library | i forgot to return three books "
            "| talk to the librarian",
            "my shelf has collapsed | i put every dictionary on it | give some books away",
            "i can not finish my novel | i do not know who the murderer is "
            "| write the last chapter first",
        ),
        good=(
            "a publisher wants my novel | i sent the manuscript to twelve of them",
            "i found a rare first edition | it was in a box at the flea market",
        ),
        bad=(
            "my favourite author has died | he was ill for a long time",
            "my books got wet | there was a leak in the cellar",
        ),
        items=("a bookmark", "your library card", "a reading lamp"),
        talks=(
            "what are you reading at the moment | a thick book about whales | a love story "
            "in letters | only the newspaper",
            "paper or screen | paper , i need the smell | screen , my bag is heavy enough "
            "| audio books , while ironing",
        ),
    ),
    Topic(
        name="gardening",
        hobby="work in the garden | working in the garden",
        activities=(
            "plant an apple tree | planted an apple tree | planting an apple tree | the apple tree",
            "cut the hedge | cut the hedge | cutting the hedge | the hedge",
            "pick some strawberries | picked some strawberries | picking some strawberries "
            "| the strawberries",
            "water the roses | watered the roses | watering the roses | the roses",
        ),
        places=("in the school garden", "in the castle garden", "behind the greenhouse"),
        likes=(
            "the flowers attract butterflies",
            "digging keeps me fit",
            "home grown vegetables taste better",
        ),
        dislikes=(
            "the snails eat everything",
            "my back aches for days",
            "weeds grow faster than anything else",
        ),
        troubles=(
            "my tomatoes are turning brown | they got too much rain | build a small roof for them",
            "there are holes in the lawn | a mole lives there | wait until the mole leaves",
            "the roses look sick | there are insects on the leaves | spray them with soap",
        ),
        good=(
            "my pumpkin is the biggest in the village | i gave it milk every day",
            "the cherry tree has blossoms again | i cut the dead branches in winter",
        ),
        bad=(
            "the storm destroyed my greenhouse | a branch fell through the glass",
            "all my tulips are frozen | it was too cold last night",
        ),
        items=("a pair of gloves", "a shovel", "some seeds"),
        talks=(
            "what do you grow | mainly beans and lettuce | only flowers , no vegetables "
            "| cactuses , because i forget to water them",
            "do you use chemicals | never , only compost | sometimes , against the lice "
            "| my neighbour does , i do not",
        ),
    ),
    Topic(
        name="pets",
        hobby="keep pets | keeping pets",
        activities=(
            "train a puppy | trained a puppy | training a puppy | the puppy",
            "feed the ducks | fed the ducks | feeding the ducks | the ducks",
            "brush the horses | brushed the horses | brushing the horses | the horses",
        ),
        places=("at the animal shelter", "at the riding stable", "on the farm"),
        likes=(
            "a cat on the lap is better than any doctor",
            "dogs are always happy to see you",
            "animals never lie",
        ),
        dislikes=(
            "there is hair on every chair",
            "the barking wakes the baby",
            "i am allergic to fur",
        ),
        troubles=(
            "my cat does not eat | she has a bad tooth | take her to the vet",
            "the dog chews my shoes | he is alone too often | get him a rubber bone",
            "my parrot has stopped talking | it misses its partner | buy a second parrot",
        ),
        good=(
            "our dog has six puppies | the neighbour's poodle visited us in spring",
            "my lost cat is back | somebody saw my poster at the bakery",
        ),
        bad=(
            "my hamster has escaped | i left the cage open",
            "our old horse is very ill | it ate something poisonous",
        ),
        items=("a leash", "some dog biscuits", "an old towel"),
        talks=(
            "do you have any pets | two lazy cats | a turtle called emil | no , my flat "
            "is too small",
            "cats or dogs | cats , they mind their own business | dogs , without a doubt "
            "| neither , i like birds",
        ),
    ),
    Topic(
        name="the office",
        hobby="work in an office | working in an office",
        activities=(
            "prepare a big presentation | prepared a big presentation "
            "| preparing a big presentation | the presentation",
            "write the annual report | wrote the annual report | writing the annual report "
            "| the annual report",
            "interview a new engineer | interviewed a new engineer "
            "| interviewing a new engineer | the new engineer",
        ),
        places=("in the meeting room", "at the head office", "in the canteen"),
        likes=(
            "my colleagues make me laugh",
            "every project is different",
            "the coffee is free and strong",
        ),
        dislikes=(
            "the meetings never end",
            "my boss checks every comma",
            "the printer eats the paper",
        ),
        troubles=(
            "i have to work at night | two colleagues are on holiday | speak to your manager",
            "our best customer is angry | the invoice was wrong | send him an apology",
            "the deadline is tomorrow | nobody told me about it | ask for two more days",
        ),
        good=(
            "i got a promotion | the director read my report",
            "we signed the big contract | the client loved our prototype",
        ),
        bad=(
            "i lost my job | the whole department was sold",
            "my contract was not extended | the budget is too small this year",
        ),
        items=("your laptop", "the sales figures", "a visitor badge"),
        talks=(
            "what do you do for a living | i am an accountant | i design bridges "
            "| i sell insurance",
            "is your boss strict | yes , but fair | no , she is on our side "
            "| he shouts before lunch only",
        ),
    ),
    Topic(
        name="school",
        hobby="study | studying",
        activities=(
            "write a history essay | wrote a history essay | writing a history essay | the essay",
            "learn some french verbs | learned some french verbs | learning some french verbs "
            "| the french verbs",
            "build a model of a volcano | built a model of a volcano "
            "| building a model of a volcano | the volcano",
        ),
        places=("in the classroom", "at the university", "in the chemistry lab"),
        likes=(
            "the teacher explains everything twice",
            "experiments are exciting",
            "my classmates help each other",
        ),
        dislikes=(
            "the homework is never finished",
            "i am hopeless at algebra",
            "the chairs are so hard",
        ),
        troubles=(
            "i failed the maths test | i mixed up two formulas | practise with a tutor",
            "i can not concentrate in class | i go to bed too late | turn off your phone at nine",
            "i have lost my notes | they were in the blue folder | copy them from a friend",
        ),
        good=(
            "i passed the final exam | i repeated every lesson with flash cards",
            "i got a scholarship | the professor wrote a kind letter",
        ),
        bad=(
            "i have to repeat the year | my marks in physics were too low",
            "our favourite teacher is leaving | she found a post in scotland",
        ),
        items=("a calculator", "your notes", "a red pencil"),
        talks=(
            "which subject do you like best | geography , because of the maps | biology "
            "| the breaks",
            "when is your next exam | in two weeks , and i am nervous | this friday "
            "| not before summer",
        ),
    ),
    Topic(
        name="health",
        hobby="do some exercise | doing some exercise",
        activities=(
            "try a yoga class | tried a yoga class | trying a yoga class | the yoga class",
            "do a hundred squats | did a hundred squats | doing a hundred squats "
            "| the hundred squats",
            "lift some weights | lifted some weights | lifting some weights | the weights",
        ),
        places=("at the gym", "in the health centre", "in the sports hall"),
        likes=(
            "i sleep much better afterwards",
            "my heart feels strong",
            "stretching clears my head",
        ),
        dislikes=(
            "i am sore the next morning",
            "the mirrors make me nervous",
            "sweating is not for me",
        ),
        troubles=(
            "i have a bad cold | i walked home in the rain | drink ginger tea and rest",
            "my shoulder hurts | i carried a heavy box | see a physiotherapist",
            "i can not sleep | i drink coffee after dinner | read a boring book in bed",
        ),
        good=(
            "i stopped smoking | i chewed carrots for a month",
            "my blood pressure is normal again | i swim before breakfast now",
        ),
        bad=(
            "i need an operation | the doctor found a stone",
            "my wrist is broken | i fell down the stairs",
        ),
        items=("a yoga mat", "a water bottle", "running shoes"),
        talks=(
            "how many hours do you sleep | about seven | never enough | nine , like a baby",
            "do you eat breakfast | always , porridge with fruit | just black coffee "
            "| only at weekends",
        ),
    ),
    Topic(
        name="clothes",
        hobby="go shopping | going shopping",
        activities=(
            "buy a winter coat | bought a winter coat | buying a winter coat | the winter coat",
            "sew a summer dress | sewed a summer dress | sewing a summer dress | the summer dress",
            "knit a woollen jumper | knitted a woollen jumper | knitting a woollen jumper "
            "| the jumper",
        ),
        places=("at the fashion school", "at the tailor's shop", "at the second hand store"),
        likes=(
            "bright colours cheer me up",
            "the fabrics feel so soft",
            "a new hat changes everything",
        ),
        dislikes=(
            "nothing fits me",
            "the queues are terrible",
            "fashion changes every month",
        ),
        troubles=(
            "there is a stain on my suit | i spilled red wine | take it to the cleaner",
            "my trousers are too tight | i ate too much cake | let the tailor change them",
            "the zip of my jacket is stuck | there is a thread in it | rub it with a candle",
        ),
        good=(
            "i sold my first dress | a lady saw it in the window",
            "i found the perfect shoes | they were reduced to half the price",
        ),
        bad=(
            "my wedding dress does not fit | the shop mixed up the sizes",
            "my silk scarf is ruined | i washed it too hot",
        ),
        items=("a measuring tape", "your credit card", "a big bag"),
        talks=(
            "what size do you wear | medium , usually | large , i like it loose "
            "| it depends on the brand",
            "which colour suits me | dark green , i think | not yellow , anyway "
            "| blue , like your eyes",
        ),
    ),
    Topic(
        name="moving house",
        hobby="decorate rooms | decorating rooms",
        activities=(
            "paint the bedroom | painted the bedroom | painting the bedroom | the bedroom",
            "view a flat | viewed a flat | viewing a flat | the flat",
            "assemble a wardrobe | assembled a wardrobe | assembling a wardrobe | the wardrobe",
        ),
        places=("in the old town", "on the top floor", "near the river"),
        likes=(
            "the balcony gets the morning sun",
            "the neighbours brought us a pie",
            "fresh paint makes a room bigger",
        ),
        dislikes=(
            "the walls are thin as paper",
            "carrying boxes is a nightmare",
            "the stairs are steep",
        ),
        troubles=(
            "the heating does not work | there is air in the pipes | phone the plumber",
            "the landlord wants more rent | the roof was repaired | read the contract again",
            "the sofa is too wide for the door | we measured it wrongly | take off its legs",
        ),
        good=(
            "we found a house | an old couple is moving to the coast",
            "the bank gave us the loan | we saved money for ten years",
        ),
        bad=(
            "there is water in our basement | a pipe burst during the night",
            "somebody else got the flat | they offered a higher rent",
        ),
        items=("a hammer", "some cardboard boxes", "a ladder"),
        talks=(
            "how many rooms do you have | three and a tiny bathroom | just one , but it is bright "
            "| five , since the children came",
            "do you rent or own | we rent , it is easier | we own it , well , the bank does "
            "| i live with my parents",
        ),
    ),
    Topic(
        name="cars",
        hobby="repair cars | repairing cars",
        activities=(
            "test an electric car | tested an electric car | testing an electric car "
            "| the electric car",
            "repair an old van | repaired an old van | repairing an old van | the old van",
            "wash the truck | washed the truck | washing the truck | the truck",
        ),
        places=("at the garage", "at the petrol station", "on the race track"),
        likes=(
            "an engine is a work of art",
            "driving at night relaxes me",
            "you can go wherever you want",
        ),
        dislikes=(
            "parking costs more than lunch",
            "the traffic jams get longer and longer",
            "my hands smell of oil",
        ),
        troubles=(
            "my car does not start | the battery is flat | borrow some cables",
            "there is a noise under the bonnet | a belt is loose | drive to the mechanic",
            "i got a parking ticket | i stopped in front of a hospital | pay it quickly",
        ),
        good=(
            "i passed my driving test | the examiner was in a good mood",
            "i sold the old van | a painter needed it for his tools",
        ),
        bad=(
            "i had an accident | a lorry did not stop at the lights",
            "a tyre exploded on the motorway | there was glass on the road",
        ),
        items=("a torch", "a spare tyre", "your driving licence"),
        talks=(
            "what do you drive | a small red hatchback | nothing , i take the bus "
            "| my aunt's ancient estate car",
            "is an electric car worth it | yes , if you can charge at home | not yet , the range "
            "is too short | ask me in ten years",
        ),
    ),
    Topic(
        name="computers",
        hobby="write programs | writing programs",
        activities=(
            "fix a nasty bug | fixed a nasty bug | fixing a nasty bug | the bug",
            "install a new server | installed a new server | installing a new server | the server",
            "program a small robot | programmed a small robot | programming a small robot "
            "| the robot",
        ),
        places=("in the computer lab", "at the hacker space", "at the start-up"),
        likes=(
            "solving puzzles is fun",
            "a machine never gets tired",
            "you can build something out of nothing",
        ),
        dislikes=(
            "my eyes hurt from the screen",
            "every update breaks something",
            "nobody writes documentation",
        ),
        troubles=(
            "my computer is very slow | the memory is full | delete some files",
            "i forgot my password | i changed it on holiday | use the recovery code",
            "the wireless network is down | the router is too hot | switch it off for a minute",
        ),
        good=(
            "my game was downloaded a million times | a blogger recommended it",
            "our robot can climb stairs | we gave it longer legs",
        ),
        bad=(
            "i deleted the database | i typed the command in the wrong window",
            "somebody hacked my account | my password was my birthday",
        ),
        items=("a keyboard", "a network cable", "an adapter"),
        talks=(
            "which language do you program in | python , like everyone | mostly rust "
            "| whatever pays the bills",
            "do you make backups | every night , automatically | once a year , on new year's eve "
            "| no , i live dangerously",
        ),
    ),
    Topic(
        name="art",
        hobby="paint pictures | painting pictures",
        activities=(
            "draw a portrait | drew a portrait | drawing a portrait | the portrait",
            "visit a sculpture show | visited a sculpture show | visiting a sculpture show "
            "| the sculpture show",
            "shape a clay bowl | shaped a clay bowl | shaping a clay bowl | the clay bowl",
        ),
        places=("at the gallery", "in the studio", "at the art museum"),
        likes=(
            "the light in the old paintings is amazing",
            "clay feels good between the fingers",
            "every picture tells a secret",
        ),
        dislikes=(
            "modern art confuses me",
            "my drawings look like potatoes",
            "the museum guards stare at me",
        ),
        troubles=(
            "the colours are too dark | i used too much black | mix them with white",
            "my bowl cracked in the kiln | the clay was still damp | let it dry for a week",
            "i have no ideas any more | i never leave the studio | take a long walk",
        ),
        good=(
            "a collector bought my painting | he saw it in a cafe",
            "my sculpture stands in the town hall | the mayor chose it herself",
        ),
        bad=(
            "somebody damaged my mural | they sprayed over it",
            "the gallery rejected my pictures | the owner prefers photographs",
        ),
        items=("a sketchbook", "some brushes", "a tube of ochre"),
        talks=(
            "who is your favourite painter | somebody who paints the sea | a woman from mexico "
            "| my little daughter",
            "oil or watercolour | watercolour , it dries faster | oil , because i change my mind "
            "| charcoal , actually",
        ),
    ),
    Topic(
        name="hiking",
        hobby="go hiking | going hiking",
        activities=(
            "climb a steep hill | climbed a steep hill | climbing a steep hill | the steep hill",
            "follow the forest trail | followed the forest trail | following the forest trail "
            "| the forest trail",
            "cross a glacier | crossed a glacier | crossing a glacier | the glacier",
        ),
        places=("in the mountains", "near the lodge", "behind the waterfall"),
        likes=(
            "the air is so clean",
            "you can hear the eagles",
            "soup on a summit tastes like heaven",
        ),
        dislikes=(
            "the mosquitoes are awful",
            "i get blisters every time",
            "i am afraid of heights",
        ),
        troubles=(
            "we lost the path | the signs were covered with snow | use the compass",
            "my boots let water in | the soles are worn | rub them with wax",
            "our tent has a hole | a fox bit it | mend it with tape",
        ),
        good=(
            "i reached the summit | the fog lifted at dawn",
            "we saw a wild bear | it was fishing below the bridge",
        ),
        bad=(
            "the mountain hut burned down | lightning struck the chimney",
            "i twisted my knee | i jumped over a stream",
        ),
        items=("a rain jacket", "a thermos of tea", "a whistle"),
        talks=(
            "how far do you usually walk | about twelve miles | until the sandwiches are gone "
            "| only to the next pub",
            "do you hike alone | never , it is dangerous | yes , i enjoy the silence "
            "| with a group , on sundays",
        ),
    ),
    Topic(
        name="the beach",
        hobby="swim in the sea | swimming in the sea",
        activities=(
            "build a sand castle | built a sand castle | building a sand castle | the sand castle",
            "sail a wooden boat | sailed a wooden boat | sailing a wooden boat | the wooden boat",
            "collect some shells | collected some shells | collecting some shells | the shells",
        ),
        places=("at the beach", "in the harbour", "by the lighthouse"),
        likes=(
            "the waves sing me to sleep",
            "salt water is good for the skin",
            "you can walk barefoot all day",
        ),
        dislikes=(
            "the sand gets everywhere",
            "i burn within minutes",
            "the water is freezing",
        ),
        troubles=(
            "my back is sunburnt | i forgot the sun cream | put some yoghurt on it",
            "a jellyfish stung me | i did not watch the flags | rinse it with sea water",
            "the boat is leaking | a plank is rotten | bring it to the shipyard",
        ),
        good=(
            "i learned to surf | a patient girl from australia taught me",
            "we saw dolphins | they followed the ferry",
        ),
        bad=(
            "the beach is closed | there is oil in the water",
            "my surfboard snapped | a huge wave threw it on the rocks",
        ),
        items=("sun cream", "a parasol", "a swimsuit"),
        talks=(
            "can you swim well | like a fish | like a stone | well enough for the pool",
            "is the water warm | twenty degrees , so yes | only for penguins | in august it is",
        ),
    ),
    Topic(
        name="parties",
        hobby="give parties | giving parties",
        activities=(
            "plan a surprise party | planned a surprise party | planning a surprise party "
            "| the surprise party",
            "decorate the ballroom | decorated the ballroom | decorating the ballroom "
            "| the ballroom",
            "celebrate a silver wedding | celebrated a silver wedding "
            "| celebrating a silver wedding | the silver wedding",
        ),
        places=("at the village hall", "on the roof terrace", "in the back yard"),
        likes=(
            "everyone dances until midnight",
            "old friends come together",
            "i love blowing out candles",
        ),
        dislikes=(
            "somebody always breaks a glass",
            "i never know what to wear",
            "the speeches are embarrassing",
        ),
        troubles=(
            "nobody has answered my invitation | i wrote the wrong address | call the guests",
            "i have no present for my niece | all the toys were sold out | paint a picture for her",
            "the neighbours complain about the noise | the speakers stand by the wall "
            "| invite them too",
        ),
        good=(
            "i am getting married | we met at a costume party",
            "my twins were born | they came two weeks early",
        ),
        bad=(
            "nobody came to my birthday | there was a snow storm",
            "the cake fell on the floor | the balloon man bumped into me",
        ),
        items=("some balloons", "a bowl of salad", "paper lanterns"),
        talks=(
            "when is your birthday | in the middle of november | on the first of march "
            "| it was last week",
            "do you like to dance | only slow dances | yes , until my feet hurt | not in public",
        ),
    ),
    Topic(
        name="restaurants",
        hobby="eat out | eating out",
        activities=(
            "try the spicy noodles | tried the spicy noodles | trying the spicy noodles "
            "| the spicy noodles",
            "order a seafood platter | ordered a seafood platter | ordering a seafood platter "
            "| the seafood platter",
            "taste some goat cheese | tasted some goat cheese | tasting some goat cheese "
            "| the goat cheese",
        ),
        places=("at the indian restaurant", "in the little bistro", "at the noodle bar"),
        likes=(
            "the waiters know my name",
            "somebody else does the dishes",
            "the curry is heavenly",
        ),
        dislikes=(
            "the portions are tiny",
            "the bill always shocks me",
            "we waited an hour for the starter",
        ),
        troubles=(
            "there is a fly in my drink | the window was open | call the waiter",
            "they have no table for us | we did not book | try the place across the street",
            "i feel sick | the mussels tasted strange | have a peppermint tea",
        ),
        good=(
            "my bistro got a star | an inspector came in secret",
            "our canteen has a new cook | he used to work in lyon",
        ),
        bad=(
            "my favourite restaurant has closed | the owners retired",
            "i could not pay the bill | my card was blocked",
        ),
        items=("an umbrella", "a good appetite", "cash for the tip"),
        talks=(
            "are you a vegetarian | yes , since i was twelve | no , i love steak "
            "| nearly , i still eat fish",
            "what do you recommend | the dumplings | the soup of the day | anything but the liver",
        ),
    ),
    Topic(
        name="photography",
        hobby="take photos | taking photos",
        activities=(
            "photograph a rainbow | photographed a rainbow | photographing a rainbow | the rainbow",
            "photograph an old windmill | photographed an old windmill "
            "| photographing an old windmill | the windmill",
            "take a group portrait | took a group portrait | taking a group portrait "
            "| the group portrait",
        ),
        places=("by the old mill", "at the photo club", "on the hill above town"),
        likes=(
            "you learn to look at things",
            "black and white pictures have soul",
            "one second stays for ever",
        ),
        dislikes=(
            "the lenses are expensive",
            "my family hates posing",
            "i delete nearly everything",
        ),
        troubles=(
            "my pictures are blurred | my hands were shaking | use a tripod",
            "the camera is dead | i dropped it into a puddle | put it into a bag of rice",
            "the faces are too dark | the sun was behind them | use the flash",
        ),
        good=(
            "my photo is on the cover of a magazine | i waited four hours for that owl",
            "i sold my wedding album | the bride cried with joy",
        ),
        bad=(
            "my camera bag is missing | i left it under a bench",
            "the memory card is empty | i formatted it by mistake",
        ),
        items=("a tripod", "a spare battery", "a wide lens"),
        talks=(
            "which camera do you use | an old one with film | just my phone | a heavy japanese one",
            "what do you like to photograph | strangers on the street | insects , very close "
            "| empty factories",
        ),
    ),
    Topic(
        name="cycling",
        hobby="ride a bike | riding a bike",
        activities=(
            "ride a mountain bike | rode a mountain bike | riding a mountain bike "
            "| the mountain bike",
            "clean the chain | cleaned the chain | cleaning the chain | the chain",
            "rent a tandem | rented a tandem | renting a tandem | the tandem",
        ),
        places=("at the bike shop", "on the coast road", "in the valley"),
        likes=(
            "the wind blows my worries away",
            "it costs nothing",
            "downhill i feel like a bird",
        ),
        dislikes=(
            "the saddle is a torture",
            "drivers do not respect us",
            "uphill i could cry",
        ),
        troubles=(
            "my front wheel is flat | i rode over a nail | patch the tube",
            "the brakes squeak | they are wet | oil them carefully",
            "my bike was stolen | the lock was cheap | report it to the police",
        ),
        good=(
            "i finished the tour in five days | the weather was on my side",
            "the town is building a bike lane | we collected signatures",
        ),
        bad=(
            "i crashed into a fence | a squirrel crossed the lane",
            "the race was called off | the bridge is not safe",
        ),
        items=("a helmet", "a pump", "a repair kit"),
        talks=(
            "do you cycle to work | every day , even in winter | only when the sun shines "
            "| no , it is too far",
            "how many gears has your bike | twenty one | three , that is plenty "
            "| none , i have strong legs",
        ),
    ),
    Topic(
        name="baking",
        hobby="bake | baking",
        activities=(
            "bake a chocolate cake | baked a chocolate cake | baking a chocolate cake "
            "| the chocolate cake",
            "knead a rye bread | kneaded a rye bread | kneading a rye bread | the rye bread",
            "decorate some biscuits | decorated some biscuits | decorating some biscuits "
            "| the biscuits",
        ),
        places=("in the bakery", "at the church fair", "in the village kitchen"),
        likes=(
            "cinnamon reminds me of my childhood",
            "warm bread needs nothing but butter",
            "you can lick the spoon",
        ),
        dislikes=(
            "there is flour on my ceiling",
            "my cakes never rise",
            "i eat all the dough",
        ),
        troubles=(
            "my bread is hard as a brick | the yeast was too old | start a sourdough",
            "the cream will not get stiff | the bowl was warm | cool it first",
            "the pie is burnt | i trusted the old thermometer | scrape off the crust",
        ),
        good=(
            "my almond tart won first prize | i added a little honey",
            "i am opening a pastry shop | my uncle left me some money",
        ),
        bad=(
            "the dog ate the whole cake | i turned around for a moment",
            "all the eggs are broken | the bag ripped in the hallway",
        ),
        items=("a rolling pin", "some icing sugar", "a cake tin"),
        talks=(
            "do you like sweet things | far too much | only with bitter coffee "
            "| i prefer salty snacks",
            "what shall i bake for sunday | a lemon tart | something with plums "
            "| muffins , everybody likes muffins",
        ),
    ),
    Topic(
        name="chess",
        hobby="play chess | playing chess",
        activities=(
            "study a clever opening | studied a clever opening | studying a clever opening "
            "| the opening",
            "play a blindfold game | played a blindfold game | playing a blindfold game "
            "| the blindfold game",
            "challenge a grandmaster | challenged a grandmaster | challenging a grandmaster "
            "| the grandmaster",
        ),
        places=("at the chess club", "in the tournament hall", "at the stone table"),
        likes=(
            "luck has nothing to do with it",
            "a good sacrifice is pure poetry",
            "children can beat professors",
        ),
        dislikes=(
            "the clock makes me panic",
            "i always lose my queen",
            "sitting still is torture",
        ),
        troubles=(
            "i lose against my own daughter | she learns on the internet | study the endgame",
            "my knight is missing | the cat played with it | carve one out of wood",
            "my opponent cheats | he has a phone under the table | inform the arbiter",
        ),
        good=(
            "i drew against a master | he offered it after thirty moves",
            "our club moved up a division | our youngest player won every game",
        ),
        bad=(
            "i lost a winning position | i touched the wrong bishop",
            "the tournament is over for me | i overslept the second round",
        ),
        items=("a chess clock", "a wooden board", "a notebook"),
        talks=(
            "who taught you chess | my grandfather , on a train | a book from the attic "
            "| i taught myself",
            "white or black | white , i like to attack | black , i like to wait "
            "| it does not matter , i lose anyway",
        ),
    ),
)
