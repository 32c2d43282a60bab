"""Training text: a small weighted grammar over everyday words, and word salad for rare pairs of sounds.

Everything is drawn from one seeded generator, so the same seed gives the same sentences on every machine. Two thirds of
the sentences come from the grammar, one third is random dictionary words between function words, which brings in
sequences of phones that everyday sentences never have. No sentence shares a run of :data:`SHARED_RUN` words with a
sentence that is used for testing.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from paretone.paths import resource

Forms = tuple[tuple[int, str], ...]
"""What a symbol can become, with weights; ``<name>`` in a form is another symbol."""


@dataclass(frozen=True)
class Grammar:
    """Lists of words, drawn evenly (``_`` is a blank), and rules, drawn by weight."""

    words: Mapping[str, tuple[str, ...]]
    rules: Mapping[str, Forms]

    def extended(self, words: Mapping[str, tuple[str, ...]], rules: Mapping[str, Forms]) -> Grammar:
        """This grammar with further words and rules; those of the same name replace its rules."""
        return Grammar({**self.words, **words}, {**self.rules, **rules})

    def expand(self, symbol: str, draw: random.Random) -> str:
        """A drawn form of ``symbol``, with the symbols in it expanded."""
        if symbol in self.words:
            return draw.choice(self.words[symbol]).replace("_", " ")
        weights, forms = zip(*self.rules[symbol], strict=True)
        (form,) = draw.choices(forms, weights)
        return re.sub(r"<([^>]+)>", lambda slot: self.expand(slot[1], draw), form)


def even(forms: Iterable[str]) -> Forms:
    """Forms of equal weight."""
    return tuple((1, form) for form in forms)


PROMPT = "We will meet at the old harbor, and talk about the weather."
"""Sentence of the shipped voices; not among the training sentences."""
SHORTEST, LONGEST = 16, 72
"""Length limits of a sentence in characters: at the voices' pace, roughly one to five seconds."""
SHARED_RUN = 4
"""A sentence with this many consecutive words of a test sentence is thrown away."""
SALAD_SHARE = 1 / 3

_NOUNS = """
apple arm arrow aunt baby bag baker ball banana bank barn barrel basket bath beach bean bear beard bed bee beetle bell
belt bench bicycle bird biscuit blanket boat body bone book boot bottle bowl box boy branch bread breath brick bridge
brother brush bucket bus bush butter button cabin cage cake camera candle cap captain car card carpet carrot cart castle
cat cave chain chair chalk cheese cherry chicken child church circle city clay cliff clock cloth cloud coach coat coffee
coin collar colour comb cook corn corner cotton cousin cow cream crown cup curtain daughter deer desk diamond dinner
dish
doctor dog doll door dream dress drum duck ear earth egg elephant engine eye face farm farmer father feather fence
finger
fire fish flag floor flower flute fog foot forest fork fox friend frog fruit garage garden gate ghost gift giraffe girl
glass glove goat goose grape grass guitar hall hammer hand harbour hat hawk hay head heart hedge hill honey hook horn
horse hospital hotel house ice island jacket jam jar jewel joke journey judge juice jungle kettle key king kitchen kite
knee knife ladder lady lake lamp language leaf leather lemon lesson letter library lid light lion lip lock log machine
map market mask match measure meat medal melon mile milk mill mirror money monkey moon morning mother motor mountain
mouse mouth mud museum music nail neck needle neighbour nest net night noise nose note nurse nut oak ocean office oil
onion orange oven owl page paint palace pan paper parcel park path peach pear pen pencil pepper piano picture pie pig
pillow pilot pipe plane plate pleasure pocket poem point pond pony potato present price prince prize pudding puppet
puzzle queen question rabbit radio railway rain ribbon ring river road robin rock roof room root rope rose rug sailor
salad salt sand saw scarf school scissors sea seat seed shed sheep shelf shell ship shirt shoe shop shoulder sign silk
silver singer sister skirt sky smoke snake snow soap sock sofa soldier song soup spade spider spoon spring square stable
stair star station steam step stone storm story stove stranger straw street string student sugar suitcase sun swan
sweater sword table tail tailor tea teacher tent theatre thread throat thumb thunder ticket tiger toe tomato tongue
tooth towel tower town toy track train treasure tree truck trumpet tunnel turkey turtle uncle uniform valley van vase
village vision violin voice voyage wagon waiter wall watch water wave wheel whistle window wine wing winter wolf woman
wood wool worm wrist yard year zebra zoo
"""
_PEOPLE = """
aunt baker boy brother captain child cook cousin daughter doctor driver farmer father friend gardener girl judge king
lady lawyer man mayor mother neighbour nurse officer painter pilot prince queen sailor singer sister soldier son
stranger
student tailor teacher thief uncle visitor waiter woman
"""
_NAMES = """
Adam Agnes Albert Alice Amy Andrew Anna Arthur Barbara Ben Bill Carol Charles Clara Daisy David Donna Edith Edward Ellen
Emma Ethan Eve Fiona Frank George Grace Hannah Harry Helen Henry Hugh Ida Ivan Jack Jane Joan John Joseph Joyce Judith
Karl Kate Kevin Laura Leo Lewis Lily Louise Lucy Margaret Mark Martha Martin Mary Matthew Maude Max Nancy Nicholas Nora
Olive Oscar Paul Peggy Peter Philip Rachel Ralph Rose Roy Ruth Sam Sarah Simon Susan Theo Thomas Tom Ursula Victor Vera
Walter Wendy William Zoe
"""
_TOWNS = """
Africa America Athens Berlin Boston Brazil Cairo Canada Chicago China Denver Dublin Egypt England Florida France Geneva
Greece Holland India Ireland Italy Japan Kenya London Madrid Mexico Moscow Norway Oxford Paris Poland Rome Russia
Scotland
Spain Sweden Sydney Texas Tokyo Turkey Venice Vienna Wales Zurich
"""
_ADJECTIVES = """
amazing ancient angry awful bad beautiful big bitter black blue bold bright broad broken brown busy calm careful cheap
cheerful clean clear clever cloudy cold common cool cruel curious damp dangerous dark dear deep difficult dirty dry dull
dusty early easy empty equal fair faithful famous fancy fast fat few fine flat foolish foreign free fresh friendly full
funny gentle giant glad gold golden good grand green grey happy hard heavy high hollow honest hot huge hungry important
jolly kind large late lazy lean light little lonely long loose loud lovely low lucky mild modern narrow nasty natural
near neat new nice noisy odd old open orange ordinary pale patient perfect pink plain pleasant polite poor precious
proud
public pure purple quick quiet rare raw ready red rich ripe rough round royal rude sad safe sandy serious shallow sharp
shiny short shy sick silent silly simple single sleepy slim slow small smart smooth soft solid sour spare special square
steady steep sticky stiff strange strong sudden sunny sweet tall tame terrible thick thin thirsty tidy tight tiny tired
tough true ugly unusual useful usual vague warm weak wet white whole wide wild wise wonderful wooden wrong yellow young
"""
_MANNERS = """
again alone always anxiously badly bravely calmly carefully certainly cheerfully closely early easily finally gently
gladly hardly hastily heavily honestly lately loudly nearly neatly never nicely often once patiently perhaps politely
proudly quickly quietly rarely roughly sadly safely seldom sharply silently simply slowly smoothly softly soon suddenly
together twice usually warmly wildly wisely
"""
_TRANSITIVE = """
admire/admires/admired/admiring  ask/asks/asked/asking  attack/attacks/attacked/attacking  bake/bakes/baked/baking
beat/beats/beat/beating  bite/bites/bit/biting  blow/blows/blew/blowing  borrow/borrows/borrowed/borrowing
break/breaks/broke/breaking  bring/brings/brought/bringing  build/builds/built/building  burn/burns/burned/burning
bury/buries/buried/burying  buy/buys/bought/buying  carry/carries/carried/carrying  catch/catches/caught/catching
choose/chooses/chose/choosing  clean/cleans/cleaned/cleaning  close/closes/closed/closing  copy/copies/copied/copying
count/counts/counted/counting  cover/covers/covered/covering  cross/crosses/crossed/crossing  cut/cuts/cut/cutting
describe/describes/described/describing  destroy/destroys/destroyed/destroying  dig/digs/dug/digging
draw/draws/drew/drawing  drop/drops/dropped/dropping  enjoy/enjoys/enjoyed/enjoying  examine/examines/examined/examining
expect/expects/expected/expecting  feed/feeds/fed/feeding  feel/feels/felt/feeling  fetch/fetches/fetched/fetching
fill/fills/filled/filling  find/finds/found/finding  follow/follows/followed/following  forget/forgets/forgot/forgetting
gather/gathers/gathered/gathering  give/gives/gave/giving  grow/grows/grew/growing  guard/guards/guarded/guarding
hate/hates/hated/hating  hear/hears/heard/hearing  hide/hides/hid/hiding  hold/holds/held/holding
judge/judges/judged/judging  keep/keeps/kept/keeping  kick/kicks/kicked/kicking  know/knows/knew/knowing
leave/leaves/left/leaving  lift/lifts/lifted/lifting  like/likes/liked/liking  lose/loses/lost/losing
love/loves/loved/loving  make/makes/made/making  measure/measures/measured/measuring  mend/mends/mended/mending
move/moves/moved/moving  need/needs/needed/needing  notice/notices/noticed/noticing  offer/offers/offered/offering
open/opens/opened/opening  order/orders/ordered/ordering  paint/paints/painted/painting  pass/passes/passed/passing
pick/picks/picked/picking  play/plays/played/playing  praise/praises/praised/praising
promise/promises/promised/promising
pull/pulls/pulled/pulling  push/pushes/pushed/pushing  raise/raises/raised/raising  reach/reaches/reached/reaching
read/reads/read/reading  receive/receives/received/receiving  remember/remembers/remembered/remembering
repair/repairs/repaired/repairing  save/saves/saved/saving  search/searches/searched/searching  see/sees/saw/seeing
sell/sells/sold/selling  send/sends/sent/sending  shake/shakes/shook/shaking  share/shares/shared/sharing
show/shows/showed/showing  steal/steals/stole/stealing  study/studies/studied/studying  take/takes/took/taking
taste/tastes/tasted/tasting  teach/teaches/taught/teaching  tear/tears/tore/tearing  throw/throws/threw/throwing
tie/ties/tied/tying  touch/touches/touched/touching  turn/turns/turned/turning  use/uses/used/using
visit/visits/visited/visiting  want/wants/wanted/wanting  wash/washes/washed/washing  watch/watches/watched/watching
wear/wears/wore/wearing  weigh/weighs/weighed/weighing  win/wins/won/winning  wrap/wraps/wrapped/wrapping
"""
_INTRANSITIVE = """
appear/appears/appeared/appearing  argue/argues/argued/arguing  arrive/arrives/arrived/arriving
begin/begins/began/beginning
breathe/breathes/breathed/breathing  camp/camps/camped/camping  climb/climbs/climbed/climbing  come/comes/came/coming
cough/coughs/coughed/coughing  crawl/crawls/crawled/crawling  cry/cries/cried/crying  dance/dances/danced/dancing
disappear/disappears/disappeared/disappearing  dive/dives/dived/diving  fall/falls/fell/falling
fight/fights/fought/fighting
float/floats/floated/floating  fly/flies/flew/flying  go/goes/went/going  hurry/hurries/hurried/hurrying
jump/jumps/jumped/jumping  kneel/kneels/knelt/kneeling  land/lands/landed/landing  laugh/laughs/laughed/laughing
lie/lies/lay/lying  listen/listens/listened/listening  live/lives/lived/living  march/marches/marched/marching
meet/meets/met/meeting  pause/pauses/paused/pausing  race/races/raced/racing  rest/rests/rested/resting
return/returns/returned/returning  ride/rides/rode/riding  rise/rises/rose/rising  row/rows/rowed/rowing
run/runs/ran/running  sail/sails/sailed/sailing  shiver/shivers/shivered/shivering  shout/shouts/shouted/shouting
sing/sings/sang/singing  sit/sits/sat/sitting  sleep/sleeps/slept/sleeping  slip/slips/slipped/slipping
smile/smiles/smiled/smiling  speak/speaks/spoke/speaking  stand/stands/stood/standing  stay/stays/stayed/staying
stop/stops/stopped/stopping  swim/swims/swam/swimming  talk/talks/talked/talking  travel/travels/travelled/travelling
wait/waits/waited/waiting  wake/wakes/woke/waking  walk/walks/walked/walking  wander/wanders/wandered/wandering
whisper/whispers/whispered/whispering  work/works/worked/working  yawn/yawns/yawned/yawning
"""
_ONES = "two three four five six seven eight nine"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"


def _verb_forms(lines: str, form: int) -> tuple[str, ...]:
    return tuple(verb.split("/")[form] for verb in lines.split())


def _plurals() -> tuple[str, ...]:
    irregular = {"child": "children", "foot": "feet", "goose": "geese", "knife": "knives", "leaf": "leaves"}
    irregular |= {"mouse": "mice", "shelf": "shelves", "tooth": "teeth", "wolf": "wolves", "woman": "women"}
    uncountable = {"butter", "cheese", "clay", "coffee", "corn", "cotton", "cream", "deer", "earth", "fish", "fog"}
    uncountable |= {
        "grass",
        "hay",
        "honey",
        "juice",
        "leather",
        "meat",
        "milk",
        "money",
        "mud",
        "music",
        "rain",
        "salt",
    }
    uncountable |= {
        "sand",
        "scissors",
        "sheep",
        "silk",
        "silver",
        "smoke",
        "snow",
        "steam",
        "straw",
        "sugar",
        "thunder",
    }
    forms = []
    for noun in _NOUNS.split():
        if noun in uncountable:
            continue
        if noun in irregular:
            forms.append(irregular[noun])
        elif re.search(r"(s|x|ch|sh|z)$", noun) or noun in ("potato", "tomato"):
            forms.append(noun + "es")
        elif re.search(r"[^aeiou]y$", noun):
            forms.append(noun[:-1] + "ies")
        else:
            forms.append(noun + "s")
    return tuple(forms)


_WORDS: dict[str, tuple[str, ...]] = {
    "noun": tuple(_NOUNS.split()),
    "nouns": _plurals(),
    "human": tuple(_PEOPLE.split()),
    "name": tuple(_NAMES.split()),
    "town": tuple(_TOWNS.split()),
    "adjective": tuple(_ADJECTIVES.split()),
    "manner": tuple(_MANNERS.split()),
    "take": _verb_forms(_TRANSITIVE, 0),
    "takes": _verb_forms(_TRANSITIVE, 1),
    "took": _verb_forms(_TRANSITIVE, 2),
    "taking": _verb_forms(_TRANSITIVE, 3),
    "go": _verb_forms(_INTRANSITIVE, 0),
    "goes": _verb_forms(_INTRANSITIVE, 1),
    "went": _verb_forms(_INTRANSITIVE, 2),
    "going": _verb_forms(_INTRANSITIVE, 3),
    "ones": tuple(_ONES.split()),
    "tens": tuple(_TENS.split()),
    "teens": tuple(_TEENS.split()),
    "day": tuple("Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()),
    "month": tuple("January February March April May June July August September October November December".split()),
    "owner": tuple("the the my your his her our their this that".split()),
    "single": tuple("the the the a a my your his her our their this that each every another some".split()),
    "several": tuple("the these those some many most both our my few all_the no".split()),
    "near": tuple(
        "in on near behind under above beside around across through over by inside outside past beyond at before after "
        "below between toward along against without".split()
    ),
    "modal": tuple("will can must should could would might may cannot shall".split()),
    "is": tuple("is was looks seems became feels sounds is_not was_never is_too was_rather".split()),
    "unit": tuple("minutes hours days weeks months years miles pounds dollars metres".split()),
    "him": tuple("me you him her us them it".split()),
}
_RULES: dict[str, tuple[tuple[int, str], ...]] = {
    "sentence": (
        (16, "<he> <took> <thing><maybe place><maybe time>."),
        (5, "<he> <takes> <thing><maybe place>."),
        (4, "<they> <take> <thing><maybe place>."),
        (12, "<he> <went><maybe manner> <place><maybe time>."),
        (4, "<he> <goes> <place><maybe time>."),
        (4, "<they> <go><maybe manner> <place>."),
        (9, "<anyone> <modal> <take> <thing><maybe time>."),
        (4, "<anyone> <modal> <go> <place><maybe time>."),
        (9, "<owner> <noun> <is> <adjective><maybe and so>."),
        (5, "<several> <nouns> <are> <adjective><maybe and so>."),
        (6, "<look> <thing><maybe place>."),
        (5, "<he> <being> <taking> <thing>."),
        (4, "<he> <being> <going> <place>."),
        (5, "<take> <thing> <then> <take> <thing>."),
        (4, "<why> did <anyone> <take> <thing>?"),
        (3, "<modal> <anyone> <go> <place>?"),
        (3, "is <thing> <adjective> or <adjective>?"),
        (4, "<name> and <name> <went> <from> <town> <time>."),
        (5, "<when> <he> <went> <place>, <anyone> <took> <thing>."),
        (4, "<he> <took> <thing>, <but> <they> <modal> <go>."),
        (4, "<thing> <with> <thing> <belongs> <thing>."),
        (3, "the <sum> is <number> <unit><maybe time>."),
        (2, "<name> said, <look> <thing>."),
        (2, "<thing>, <thing>, and <thing>."),
        (2, "<he> <took> <him> <number> <nouns>."),
    ),
    "he": ((3, "<name>"), (4, "<owner> <human>"), (2, "<owner> <adjective> <human>"), (1, "he"), (1, "she"), (1, "it")),
    "they": ((2, "I"), (2, "you"), (2, "we"), (2, "they"), (1, "<several> <nouns>"), (1, "<name> and <name>")),
    "anyone": ((1, "<he>"), (1, "<they>")),
    "thing": (
        (6, "<single> <noun>"),
        (6, "<single> <adjective> <noun>"),
        (2, "<several> <nouns>"),
        (2, "<several> <adjective> <nouns>"),
        (2, "<number> <nouns>"),
        (1, "<him>"),
        (1, "<name>'s <noun>"),
    ),
    "number": ((5, "<ones>"), (2, "<tens>"), (2, "<teens>"), (3, "<tens> <ones>"), (1, "<ones> hundred")),
    "place": ((5, "<near> <owner> <noun>"), (2, "<near> <owner> <adjective> <noun>"), (1, "<from> <town>")),
    "from": ((2, "to"), (2, "from"), (2, "in"), (1, "near")),
    "time": (
        (3, "on <day>"),
        (2, "in <month>"),
        (2, "at <ones> o'clock"),
        (2, "<number> <unit> ago"),
        (1, "today"),
        (1, "tonight"),
        (1, "tomorrow"),
        (1, "yesterday"),
        (1, "this evening"),
        (1, "last winter"),
        (1, "every morning"),
        (1, "next year"),
        (1, "all summer"),
        (1, "after breakfast"),
        (1, "at once"),
    ),
    "maybe place": ((1, ""), (1, " <place>")),
    "maybe time": ((3, ""), (1, " <time>")),
    "maybe manner": ((2, ""), (1, " <manner>")),
    "maybe and so": ((2, ""), (1, " and <adjective>"), (1, " <time>"), (1, " and <manner> <adjective>")),
    "are": ((1, "are"), (1, "were"), (1, "look"), (1, "seem"), (1, "have been")),
    "being": ((1, "is"), (1, "was"), (1, "has been"), (1, "will be"), (1, "was not")),
    "look": ((1, "there is"), (1, "here was"), (1, "look at"), (1, "give me"), (1, "where is"), (1, "please bring")),
    "then": ((1, "and"), (1, "then"), (1, "or"), (1, "before you"), (1, "and never")),
    "why": ((1, "why"), (1, "when"), (1, "how"), (1, "where")),
    "when": ((1, "when"), (1, "while"), (1, "because"), (1, "after"), (1, "if"), (1, "although")),
    "but": ((1, "but"), (1, "and"), (1, "so"), (1, "for"), (1, "yet")),
    "with": ((1, "with"), (1, "of"), (1, "from"), (1, "for"), (1, "without")),
    "belongs": ((1, "belongs to"), (1, "costs"), (1, "covered"), (1, "fell on"), (1, "is under"), (1, "needs")),
    "sum": ((1, "price"), (1, "answer"), (1, "total"), (1, "distance"), (1, "number"), (1, "charge")),
}
GRAMMAR = Grammar(_WORDS, _RULES)
"""Its symbol ``sentence`` is a whole one."""
_FUNCTION_WORDS = tuple("the a of and to in with for is on or no as at from by was his that".split())


def normalised_words(sentence: str) -> tuple[str, ...]:
    """The words of a sentence in lower case, without punctuation except apostrophes."""
    return tuple(re.findall(r"[a-z']+", sentence.lower()))


@cache
def _dictionary() -> tuple[str, ...]:
    """The plain words of three to nine letters in the bundled pronunciation dictionary, in its order."""
    words = (line.split(maxsplit=1)[0] for line in resource("lexicon", "cmudict.dict").open(encoding="utf-8"))
    return tuple(word for word in words if re.fullmatch(r"[a-z]{3,9}", word))


def _random_words(draw: random.Random) -> str:
    words = []
    for _ in range(draw.randint(3, 6)):
        if draw.random() < 0.5:
            words.append(draw.choice(_FUNCTION_WORDS))
        words.append(draw.choice(_dictionary()))
    return " ".join(words) + "."


def finished(text: str) -> str:
    """``text`` with *an* before vowels and a capital letter in front."""
    text = re.sub(r"\b([Aa]) (?=[aeiou])", r"\1n ", text)
    return text[0].upper() + text[1:]


def training_sentences(count: int, seed: int = 1, excluded: Iterable[str] = ()) -> list[str]:
    """``count`` different sentences, the same for the same arguments.

    None shares :data:`SHARED_RUN` consecutive words with a sentence of ``excluded``.
    """
    draw = random.Random(seed)
    forbidden = {run for sentence in excluded for run in runs(sentence)}
    found: dict[str, None] = {}
    while len(found) < count:
        plain = _random_words(draw) if draw.random() < SALAD_SHARE else GRAMMAR.expand("sentence", draw)
        sentence = finished(plain)
        if SHORTEST <= len(sentence) <= LONGEST and forbidden.isdisjoint(runs(sentence)):
            found[sentence] = None
    return list(found)


def runs(sentence: str) -> list[tuple[str, ...]]:
    """Every :data:`SHARED_RUN` consecutive words of a sentence."""
    words = normalised_words(sentence)
    return [words[start : start + SHARED_RUN] for start in range(len(words) - SHARED_RUN + 1)]
