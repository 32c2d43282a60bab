"""What English writes in short: units, currencies, abbreviations, marks and letters, with their words."""

from __future__ import annotations

MONTHS = ("January February March April May June July August September October November December").split()
WEEKDAYS = {
    short: name
    for name, shorts in {
        "Monday": "Mon",
        "Tuesday": "Tue Tues",
        "Wednesday": "Wed",
        "Thursday": "Thu Thur Thurs",
        "Friday": "Fri",
        "Saturday": "Sat",
        "Sunday": "Sun",
    }.items()
    for short in shorts.split()
}
MONTH_STARTS = {name[:3]: name for name in MONTHS} | {"Sept": "September"}

CURRENCIES = {
    "$": ("dollar", "dollars", "cent", "cents"),
    "£": ("pound", "pounds", "penny", "pence"),
    "€": ("euro", "euros", "cent", "cents"),
    "¥": ("yen", "yen", "sen", "sen"),
    "₹": ("rupee", "rupees", "paisa", "paise"),
    "₩": ("won", "won", "jeon", "jeon"),
    "₽": ("ruble", "rubles", "kopeck", "kopecks"),
    "₺": ("lira", "lira", "kurus", "kurus"),
    "₪": ("shekel", "shekels", "agora", "agorot"),
    "₿": ("bitcoin", "bitcoins", "satoshi", "satoshis"),
    "CHF": ("Swiss franc", "Swiss francs", "centime", "centimes"),
    "CNY": ("yuan", "yuan", "fen", "fen"),
    "SEK": ("Swedish krona", "Swedish kronor", "ore", "ore"),
    "NOK": ("Norwegian krone", "Norwegian kroner", "ore", "ore"),
    "DKK": ("Danish krone", "Danish kroner", "ore", "ore"),
    "PLN": ("zloty", "zlotys", "grosz", "groszy"),
    "R$": ("real", "reais", "centavo", "centavos"),
    "MXN": ("peso", "pesos", "centavo", "centavos"),
}
_DOLLARS = {"US": "U.S.", "A": "Australian", "C": "Canadian", "NZ": "New Zealand", "HK": "Hong Kong", "S": "Singapore"}
CURRENCIES |= {
    f"{sign}$": (f"{name} dollar", f"{name} dollars", "cent", "cents")
    for sign, name in (*_DOLLARS.items(), ("AU", "Australian"), ("CA", "Canadian"))
}
CURRENCIES |= {
    code: CURRENCIES[sign]
    for code, sign in {
        "USD": "US$", "EUR": "€", "GBP": "£", "JPY": "¥", "INR": "₹", "KRW": "₩", "RUB": "₽", "AUD": "A$",
        "CAD": "C$", "NZD": "NZ$", "HKD": "HK$", "SGD": "S$", "BRL": "R$", "RMB": "CNY", "ILS": "₪", "BTC": "₿",
    }.items()
}  # fmt: skip
MAGNITUDES = {
    "k": "thousand", "K": "thousand", "m": "million", "mn": "million", "M": "million", "bn": "billion",
    "B": "billion", "b": "billion", "T": "trillion", "tn": "trillion",
}  # fmt: skip

_SCALED = {"": "", "k": "kilo", "c": "centi", "m": "milli", "µ": "micro", "n": "nano", "M": "mega", "G": "giga"}
_BASES = {
    "m": ("meter", " k c m µ n"),
    "g": ("gram", " k m µ n"),
    "s": ("second", " m µ n"),
    "L": ("liter", " m µ c"),
    "Hz": ("hertz", " k M G"),
    "W": ("watt", " k m M G"),
    "V": ("volt", " k m"),
    "A": ("ampere", "m µ k"),
    "Wh": ("watt hour", " k M G"),
    "Ah": ("ampere hour", " m"),
    "J": ("joule", " k M"),
    "N": ("newton", " k m"),
    "Pa": ("pascal", " k M"),
    "B": ("byte", "k M G"),
    "bps": ("bit per second", " k M G"),
    "cal": ("calorie", " k"),
    "mol": ("mole", " m µ n"),
    "eV": ("electron volt", " k M G"),
    "Ω": ("ohm", " k M"),
    "F": ("farad", "µ n"),
    "bar": ("bar", " m"),
}
_SAME = ("hertz", "feet", "celsius")
UNITS = {
    prefix + sign: (_SCALED[prefix] + name, _SCALED[prefix] + (name if name in _SAME else _many))
    for sign, (name, prefixes) in _BASES.items()
    for prefix in prefixes.split(" ")
    for _many in [name.replace("bit ", "bits ") if " per " in name else f"{name}s"]
} | {
    sign: (one, many)
    for line in """
    kB KB: kilobyte kilobytes| TB: terabyte terabytes| GiB: gibibyte gibibytes| MiB: mebibyte mebibytes| dL: deciliter
    deciliters| l: liter liters| ml: milliliter milliliters| dl: deciliter deciliters| ft: foot feet| mi: mile miles|
    yd yds: yard yards| lb lbs: pound pounds| oz: ounce ounces| tbsp tbsps Tbsp: tablespoon tablespoons| tsp tsps:
    teaspoon teaspoons| gal gals: gallon gallons| qt: quart quarts| pt: pint pints| ha: hectare hectares| t: ton tons|
    dB: decibel decibels| px: pixel pixels| hp: horsepower horsepower| ly: light_year light_years| AU:
    astronomical_unit astronomical_units| mph: mile_per_hour miles_per_hour| kph: kilometer_per_hour
    kilometers_per_hour| kn kt kts: knot knots| mpg: mile_per_gallon miles_per_gallon| rpm RPM: revolution_per_minute
    revolutions_per_minute| bpm BPM: beat_per_minute beats_per_minute| wpm: word_per_minute words_per_minute| psi:
    pound_per_square_inch pounds_per_square_inch| fps: frame_per_second frames_per_second| ppm: part_per_million
    parts_per_million| ppb: part_per_billion parts_per_billion| bps: bit_per_second bits_per_second| bp bps.:
    basis_point basis_points| sec secs: second seconds| min mins: minute minutes| hr hrs h: hour hours| mo mos: month
    months| wk wks: week weeks| yr yrs: year years| K: kelvin kelvin| sqft: square_foot square_feet| mmHg:
    millimeter_of_mercury millimeters_of_mercury| dpi: dot_per_inch dots_per_inch| rad: radian radians| kN: kilonewton
    kilonewtons| pct: percent percent| pts: point points| °C: degree_celsius degrees_celsius| °F: degree_fahrenheit
    degrees_fahrenheit| °: degree degrees| x: time times| kWp: kilowatt_peak kilowatts_peak| sq_ft: square_foot
    square_feet| cc: cubic_centimeter cubic_centimeters| in: inch inches""".split("|")
    for signs, names in [line.split(":")]
    for one, many in [[word.replace("_", " ") for word in names.split()]]
    for sign in (word.replace("_", " ") for word in signs.split())
}

TITLES = dict(
    pair.split("=")
    for pair in (
        "Mr=Mister Mrs=Mrs Ms=Miz Messrs=Messrs Prof=Professor Rev=Reverend Gen=General Col=Colonel Capt=Captain "
        "Cmdr=Commander Lt=Lieutenant Maj=Major Sgt=Sergeant Sen=Senator Gov=Governor Hon=Honorable Mt=Mount "
        "Ft=Fort Adm=Admiral Atty=Attorney Pres=President Rep=Representative Supt=Superintendent Cpl=Corporal "
        "Fig=Figure fig=figure Figs=Figures Eq=Equation eq=equation Ch=Chapter Vol=Volume vol=volume "
        "approx=approximately vs=versus cf=compare Apt=Apartment apt=apartment Hwy=Highway Ste=Suite Rm=Room "
        "rm=room avg=average Ref=Reference max=maximum Max=Maximum min=minimum Min=Minimum"
    ).split()
)
"""Abbreviations whose full stop never ends a sentence, because a word always follows."""
COUNTED = dict(
    pair.split("=")
    for pair in (
        "No=Number no=number Nos=Numbers nos=numbers Nr=Number p=page pp=pages P=page ext=extension Ext=Extension "
        "c=circa ca=circa Sec=Section sec=section ch=chapter Art=Article art=article tel=telephone Tel=Telephone "
        "ed=edition est=established Est=Established par=paragraph para=paragraph Op=Opus op=opus St=Street "
        "bldg=building Fl=Floor fl=floor Rte=Route Ver=Version ver=version ll=lines "
        "b=born d=died pt=part bk=book Bk=Book "
        "v=volume ft=feet"
    ).split()
)
"""Abbreviations before a number; elsewhere their letters are other words."""
ENDINGS = {
    short: name.replace("_", " ")
    for short, name in (
        pair.split("=")
        for pair in (
            "Jr=Junior Sr=Senior etc=etc Inc=Incorporated Ltd=Limited Corp=Corporation Co=Company Bros=Brothers "
            "Ave=Avenue Blvd=Boulevard Rd=Road Ln=Lane Pkwy=Parkway Bldg=Building Dept=Department dept=department "
            "est=established Univ=University Assn=Association Govt=Government ed=edition "
        ).split()
    )
} | WEEKDAYS
ENDINGS |= {short: name for short, name in MONTH_STARTS.items() if short != "May"}
"""Abbreviations that may end a sentence: they do if a capital follows the full stop."""
STREETS = {
    "St": "Street", "Ave": "Avenue", "Blvd": "Boulevard", "Rd": "Road", "Dr": "Drive", "Ln": "Lane", "Ct": "Court",
    "Pl": "Place", "Pkwy": "Parkway", "Hwy": "Highway", "Sq": "Square", "Ter": "Terrace", "Cir": "Circle",
}  # fmt: skip
DIRECTIONS = {"N": "North", "S": "South", "E": "East", "W": "West"}
DIRECTIONS |= {"NE": "Northeast", "NW": "Northwest", "SE": "Southeast", "SW": "Southwest"}
STATES = {
    one[:2]: one[3:].replace("_", " ")
    for one in (
        "AL=Alabama AK=Alaska AZ=Arizona AR=Arkansas CA=California CO=Colorado CT=Connecticut DE=Delaware FL=Florida "
        "GA=Georgia HI=Hawaii ID=Idaho IL=Illinois IN=Indiana IA=Iowa KS=Kansas KY=Kentucky LA=Louisiana ME=Maine "
        "MD=Maryland MA=Massachusetts MI=Michigan MN=Minnesota MS=Mississippi MO=Missouri MT=Montana NE=Nebraska "
        "NV=Nevada NH=New_Hampshire NJ=New_Jersey NM=New_Mexico NY=New_York NC=North_Carolina ND=North_Dakota OH=Ohio "
        "OK=Oklahoma OR=Oregon PA=Pennsylvania RI=Rhode_Island SC=South_Carolina SD=South_Dakota TN=Tennessee "
        "TX=Texas UT=Utah VT=Vermont VA=Virginia WA=Washington WV=West_Virginia WI=Wisconsin WY=Wyoming DC=D.C."
    ).split()
}
SLANG = {
    "btw": "by the way", "idk": "I don't know", "imo": "in my opinion", "imho": "in my humble opinion",
    "tbh": "to be honest", "brb": "be right back", "pls": "please", "plz": "please", "thx": "thanks", "fyi": "F.Y.I.",
    "asap": "A.S.A.P.", "diy": "D.I.Y.", "faq": "F.A.Q.", "afaik": "as far as I know", "w/o": "without",
    "aka": "also known as", "a.k.a.": "also known as", "n/a": "N.A.", "c/o": "care of", "b/c": "because",
    "and/or": "and or", "vs": "versus", "ctrl": "control", "incl": "including", "rofl": "R.O.F.L.", "ok": "okay",
    "mr": "Mister", "ms": "Miz", "cc": "C.C.", "re": "re", "ps": "P.S.", "pm": "P.M.",
    "hrs": "hours", "mins": "minutes", "yrs": "years", "approx": "approximately", "wwii": "World War Two",
    "wwi": "World War One",
}  # fmt: skip
"""Short forms without a full stop."""
REGNAL_NAMES = frozenset(
    "Alexander Benedict Catherine Charles Edward Elizabeth Francis Frederick George Gregory Henry James John Leo Louis "
    "Mary Napoleon Nicholas Paul Peter Philip Pius Ramesses Richard Robert William".split()
)
"""After these names a Roman numeral is an ordinal (Henry the eighth), otherwise a cardinal (Chapter four)."""
DIVISIONS = frozenset(
    "Chapter Part Act Scene Section Volume Book Phase Article Level Stage Class Grade Episode Round Type Mark Canto "
    "Psalm Appendix Figure Table Title Bowl War Unit Vol Season Step Apollo Category".split()
)
"""Words before a Roman numeral that may be one letter, or of the letters L to M."""
GREEK = dict(
    zip(
        "αβγδεζηθικλμνξοπρςστυφχψω",
        "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma sigma tau "
        "upsilon phi chi psi omega".split(),
        strict=True,
    )
)
SIGNS = {
    "№": "number", "©": "copyright", "§": "section", "×": "times", "÷": "divided by", "±": "plus or minus",
    "≈": "about", "≤": "is less than or equal to", "≥": "is greater than or equal to", "≠": "is not equal to",
    "∞": "infinity", "√": "the square root of", "→": "to", "⇒": "implies", "¢": "cents", "∑": "the sum of",
    "∫": "the integral of", "∈": "in", "∂": "partial", "%": "percent", "‰": "per mille",
    "°": "degrees", "&": "and", "@": "at", "+": "plus", "=": "equals",
} | {sign: many for sign, (_, many, *_) in CURRENCIES.items() if len(sign) == 1 and not sign.isalnum()}  # fmt: skip
"""Symbols with a name wherever they stand."""
