"""Languages, and the default tokenizer and stemmer of each.

Any other tokenizer or stemmer can be named in the spec of a metric.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from rejoinder.errors import UsageError


@dataclass(frozen=True)
class Language:
    """A language with its default tokenizer and stemmer."""

    code: str
    """ISO 639-1 code."""
    name: str
    tokenizer: str
    """Spec of a tokenizer."""
    stemmer: str
    """Name of an algorithm of snowballstemmer, or ``none``."""

    @property
    def has_spaces(self) -> bool:
        """Whether words are separated by spaces."""
        return self.tokenizer in ("13a", "intl")


def language(code: str) -> Language:
    """Return the defaults for a language tag; region and script are ignored.

    >>> language("ja")
    Language(code='ja', name='Japanese', tokenizer='ja-mecab', stemmer='none')
    >>> language("pt-BR").stemmer
    'portuguese'
    """
    if not isinstance(code, str):
        raise UsageError(f"unknown language {code!r}: {_advice('')}")
    tag = _TAG.fullmatch(code.lower())
    if tag is None or tag["language"] not in _NAMES:
        raise UsageError(f"unknown language '{code}': {_advice(code.lower())}")
    plain = tag["language"]
    return Language(
        plain, _NAMES[plain], _TOKENIZERS.get(plain, "intl"), _STEMMERS.get(plain, "none")
    )


def codes() -> tuple[str, ...]:
    """Return all codes of ISO 639-1."""
    return tuple(_NAMES)


def is_language(code: str) -> bool:
    """Return whether a code is one of ISO 639-1."""
    return code in _NAMES


def _advice(word: str) -> str:
    """Suggest codes for names (japanese), countries (jp) and codes of other standards (jpn)."""
    meant = {**{name.lower(): code for code, name in _NAMES.items()}, **_COUNTRIES}
    near = [meant[word]] if word in meant else []
    near = near or [meant[name] for name in difflib.get_close_matches(word, meant, n=3)]
    if not near:
        return "expected a code of ISO 639-1, such as en, ja, zh or pt-BR"
    choices = [f"'{code}' ({_NAMES[code]})" for code in dict.fromkeys(near)]
    return f"did you mean {' or '.join(choices)}?"


_TAG = re.compile(r"(?P<language>[a-z]{2})(?:[-_][a-z0-9]{1,8})*")

_TOKENIZERS = {
    "en": "13a",
    "ja": "ja-mecab",
    "zh": "zh-jieba",
    **dict.fromkeys(("th", "lo", "km", "my"), "char"),
}

_STEMMERS = {
    "ar": "arabic",
    "ca": "catalan",
    "cs": "czech",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "porter",
    "eo": "esperanto",
    "es": "spanish",
    "et": "estonian",
    "eu": "basque",
    "fa": "persian",
    "fi": "finnish",
    "fr": "french",
    "ga": "irish",
    "hi": "hindi",
    "hu": "hungarian",
    "hy": "armenian",
    "id": "indonesian",
    "it": "italian",
    "lt": "lithuanian",
    "nb": "norwegian",
    "ne": "nepali",
    "nl": "dutch",
    "nn": "norwegian",
    "no": "norwegian",
    "pl": "polish",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sr": "serbian",
    "st": "sesotho",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
    "yi": "yiddish",
}

_COUNTRIES = {
    "cn": "zh",
    "cz": "cs",
    "dk": "da",
    "gb": "en",
    "gr": "el",
    "jp": "ja",
    "ua": "uk",
    "us": "en",
    "vn": "vi",
}

_ISO_639_1 = """\
aa Afar|ab Abkhazian|ae Avestan|af Afrikaans|ak Akan|am Amharic|an Aragonese|ar Arabic|\
as Assamese|av Avaric|ay Aymara|az Azerbaijani|ba Bashkir|be Belarusian|bg Bulgarian|bi Bislama|\
bm Bambara|bn Bengali|bo Tibetan|br Breton|bs Bosnian|ca Catalan|ce Chechen|ch Chamorro|\
co Corsican|cr Cree|cs Czech|cu Church Slavic|cv Chuvash|cy Welsh|da Danish|de German|dv Divehi|\
dz Dzongkha|ee Ewe|el Greek|en English|eo Esperanto|es Spanish|et Estonian|eu Basque|fa Persian|\
ff Fulah|fi Finnish|fj Fijian|fo Faroese|fr French|fy Western Frisian|ga Irish|gd Gaelic|\
gl Galician|gn Guarani|gu Gujarati|gv Manx|ha Hausa|he Hebrew|hi Hindi|ho Hiri Motu|hr Croatian|\
ht Haitian|hu Hungarian|hy Armenian|hz Herero|ia Interlingua|id Indonesian|ie Interlingue|\
ig Igbo|ii Sichuan Yi|ik Inupiaq|io Ido|is Icelandic|it Italian|iu Inuktitut|ja Japanese|\
jv Javanese|ka Georgian|kg Kongo|ki Kikuyu|kj Kuanyama|kk Kazakh|kl Greenlandic|km Khmer|\
kn Kannada|ko Korean|kr Kanuri|ks Kashmiri|ku Kurdish|kv Komi|kw Cornish|ky Kyrgyz|la Latin|\
lb Luxembourgish|lg Ganda|li Limburgish|ln Lingala|lo Lao|lt Lithuanian|lu Luba-Katanga|\
lv Latvian|mg Malagasy|mh Marshallese|mi Maori|mk Macedonian|ml Malayalam|mn Mongolian|\
mr Marathi|ms Malay|mt Maltese|my Burmese|na Nauru|nb Norwegian Bokmål|nd North Ndebele|\
ne Nepali|ng Ndonga|nl Dutch|nn Norwegian Nynorsk|no Norwegian|nr South Ndebele|nv Navajo|\
ny Chichewa|oc Occitan|oj Ojibwa|om Oromo|or Odia|os Ossetian|pa Punjabi|pi Pali|pl Polish|\
ps Pashto|pt Portuguese|qu Quechua|rm Romansh|rn Rundi|ro Romanian|ru Russian|rw Kinyarwanda|\
sa Sanskrit|sc Sardinian|sd Sindhi|se Northern Sami|sg Sango|si Sinhala|sk Slovak|sl Slovenian|\
sm Samoan|sn Shona|so Somali|sq Albanian|sr Serbian|ss Swati|st Sesotho|su Sundanese|sv Swedish|\
sw Swahili|ta Tamil|te Telugu|tg Tajik|th Thai|ti Tigrinya|tk Turkmen|tl Tagalog|tn Tswana|\
to Tongan|tr Turkish|ts Tsonga|tt Tatar|tw Twi|ty Tahitian|ug Uyghur|uk Ukrainian|ur Urdu|\
uz Uzbek|ve Venda|vi Vietnamese|vo Volapük|wa Walloon|wo Wolof|xh Xhosa|yi Yiddish|yo Yoruba|\
za Zhuang|zh Chinese|zu Zulu"""
_NAMES = {entry[:2]: entry[3:] for entry in _ISO_639_1.split("|")}
