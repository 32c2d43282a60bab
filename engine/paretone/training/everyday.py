"""What people have read aloud: news, messages, questions, dialogue, lists, numbers, dates and prices.

A second grammar next to that of :mod:`paretone.training.sentences`, whose words it shares, and the lines of
``resources/sentences/everyday.txt``, which were written for this. Figures are in digits, as people type them; the text
front end turns them into words. The same seed gives the same sentences on every machine.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

from paretone.paths import resource
from paretone.training.sentences import GRAMMAR, Forms, even, finished, runs, training_sentences

SHORTEST, LONGEST = 4, 150
"""Length limits of an everyday sentence in characters: up to some ten seconds."""
TEMPLATE_SHARE = 0.3
"""Share of a corpus that is drawn from the grammar of :mod:`paretone.training.sentences`."""

_WORDS: dict[str, tuple[str, ...]] = {
    "company": tuple(
        "the_bank the_airline the_hospital the_city_council the_university the_post_office the_water_company "
        "the_police the_fire_department the_ministry the_publisher the_museum the_railway the_factory the_union".split()
    ),
    "official": tuple(
        "officials researchers doctors engineers witnesses residents teachers economists organizers investigators "
        "scientists farmers volunteers forecasters campaigners".split()
    ),
    "food": tuple(
        "bread milk eggs butter rice pasta apples bananas tomatoes onions garlic chicken salmon yogurt coffee tea "
        "sugar flour carrots spinach mushrooms potatoes lemons olive_oil black_pepper dark_chocolate "
        "orange_juice".split()
    ),
    "thing used": tuple(
        "phone laptop printer camera bicycle washing_machine heater fridge television router headphones keyboard "
        "suitcase umbrella alarm_clock vacuum_cleaner".split()
    ),
    "event": tuple(
        "meeting concert lecture party interview exam rehearsal wedding flight appointment class game ceremony "
        "exhibition workshop conference".split()
    ),
    "feeling": tuple(
        "happy worried surprised relieved nervous proud disappointed exhausted excited confused grateful curious "
        "annoyed embarrassed hopeful".split()
    ),
    "subject": tuple(
        "history chemistry physics music grammar geography economics medicine biology astronomy philosophy "
        "engineering psychology literature statistics".split()
    ),
    "illness": tuple("a_cold a_headache the_flu a_sore_throat a_fever a_bad_cough a_broken_wrist an_allergy".split()),
    "weather": tuple(
        "rain heavy_snow thick_fog strong_winds bright_sunshine freezing_temperatures thunderstorms light_showers "
        "clear_skies a_heat_wave".split()
    ),
    "surname": tuple(
        "Anderson Bennett Carter Dawson Ellis Fisher Garcia Hughes Jensen Kowalski Lopez Murphy Nguyen O'Brien Patel "
        "Quinn Ramirez Schultz Thompson Underwood Vasquez Whitaker Yamamoto Zimmerman".split()
    ),
    "street": tuple("Maple Oak Church Mill Station Victoria Park Lincoln Harbor Queen River Highland".split()),
    "digit": tuple("0123456789"),
    "adverb": tuple(
        "actually apparently basically clearly definitely eventually fortunately frankly generally honestly hopefully "
        "luckily naturally obviously originally personally probably recently sadly seriously strangely surely "
        "unfortunately".split()
    ),
}
_RULES: dict[str, Forms] = {
    "everyday": (
        (9, "<news>"),
        (9, "<message>"),
        (10, "<question>"),
        (8, "<dialogue>"),
        (5, "<list>"),
        (9, "<figure>"),
        (7, "<instruction>"),
        (8, "<remark>"),
        (4, "<exclamation>"),
        (6, "<story>"),
        (4, "<knowledge>"),
    ),
    "news": even(
        (
            "<company> announced on <day> that <plan>.",
            "<official> say that <plan>, although <doubt>.",
            "According to <company>, <plan>.",
            "More than <many> people <gathered> in <town> on <day>.",
            "Prices of <food> rose by <percent> percent last <month>, <official> said.",
            "The <event> in <town> was <postponed> because of <weather>.",
            "After <small> years of <work>, <company> has finally <opened> in <town>.",
            "<surname>, who is <age>, has been <elected> as head of <company>.",
            "Nobody was hurt when a <car> <hit> a <wall> near <town>, <official> reported.",
            "Forecasters expect <weather> across <town> and <town> until <day>.",
        )
    ),
    "message": even(
        (
            "Hi <name>, <sorry> I can't come to the <event> on <day>.",
            "Could you pick up some <food> and <food> on your way home?",
            "Thanks for your help with the <thing used>; it works <perfectly> now.",
            "I'll be about <small> minutes late, so please start without me.",
            "Don't forget: the <event> begins at <clock>.",
            "<name> called about the <event>, and <he> would like you to call back.",
            "Let me know <if> you need anything from the shop.",
            "I left the keys <near> the <noun>, next to your <noun>.",
            "We're moving the <event> from <day> to <day>; I hope that's all right.",
            "Happy birthday, <name>! I hope you have a <lovely> day.",
            "My <thing used> has stopped working, and I have no idea why.",
            "See you at <clock>, then.",
            "I have <illness>, so I'm staying at home today.",
        )
    ),
    "question": even(
        (
            "Have you seen my <noun> anywhere?",
            "What time does the <event> start?",
            "Why didn't you tell me about the <event>?",
            "How much does the <thing used> cost?",
            "Would you rather have <food> or <food>?",
            "Is it true that <name> is moving to <town>?",
            "Where did you learn so much about <subject>?",
            "You're coming to the <event> with us, aren't you?",
            "Who left the <noun> <near> the <noun>?",
            "Do you think it'll <snow> before <day>?",
            "How long have you been waiting?",
            "Which of these <nouns> belongs to <name>?",
            "Can I borrow your <thing used> until <day>?",
            "Are you <feeling>, or just tired?",
            "What would you do if you had <small> days off?",
            "Did <name> say anything about <subject>?",
            "Could you say that again, please?",
            "When was the last time you went to <town>?",
        )
    ),
    "dialogue": even(
        (
            '"<short question>" asked <name>. "<short answer>."',
            '"<short answer>," said <name>, and <closed> the <noun>.',
            '"I\'m <feeling>," <name> said quietly, "but I\'ll come."',
            '"<short answer>," she said. "<short question>"',
            'He looked up and whispered, "<short question>"',
            '"Wait!" cried the <human>. "<short answer>."',
            '"If you ask me," said <name>, "<he> <is> far too <adjective>."',
        )
    ),
    "list": even(
        (
            "We need <food>, <food>, <food>, and <food>.",
            "There are three things to do: <do>, <do>, and <do>.",
            "She studied <subject>, <subject>, and, for a while, <subject>.",
            "<name>, <name>, <name>, and <name> are all coming to the <event>.",
            "I've been to <town>, <town>, and <town>, but never to <town>.",
            "First <do>; then <do>; and finally, <do>.",
            "Monday is <subject>, Tuesday is <subject>, and Wednesday is free.",
        )
    ),
    "figure": even(
        (
            "The <event> is on <month> <date>, at <clock>.",
            "It costs $<price>, or $<price> with delivery.",
            "Please call <phone> before <clock>.",
            "The <noun> weighs <small>.<digit> kilograms and is <large> centimeters tall.",
            "In <year>, only <percent>% of the <nouns> were sold.",
            "My address is <address> <street> Street, apartment <small>.",
            "Dr. <surname> will see you at <clock> on <day>.",
            "About <many> people live in this part of <town>.",
            "The train leaves platform <small> at <clock> and arrives at <clock>.",
            "Chapter <small> begins on page <large>.",
            "It was <large> degrees in <town> yesterday, and <small> degrees at night.",
            "He was born in <year> and died in <year>.",
            "Mix <small> cups of <food> with half a cup of <food>.",
            "The score was <small> to <small>, with <small> minutes left.",
            "We walked <small> miles in <small> hours and <large> minutes.",
            "The <ordinal> and the <ordinal> of <month> are holidays.",
        )
    ),
    "instruction": even(
        (
            "Press the <adjective> button, and wait until the light turns <adjective>.",
            "Before you begin, make sure that the <thing used> is switched off.",
            "Turn left at the <noun>, then take the second street on the right.",
            "Add the <food>, stir well, and cook for <small> minutes.",
            "Please keep your <noun> with you at all times.",
            "To reset your password, enter the code that we have sent you.",
            "Take one tablet <small> times a day, after meals.",
            "Do not open the <thing used> while it is running.",
            "Fold the paper in half, and cut along the line.",
            "Mind the gap between the train and the platform.",
        )
    ),
    "remark": even(
        (
            "<adverb>, I thought that the <event> was <rather> <adjective>.",
            "I'm not sure <if> <name> will be <feeling> about that.",
            "It's been a long day, and I'm <feeling>.",
            "To be honest, I've never understood <subject>.",
            "The <food> tastes a bit strange, but the <food> is excellent.",
            "You can't have it both ways, <name>.",
            "That's exactly what I was going to say.",
            "If it weren't for the <weather>, we'd be in <town> by now.",
            "I used to like <food>; now I can't stand it.",
            "Nothing ever happens here, except on <day>s.",
            "It's not the <noun> that worries me, it's the <noun>.",
            "I suppose you're right, but <doubt>.",
            "Most people, including me, would have <adverb> said no.",
            "The thing about <name> is that <he> never listens.",
        )
    ),
    "exclamation": even(
        (
            "What a <adjective> <noun>!",
            "No, not that one, the other one!",
            "Look out, there's a <noun> on the road!",
            "I can't believe it!",
            "Well done, <name>!",
            "How very <adjective> of you!",
            "Hurry up, we're going to miss the <event>!",
            "Oh no, I've lost my <noun>!",
            "Stop it, both of you!",
        )
    ),
    "story": even(
        (
            "When <name> opened the <noun>, a <adjective> <noun> fell out, and everybody laughed.",
            "It was almost midnight, yet nobody in <town> wanted to go home.",
            "The <human> had <took> the <noun>, and now there was nothing left but a <noun>.",
            "Years later, <he> still remembered the <adjective> <noun> <near> the <noun>.",
            "She walked slowly through the <noun>, listening to the <weather> outside.",
            "Once upon a time, in a <noun> <near> <town>, there lived a <adjective> <human>.",
            "At first he was <feeling>; then, without a word, he picked up the <noun> and left.",
            "By the time we reached <town>, the <nouns> had gone, and the <event> was over.",
            "Behind the <noun> - and this is the strange part - stood another <noun>.",
        )
    ),
    "knowledge": even(
        (
            "<subject> is the study of how <nouns> and <nouns> change over time.",
            "Light from the <noun> takes more than <small> minutes to reach us.",
            "The word comes from Latin, where it meant something quite different.",
            "In the <ordinal> century, most <nouns> were made of <food> and wood.",
            "Unlike <subject>, <subject> deals with things that cannot be measured.",
            "A <noun> can be up to <large> meters long, and weigh as much as <small> <nouns>.",
            "Scientists have known about this effect since <year>, but <doubt>.",
        )
    ),
    # --- Parts of sentences ---------------------------------------------------------------------------------------
    "plan": even(
        (
            "the new <noun> will open next <month>",
            "<percent> percent of its <nouns> are to be replaced",
            "<food> prices may fall again before <month>",
            "it would repair the <noun> within <small> weeks",
            "visitors will no longer have to pay for the <noun>",
            "the <event> in <town> has been moved to <day>",
            "<many> jobs could be lost",
        )
    ),
    "doubt": even(
        (
            "not everyone agrees",
            "it may take longer than expected",
            "there is no proof of it yet",
            "few people have noticed",
            "nobody knows why",
            "some questions remain",
        )
    ),
    "short question": even(
        (
            "Where are you going?",
            "Is anybody there?",
            "What was that?",
            "Are you all right?",
            "Who told you that?",
            "Do you really think so?",
            "Shall we go?",
            "How do you know?",
        )
    ),
    "short answer": even(
        (
            "I have no idea",
            "Not today",
            "Of course I am",
            "It's only the wind",
            "You'll see",
            "Perhaps tomorrow",
            "That's none of your business",
            "I wouldn't if I were you",
        )
    ),
    "do": even(
        (
            "wash the <nouns>",
            "call <name>",
            "buy some <food>",
            "feed the <noun>",
            "answer the letters",
            "check the <thing used>",
            "read chapter <small>",
            "clean the <noun>",
        )
    ),
    "gathered": even(("gathered", "marched", "queued for hours", "lost their power")),
    "postponed": even(("postponed", "canceled", "moved indoors", "cut short")),
    "work": even(("planning", "delays", "careful work", "research", "argument")),
    "opened": even(("opened a new <noun>", "closed its last <noun>", "moved its main office")),
    "elected": even(("elected", "named", "suggested", "replaced")),
    "car": even(("truck", "bus", "delivery van", "motorcycle", "small plane")),
    "hit": even(("hit", "drove into", "slid into", "crashed through")),
    "wall": even(("wall", "fence", "tree", "shop window", "bridge")),
    "sorry": even(("I'm sorry, but", "I'm afraid", "it looks like", "unfortunately")),
    "perfectly": even(("perfectly", "again", "much better", "almost silently")),
    "lovely": even(("lovely", "wonderful", "quiet", "very special")),
    "if": even(("if", "whether")),
    "snow": even(("rain", "snow", "get warmer", "clear up")),
    "closed": even(("closed", "opened", "dropped", "turned away from", "put down")),
    "rather": even(("rather", "quite", "surprisingly", "not very", "a little too")),
    "small": even("2 3 4 5 6 7 8 9 10 11 12 15 20".split()),
    "large": even("17 21 26 33 38 42 45 54 59 63 67 72 78 84 86 91 95 110 130 250".split()),
    "percent": even("2 3.5 5 8 10 12.5 15 20 25 30 48 60 75 90".split()),
    "many": even("120 300 450 800 1,200 2,500 4,000 10,000 36,000 150,000".split()),
    "age": even("29 34 41 47 52 58 63 70".split()),
    "address": even("7 12 26 48 103 219 345 1460".split()),
    "year": even("1492 1776 1815 1848 1903 1918 1945 1963 1969 1987 1999 2004 2010 2018 2024".split()),
    "price": even(("<small>", "<small>.99", "<large>", "<large>.50", "1,<digit>00")),
    "clock": even(("<hour>", "<hour>:30", "<hour>:15 a.m.", "<hour>:45 p.m.", "<hour> o'clock", "noon", "<hour>:05")),
    "hour": even("1 2 3 4 5 6 7 8 9 10 11 12".split()),
    "phone": even(("555-01<digit><digit>", "<digit><digit><digit>-555-01<digit><digit>")),
    "date": even((*"1 2 3 4 5 6 7 8 9 30".split(), "1<digit>", "2<digit>")),
    "ordinal": even("1st 2nd 3rd 4th 5th 8th 12th 15th 19th 20th 21st 30th".split()),
}
_GRAMMAR = GRAMMAR.extended(_WORDS, _RULES)


def written_sentences() -> tuple[str, ...]:
    """The lines of ``resources/sentences/everyday.txt``."""
    return tuple(resource("sentences", "everyday.txt").read_text(encoding="utf-8").splitlines())


def everyday_sentences(count: int, seed: int = 1, excluded: Iterable[str] = ()) -> list[str]:
    """``count`` different sentences of the grammar; none shares a run of words with a sentence of ``excluded``, as in
    :func:`paretone.training.sentences.training_sentences`."""
    draw = random.Random(seed)
    forbidden = {run for sentence in excluded for run in runs(sentence)}
    found: dict[str, None] = {}
    while len(found) < count:
        sentence = finished(_GRAMMAR.expand("everyday", draw))
        if SHORTEST <= len(sentence) <= LONGEST and forbidden.isdisjoint(runs(sentence)):
            found[sentence] = None
    return list(found)


def corpus_sentences(count: int, seed: int = 1, excluded: Iterable[str] = ()) -> list[str]:
    """``count`` different sentences for a corpus, shuffled: those that were written, a share of
    :data:`TEMPLATE_SHARE` from the grammar of :mod:`paretone.training.sentences`, and everyday ones.

    None shares a run of words with a sentence of ``excluded``.
    """
    unwanted = list(excluded)
    forbidden = {run for sentence in unwanted for run in runs(sentence)}
    written = [one for one in written_sentences() if forbidden.isdisjoint(runs(one))][:count]
    template = min(round(TEMPLATE_SHARE * count), count - len(written))
    everyday = count - len(written) - template
    sentences = [*written, *training_sentences(template, seed, unwanted), *everyday_sentences(everyday, seed, unwanted)]
    random.Random(seed).shuffle(sentences)
    return sentences
