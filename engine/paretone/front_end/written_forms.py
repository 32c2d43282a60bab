"""What English writes in short: units, currencies, abbreviations, marks and letters, with their words."""

from __future__ import annotations

import re


def _table(pairs: str) -> dict[str, str]:
    """Words by their short forms; a low line stands for a blank."""
    return {short: words.replace("_", " ") for short, words in (pair.split("=") for pair in pairs.split())}


def _either(pairs: str) -> dict[str, str]:
    """The same with a capital, too, unless that means something else; single letters only as they are."""
    table = _table(pairs)
    capital = {short[0].upper() + short[1:]: words.capitalize() for short, words in table.items() if len(short) > 1}
    return capital | table


MONTHS = "January February March April May June July August September October November December".split()
WEEKDAYS = _table(
    "Mon=Monday Tue=Tuesday Tues=Tuesday Wed=Wednesday Weds=Wednesday Thu=Thursday Thur=Thursday Thurs=Thursday "
    "Fri=Friday Sat=Saturday Sun=Sunday"
)
DAYS = _table("M=Monday Tu=Tuesday W=Wednesday Th=Thursday F=Friday Sa=Saturday Su=Sunday")
MONTH_STARTS = {name[:3]: name for name in MONTHS} | {"Sept": "September"}

CURRENCIES = {
    sign: (one.replace("_", " "), many.replace("_", " "), cent, cents)
    for line in """
    $: dollar dollars cent cents| £ GBP: pound pounds penny pence| € EUR: euro euros cent cents| ¥ JPY: yen yen sen sen|
    ₹ INR Rs.: rupee rupees paisa paise| ₩ KRW: won won jeon jeon| ₽ RUB: ruble rubles kopeck kopecks| ₺: lira lira
    kurus kurus| ₪ ILS: shekel shekels agora agorot| ₿ BTC: bitcoin bitcoins satoshi satoshis| CHF: Swiss_franc
    Swiss_francs centime centimes| CNY RMB: yuan yuan fen fen| SEK: Swedish_krona Swedish_kronor ore ore| NOK:
    Norwegian_krone Norwegian_kroner ore ore| DKK: Danish_krone Danish_kroner ore ore| kr: krone kroner ore ore| PLN zł:
    zloty zlotys grosz groszy| CZK Kč: koruna korunas haler halers| R$ BRL: real reais centavo centavos| MXN: peso pesos
    centavo centavos""".split("|")
    for signs, names in [line.split(":")]
    for one, many, cent, cents in [names.split()]
    for sign in signs.split()
} | {
    sign: (f"{name} dollar", f"{name} dollars", "cent", "cents")
    for signs, name in (
        ("US$ USD", "U.S."), ("A$ AU$ AUD", "Australian"), ("C$ CA$ CAD", "Canadian"), ("NZ$ NZD", "New Zealand"),
        ("HK$ HKD", "Hong Kong"), ("S$ SGD", "Singapore"),
    )
    for sign in signs.split()
}  # fmt: skip
MAGNITUDES = _table(
    "k=thousand K=thousand m=million mn=million M=million bn=billion B=billion b=billion T=trillion tn=trillion "
    "mil=million bil=billion tril=trillion"
)

_SCALED = _table("k=kilo h=hecto c=centi d=deci m=milli µ=micro n=nano M=mega G=giga T=tera P=peta") | {"": ""}
_BASES = {
    "m": ("meter", " k c m µ n"), "g": ("gram", " k m µ n"), "s": ("second", " m µ n"), "L": ("liter", " m µ c d"),
    "Hz": ("hertz", " k M G"), "W": ("watt", " k m M G"), "V": ("volt", " k m"), "A": ("ampere", " m µ k"),
    "Wh": ("watt hour", " k M G"), "Ah": ("ampere hour", " m"), "J": ("joule", " k M"), "N": ("newton", " k m"),
    "Pa": ("pascal", " h k M"), "B": ("byte", "k M G T"), "bps": ("bit per second", " k M G"), "cal": ("calorie", " k"),
    "mol": ("mole", " m µ n"), "eV": ("electron volt", " k M G"), "M": ("molar", "m µ n"), "Ω": ("ohm", " k M"),
    "b": ("bit", "k M G"), "F": ("farad", "µ n"), "bar": ("bar", " m"), "l": ("liter", " m d"),
    "FLOP": ("flop", "G T P"), "FLOPS": ("flop", "G T P"), "t": ("ton", " M"),
}  # fmt: skip


def _many(unit: str) -> str:
    """The plural: "miles per hour", "foot pounds"."""
    head, per, rest = unit.partition(" per ")
    return unit if unit.endswith(("hertz", "molar")) else f"{head}s{per}{rest}"


UNITS = {
    prefix + sign: (_SCALED[prefix] + name, _many(_SCALED[prefix] + name))
    for sign, (name, prefixes) in _BASES.items()
    for prefix in prefixes.split(" ")
} | {
    sign: (names[0], names[1] if len(names) > 1 else _many(names[0]))
    for line in """
    KB: kilobyte| GiB: gibibyte| MiB: mebibyte| ft: foot feet| mi: mile| yd yds: yard| lb lbs: pound| oz: ounce| tbsp
    tbsps Tbsp: tablespoon| tsp tsps: teaspoon| gal gals: gallon| qt qts: quart| pt: pint| ha: hectare| pg/mL pg/ml:
    picogram_per_milliliter| ppg: point_per_game| rpg: rebound_per_game| apg: assist_per_game| mcg: microgram| IU:
    international_unit| d: day| ac: acre| s.f.: square_foot square_feet| atm: atmosphere| in-lb in-lbs: inch_pound| req
    reqs: request| rms.: room| dB: decibel| MP: megapixel| px: pixel| hp: horsepower horsepower| Nm N·m: newton_meter|
    it/s: iteration_per_second| U: unit| sts: stitch stitches| K/µL k/µL: thousand_per_microliter
    thousand_per_microliter| mEq: milliequivalent| ★: star| ft-lb ft-lbs ft·lb ft·lbs lb-ft lb.-ft ft.-lb ft.-lbs:
    foot_pound| bbl: barrel| bpd: barrel_per_day| doz: dozen dozen| pk: pack| M☉: solar_mass solar_masses| BR: bedroom|
    BA: bath| pp: percentage_point| pg: page| st: stone stone| nt nts: night| qtr qtrs: quarter| nmi: nautical_mile| m.y
    Myr: million_years million_years| ly: light_year| AU: astronomical_unit| mph m.p.h.: mile_per_hour| kph:
    kilometer_per_hour| kn kt kts: knot| mpg: mile_per_gallon| rpm RPM: revolution_per_minute| bpm BPM: beat_per_minute|
    wpm: word_per_minute| psi: pound_per_square_inch| fps: frame_per_second| ppm: part_per_million| ppb:
    part_per_billion| bp bps.: basis_point| sec secs: second| min mins: minute| hr hrs h: hour| mo mos: month| wk wks:
    week| yr yrs: year| K: kelvin kelvin| sqft: square_foot square_feet| mmHg: millimeter_of_mercury
    millimeters_of_mercury| dpi: dot_per_inch| rad: radian| pct: percent percent| pts: point| °C: degree_celsius
    degrees_celsius| °F: degree_fahrenheit degrees_fahrenheit| °: degree| x ×: time| kWp: kilowatt_peak kilowatts_peak|
    cc: cubic_centimeter| fl_oz fl._oz: fluid_ounce| in: inch inches""".split("|")
    for signs, written in [line.split(":")]
    for names in [[word.replace("_", " ") for word in written.split()]]
    for sign in (word.replace("_", " ") for word in signs.split())
}
"""By sign: one and several. Those after the first table have their plural only where it is not regular."""
UNITS |= {
    f"{short}{dot} {unit}": (f"{name} {UNITS[unit][0]}", f"{name} {UNITS[unit][1]}")
    for short, name in (("sq", "square"), ("cu", "cubic"))
    for dot in ("", ".")
    for unit in "ft in mi yd m km cm".split()
}

UNITS |= {f"{unit}s": UNITS[unit] for unit in ("KB", "MB", "GB", "TB")}
UNITS |= {unit.upper(): UNITS[unit] for unit in "mph mpg ppg rpg apg pts lb lbs oz ft km kg cm mg hrs mins yrs".split()}

TITLES = _either(
    "Mr=Mister Mrs=Mrs Ms=Miz Messrs=Messrs Prof=Professor Rev=Reverend Gen=General Col=Colonel Capt=Captain "
    "Cmdr=Commander Lt=Lieutenant Maj=Major Sgt=Sergeant Sen=Senator Sens=Senators Gov=Governor Govs=Governors "
    "Hon=Honorable Mt=Mount Ft=Fort Adm=Admiral Atty=Attorney Pres=President Rep=Representative Reps=Representatives "
    "Supt=Superintendent Cpl=Corporal figs=figures eq=equation Ch=Chapter vol=volume approx=approximately vs=versus "
    "cf=compare apt=apartment Hwy=Highway Ste=Suite rm=room avg=average Ref=Reference max=maximum min=minimum "
    "Wm=William Chas=Charles Thos=Thomas Geo=George assoc=associate asst=assistant mgr=manager acct=account "
    "inv=invoice doz=dozen Mk=Mark Pvt=Private Bn=Battalion Regt=Regiment tel=telephone pls=please lg=large "
    "pkg=package addr=address appt=appointment gen=generation Amb=Ambassador Insp=Inspector Det=Detective "
    "Brig=Brigadier Fr=Father Mme=Madame sm=small pkgs=packages pgs=pages vols=volumes chs=chapters eqs=equations "
    "Thm=Theorem Lem=Lemma Prop=Proposition Def=Definition paras=paragraphs eds=editors esp=especially usu=usually "
    "dia=diameter diam=diameter attn=attention std=standard btwn=between feat=featuring incl=including excl=excluding "
    "conf=conference"
)
"""Abbreviations whose full stop never ends a sentence, because a word always follows."""
COUNTED = _either(
    "no=number nos=numbers Nr=Number p=page pp=pages P=page ext=extension c=circa ca=circa sec=section ch=chapter "
    "art=article app=appendix ed=edition fig=figure est=established par=paragraph para=paragraph op=opus St=Street "
    "bldg=building fl=floor flt=flight dep=departs arr=arrives mag=magnitude Ps=Psalm Pss=Psalms pop=population "
    "refs=references blk=block vis=visibility col=column l=line n=note hrs=hours elev=elevation alt=altitude ht=height "
    "tbl=table ex=exercise chap=chapter lat=latitude lon=longitude Long=Longitude qty=quantity pg=page rte=route "
    "ver=version rev=revision ll=lines b=born d=died pt=part bk=book v=volume ft=feet sc=scene r=ruled plat=platform "
    "att=attendance exp=expires req=requires rwy=runway cl=clause mvt=movement"
)
"""Abbreviations before a number or a letter; elsewhere their letters are other words."""
BEFORE_SMALL = _either(
    "bus=business util=utilities utils=utilities misc=miscellaneous reg=regular qty=quantity orig=original "
    "req=required ser=serial exp=experience temp=temperature med=medium pop=population rev=revenue elec=electric "
    "cont=continued refrig=refrigerated amt=amount mgmt=management perm=permanent chem=chemical exc=except "
    "mag=magnitude prob=probably poss=possibly elev=elevation div=dividend pub=published ret=retired param=parameter "
    "mktg=marketing equiv=equivalents bapt=baptized rep=repeat exec=executive dir=director trans=translated sq=square "
    "wt=weight ht=height precip=precipitation hum=humidity"
)
"""Abbreviations whose full stop a small letter or a comma follows."""
MADE = _either(  # Before "by".
    "prod=produced dir=directed trans=translated tr=translated ed=edited pub=published illus=illustrated "
    "ill=illustrated perf=performed arr=arranged comp=composed narr=narrated"
)
SCRIPTURE = _table(
    "Gen=Genesis Ex=Exodus Exod=Exodus Lev=Leviticus Num=Numbers Deut=Deuteronomy Josh=Joshua Judg=Judges Sam=Samuel "
    "Kgs=Kings Chr=Chronicles Chron=Chronicles Neh=Nehemiah Ps=Psalm Pss=Psalms Prov=Proverbs Eccl=Ecclesiastes "
    "Isa=Isaiah Jer=Jeremiah Ezek=Ezekiel Dan=Daniel Hos=Hosea Mic=Micah Hab=Habakkuk Zech=Zechariah Mal=Malachi "
    "Matt=Matthew Rom=Romans Cor=Corinthians Gal=Galatians Eph=Ephesians Phil=Philippians Col=Colossians "
    "Thess=Thessalonians Tim=Timothy Heb=Hebrews Jas=James Pet=Peter Rev=Revelation John=John Luke=Luke Mark=Mark "
    "Acts=Acts Job=Job Jn=John Lk=Luke Sura=Sura Surah=Surah Quran=Quran"
)
_STREETS = _table(
    "Ave=Avenue Blvd=Boulevard Rd=Road Ln=Lane Ct=Court Pl=Place Pkwy=Parkway Sq=Square Ter=Terrace Cir=Circle"
)
STREETS = _STREETS | _table("St=Street Dr=Drive Hwy=Highway")
ENDINGS = (
    _table(
        "Jr=Junior Sr=Senior etc=etc ea=each Inc=Incorporated Ltd=Limited Corp=Corporation Co=Company Bros=Brothers "
        "Bldg=Building Dept=Department dept=department wt=weight anniv=anniversary bldg=building Aves=Avenues "
        "bldgs=buildings reb=rebounds ast=assists lang=language hist=history avail=available srs=seniors qtr=quarter "
        "hols=holidays ht=height precip=precipitation coll=college Coll=College Inst=Institute Acad=Academy "
        "Mtn=Mountain Mtns=Mountains Jct=Junction Stn=Station Twp=Township Prov=Province Treas=Treasurer Hosp=Hospital "
        "Dist=District Ctr=Center Mfg=Manufacturing Intl=International Natl=National Div=Division est=established "
        "co=company Univ=University Assn=Association Govt=Government govt=government ed=edition depts=departments "
        "orgs=organizations Esq=Esquire Mktg=Marketing Exec=Executive Eng=Engineering sess=session sts=stitches"
    )
    | _STREETS
    | WEEKDAYS
    | {short: name for short, name in MONTH_STARTS.items() if short != "May"}
)
"""Abbreviations that may end a sentence: they do if a capital follows the full stop."""
DIRECTIONS = _table("N=North S=South E=East W=West L=Left R=Right NE=Northeast NW=Northwest SE=Southeast SW=Southwest")
ROADS = r"\b(?:Hwy\.?|Rte\.?|Route|Highway|Interstate|[Rr]unways?|[Rr]wy\.?) "
_STATES = """
    AL Ala Alabama| AK Alaska| AZ Ariz Arizona| AR Ark Arkansas| CA Calif California| CO Colo Colorado|
    CT Conn Connecticut| DE Del Delaware| FL Fla Florida| GA Ga Georgia| HI Hawaii| ID Idaho| IL Ill Illinois|
    IN Ind Indiana| IA Iowa| KS Kan Kansas| KY Ky Kentucky| LA La Louisiana| ME Maine| MD Md Maryland|
    MA Mass Massachusetts| MI Mich Michigan| MN Minn Minnesota| MS Miss Mississippi| MO Mo Missouri| MT Mont Montana|
    NE Neb Nebraska| NV Nev Nevada| NH New_Hampshire| NJ New_Jersey| NM New_Mexico| NY New_York| NC North_Carolina|
    ND North_Dakota| OH Ohio| OK Okla Oklahoma| OR Ore Oregon| PA Pa Pennsylvania| RI Rhode_Island| SC South_Carolina|
    SD South_Dakota| TN Tenn Tennessee| TX Tex Texas| UT Utah| VT Vt Vermont| VA Va Virginia| WA Wash Washington|
    WV West_Virginia| WI Wis Wisconsin| WY Wyo Wyoming| DC D.C.""".split("|")
"""Code, what stands with a full stop after a town, name."""
STATES = {code: name.replace("_", " ") for code, *_, name in map(str.split, _STATES)}
STATES_IN_SHORT = {short: name.replace("_", " ") for _, *shorts, name in map(str.split, _STATES) for short in shorts}
PROVINCES = _table(
    "AB=Alberta BC=British_Columbia MB=Manitoba NB=New_Brunswick NL=Newfoundland NS=Nova_Scotia ON=Ontario "
    "PE=Prince_Edward_Island QC=Quebec SK=Saskatchewan"
)
SLANG = _table(
    "btw=by_the_way idk=I_don't_know imo=in_my_opinion imho=in_my_humble_opinion tbh=to_be_honest brb=be_right_back "
    "pls=please plz=please thx=thanks fyi=F.Y.I. asap=A.S.A.P. diy=D.I.Y. faq=F.A.Q. afaik=as_far_as_I_know "
    "w/o=without w/in=within aka=also_known_as a.k.a.=also_known_as n/a=N.A. c/o=care_of b/c=because and/or=and_or "
    "vs=versus ctrl=control incl=including rofl=R.O.F.L. hx=history dx=diagnosis hwy=highway 2morrow=tomorrow "
    "2day=today ur=your omg=O.M.G. mpg=miles_per_gallon hrs=hours mins=minutes yrs=years approx=approximately "
    "wwii=World_War_Two wwi=World_War_One btwn=between cont'd=continued rec'd=received req'd=required "
    "yoy=year_over_year YoY=year_over_year QoQ=quarter_over_quarter tmrw=tomorrow 2nite=tonight gr8=great "
    "ttyl=talk_to_you_later nvm=never_mind smh=shaking_my_head mtg=meeting pkg=package q/q=quarter_over_quarter "
    "y/y=year_over_year y-o-y=year_over_year q-o-q=quarter_over_quarter m-o-m=month_over_month w/r/t=with_respect_to "
    "wrt=with_respect_to m/m=month_over_month l8r=later b4=before txt=text msg=message ngl=not_gonna_lie rn=right_now "
    "mk=Mark add'l=additional int'l=international gov't=government sec'y=secretary ass'n=association gen'l=general "
    "dep't=department nat'l=national ext=extension vol=volume qty=quantity b/w=between B/W=black_and_white ppl=people "
    "w8=wait l8=late hbu=how_about_you omw=on_my_way lmk=let_me_know ikr=I_know,_right irl=in_real_life rly=really "
    "abt=about ofc=of_course hmu=hit_me_up iirc=if_I_recall_correctly icymi=in_case_you_missed_it sry=sorry "
    "4ever=forever w/e=whatever d/t=due_to s/p=status_post r/o=rule_out f/u=follow_up h/o=history_of tbsp=tablespoon "
    "tsp=teaspoon attn=attention cc=C.C. fwd=forward bc=because"
)
"""Short forms without a full stop."""
GREEK = _table(
    "α=alpha β=beta γ=gamma δ=delta ε=epsilon ζ=zeta η=eta θ=theta ι=iota κ=kappa λ=lambda μ=mu ν=nu ξ=xi ο=omicron "
    "π=pi ρ=rho µ=mu ς=sigma σ=sigma τ=tau υ=upsilon φ=phi χ=chi ψ=psi ω=omega"
)
LATEX = {name: letter for letter, name in GREEK.items()} | _table(
    "in=∈ notin=∉ le=≤ leq=≤ ge=≥ geq=≥ ne=≠ neq=≠ times=× cdot=· div=÷ pm=± approx=≈ to=→ rightarrow=→ mapsto=↦ "
    "infty=∞ sum=∑ prod=∏ int=∫ sqrt=√ partial=∂ cup=∪ cap=∩ subset=⊂ subseteq=⊆ forall=∀ exists=∃ equiv=≡ propto=∝ "
    "implies=⇒ ldots=… dots=… circ=° Delta=Δ Omega=Ω left= right= mathbb= mathrm= mathbf= mathcal= text= quad= "
    "displaystyle= operatorname= hat= bar= vec="
)
"""Signs of formulas, and commands without sound."""
ELEMENTS = (
    "H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Kr Rb Sr Zr Mo Ag Cd "
    "Sn Sb Te I Xe Cs Ba Pt Au Hg Pb Bi U"
).split()
SIGNS = {
    "№": "number", "©": "copyright", "¶": "paragraph",
    "§": "section", "×": "times", "÷": "divided by", "±": "plus or minus",
    "≈": "about", "≤": "is less than or equal to", "≥": "is greater than or equal to", "≠": "is not equal to",
    "∞": "infinity", "√": "the square root of", "→": "to", "☉": "sun", "⇒": "implies", "¢": "cents", "∑": "the sum of",
    "∫": "the integral of", "∈": "in", "∂": "partial", "∩": "intersection", "∪": "union", "%": "percent",
    "∉": "not in", "⊂": "is a subset of", "⊆": "is a subset of", "∀": "for all", "∃": "there exists", "∝":
    "is proportional to", "≡": "is equivalent to", "∏": "the product of", "¬": "not", "∧": "and", "∨": "or",
    "↦": "maps to", "↑": "up", "↓": "down", "‰": "per mille", "&": "and", "@": "at", "+": "plus", "=": "equals",
} | {sign: many for sign, (_, many, *_) in CURRENCIES.items() if len(sign) == 1 and not sign.isalnum()}  # fmt: skip
"""Symbols with a name wherever they stand."""
STARTERS = frozenset(
    "A About After All Also Although An And Any Are As Ask At Be Because Before Bring But Buy By Call Can Check Click "
    "Come Could Did Do Does Don't During Each Even Every Everyone For From Get Give Go Had Has Have He Her Here His "
    "How However I If In Is It Its Just Keep Let Look Make Maybe Most My Never New No Not Nothing Now "
    "Of On Once One Only Or Our People Perhaps Please Press Put Read Send She Should Since So Some Soon Still Stop "
    "Such Take Tell That The Their Then There These They This Those To Today Tomorrow Try Turn Two Until Use "
    "Wait Was We Well Were What When Where Which While Who Why Will With Would Yes Yet You Your".split()
)
"""Words that begin a sentence after an abbreviation ("in the U.S. They"); other capitals are names ("U.S. Senate")."""


def begins_sentence(word: str) -> bool:
    return not STARTERS.isdisjoint((word, re.split("['’]", word)[0]))
