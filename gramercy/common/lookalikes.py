"""Names that readers cannot tell apart, although they differ.

The rule follows Unicode's technical standard 39 for the scripts whose letters are most often mixed:
Latin, Greek, Cyrillic and Armenian.
"""

from __future__ import annotations

import re
import unicodedata

# Letters of other scripts, and the Latin letters that they look like.
_LOOKALIKES = str.maketrans(
    "\u0131\u0184\u0251\u0261\u028f\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03b1\u03b9\u03ba\u03bd\u03bf\u03c1"
    "\u03c4\u03c5\u03c7\u03f2\u03f9\u0405\u0406\u0408\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u042c"
    "\u0430\u0435\u043e\u0440\u0441\u0442\u0443\u0445\u0455\u0456\u0458\u0475\u04ae\u04af\u04bb\u04bd\u0501\u051b\u051d\u0570\u0578\u057d\u0581\u0585",
    "ibagYABEZHIKMNOPTYXaikvoptuxcCSIJABEKMHOPCTYXbaeopctyxsijvYyhedqwhnugo",
)
_DASHES = str.maketrans(
    dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", "-")
)
_FORMS = {"<wide>", "<narrow>", "<font>", "<noBreak>"}  # other forms of the same character
_JOINERS = "\u200c\u200d"  # words of some scripts need them
_IGNORABLE = re.compile(
    "[\xad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_HIDDEN = {"Cf", "Zl", "Zp"}  # format characters, such as those that reverse the direction; breaks


def has_hidden(name: str) -> bool:
    """Whether a name has invisible characters, or ones that break or reverse its line.

    Joiners and the variants of the character before are allowed.
    """
    return any(unicodedata.category(x) in _HIDDEN and x not in _JOINERS for x in name)


def skeleton(name: str) -> str:
    """A text that is equal for two names that look the same.

    Examples
    --------
    >>> skeleton("c\u043est") == skeleton("cost"), skeleton("Cost") == skeleton("cost")
    (True, False)
    """
    visible = _IGNORABLE.sub("", name).translate(_DASHES)
    usual = "".join(map(_usual_form, unicodedata.normalize("NFD", visible)))
    return " ".join(unicodedata.normalize("NFC", usual.translate(_LOOKALIKES)).split())


def _usual_form(character: str) -> str:
    form = unicodedata.decomposition(character).partition(" ")[0]
    return unicodedata.normalize("NFKC", character) if form in _FORMS else character
