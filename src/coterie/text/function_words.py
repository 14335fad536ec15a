"""Function words: words that occur in texts about every topic and therefore do not distinguish clusters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import cache


def _word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Content words, which texts can be about, in scikit-learn's list of English stop words.
ENGLISH_CONTENT_WORDS = _word_set("amount bill call cry detail fire interest mill system")

# Function words that are missing in that list: forms of "do", and contractions without their apostrophe.
MORE_ENGLISH = _word_set(
    """
    did does doing done just im ive dont doesnt didnt cant couldnt wont wouldnt shouldnt isnt arent wasnt werent hasnt
    havent hadnt youre theyre thats theres
    """
)

# English content words that hardly show what a text is about: they count half, and end no phrase.
LIGHT_ENGLISH = _word_set(
    """
    able actually ago ask asked came come coming day days different getting gets going gone good got know let lets
    like look looking looks lot make makes making maybe need needed needs new ok okay old really right said say
    saying says sure tell thing things think time today told tried tries try trying use used uses using want wanted
    wants way went work working works
    """
)

# Function words of other languages that are also English words or abbreviations.
ALSO_ENGLISH = _word_set(
    """
    die war was will man hat so am an in da mal er es den dem des um ob nun on or son car pour sans sur me ton as est
    ni ou pas plus encore entre comment elle no con era he has ha sin hay lo eso mi si nada come per sei fare se ed
    ma mai mie do um sim tem pose nos mas of had want we over is met door ten al bent ben hun kan tot op zo mag wel en
    hoe nog dan heel hem haar also gar dit dos tan solo dice due ora prima secondo ab volta lors poco tre
    """
)

# English contractions (it's, don't): function words that the lists do not contain.
CONTRACTION = re.compile(r"(n['’]t|['’](s|re|ve|ll|d|m))$")

# An article or pronoun that lost its vowel before the next word: l'été, dell'ordine.
ELISION = re.compile(
    r"^(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|quoiqu|un|gl|dell|nell|all|dall|sull|quell|quest|com|dov|cos)['’](?=\w\w)"
)
ELIDING_LANGUAGES = frozenset({"french", "italian"})

OTHER_LANGUAGES: Mapping[str, frozenset[str]] = {
    "german": _word_set(
        """
        der die das den dem des ein eine einen einem einer eines und oder aber auch nicht kein keine keinen keinem
        ich du er sie es wir ihr mich mir dich dir ihn ihm uns euch ihnen sich mein meine meinen meinem meiner dein
        deine sein seine seinen seinem seiner ihre ihren ihrem ihrer unser unsere ist sind bin bist war waren wird
        werden wurde wurden worden habe haben hat hatte hatten hab kann können konnte muss müssen soll sollte will
        möchte darf mit von vom zu zum zur für auf aus bei beim bis durch gegen in im ins nach ohne über um unter vor
        an am als wie wenn dass daß weil denn ob so noch nur schon sehr mehr hier da dann wo was wer warum man dieser
        diese dieses diesen diesem mal immer wieder nun ja nein doch alle alles etwas nichts seit ab laut bitte zwei
        drei wegen während zwischen sondern jedoch bereits jetzt also damit dazu davon dafür dabei würde hätte wäre jede
        jeder jedes viele viel wenig mehrere
        """
    ),
    "french": _word_set(
        """
        le la les un une des du de au aux et ou mais donc ni car que qui quoi dont où ce cet cette ces cela ça je tu il
        elle on nous vous ils elles me te se lui leur leurs mon ma mes ton ta tes son sa ses notre nos votre vos est
        sont suis es sommes êtes était étaient été être ai as avons avez ont avait avoir fait faire peut peux pouvez
        dois doit pas ne plus jamais rien sans avec pour par sur sous dans en entre vers chez depuis pendant comme si
        quand comment pourquoi combien quel quelle quels quelles très trop bien aussi encore déjà toujours tout tous
        toute toutes même moi toi eux ici là alors puis deux trois fois selon afin après avant lors dès parce lorsque
        autre autres chaque plusieurs peu beaucoup maintenant dit
        """
    ),
    "spanish": _word_set(
        """
        el la los las un una unos unas lo al del de y e o u pero sino ni que quien quién qué cual cuál cuando cuándo
        como cómo donde dónde porque por para con sin sobre entre hasta desde hacia en a yo tú él ella nosotros ellos
        ellas usted ustedes me te se le les nos mi mis tu tus su sus nuestro nuestra este esta esto estos estas ese esa
        eso esos esas es son soy eres era eran ser fue está están estoy estaba estar hay he ha han has había haber
        tengo tiene tienen tener puedo puede pueden hacer hace no sí si muy más menos ya también todavía aún siempre
        nunca todo toda todos todas algo nada otro otra aquí así dos tres vez veces dice dicen según durante mientras
        aunque pues cada mismo misma tan tanto mucho mucha muchos muchas poco sido ahora después antes luego solo sólo
        """
    ),
    "italian": _word_set(
        """
        il lo la i gli le un uno una di del dello della dei degli delle a al allo alla ai agli alle da dal dallo dalla
        dai dalle in nel nello nella nei nelle con su sul sullo sulla sui sulle per tra fra e ed o ma se che chi cui non
        io tu lui lei noi voi loro mi ti ci vi si ne mio mia miei mie tuo tua suo sua suoi nostro nostra vostro vostra
        questo questa questi queste quello quella quelli quelle è sono sei siamo siete era erano essere stato stata ho
        hai ha abbiamo avete hanno aveva avere fare posso può possono devo deve come quando dove perché quanto quale
        cosa anche ancora già sempre mai più meno molto poco tutto tutta tutti tutte due tre volta volte secondo dice
        dopo prima durante mentre però quindi ogni stesso stessa altro altra ora adesso
        """
    ),
    "portuguese": _word_set(
        """
        o a os as um uma uns umas do da dos das de no na nos nas em ao à aos às pelo pela pelos pelas por para com sem
        sobre entre até desde e ou mas nem que quem qual quais quando como onde porque se não sim eu tu ele ela nós
        eles elas você vocês me te lhe meu minha meus minhas teu tua seu sua seus suas nosso nossa este esta isto esse
        essa isso aquele aquela aquilo é são sou era eram ser foi foram está estão estou estava estar há tem têm tenho
        tinha ter pode posso podem fazer faz muito muita mais menos já também ainda sempre nunca tudo todo toda todos
        todas outro outra aqui assim num numa dois duas três vez vezes diz depois antes durante enquanto porém cada
        mesmo mesma agora segundo
        """
    ),
    "dutch": _word_set(
        """
        de het een en of maar want dus dat die dit deze wat wie waar wanneer waarom hoe welke ik jij je u hij zij ze wij
        we jullie mij me jou hem haar ons hun zich mijn jouw uw zijn onze is ben bent was waren wordt worden werd
        werden heb hebt heeft hebben had hadden kan kunnen kunt kon moet moeten mag wil willen zal zullen zou niet geen
        wel ook nog al er hier daar dan toen nu altijd nooit met van voor door over onder tegen zonder tot bij naar op
        aan in uit om te tussen na als omdat zo zeer meer veel alle alles iets niets heel weer twee drie keer sinds
        volgens tijdens terwijl echter elke zelf nadat voordat alleen
        """
    ),
}


@cache
def english_function_words() -> frozenset[str]:
    """Return the English function words."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return (frozenset(ENGLISH_STOP_WORDS) | MORE_ENGLISH) - ENGLISH_CONTENT_WORDS


@cache
def markers() -> Mapping[str, frozenset[str]]:
    """Return the function words that identify each language: those of no other language in the lists.

    Words that are also English are left out as well: "die", "man" and "war" do not make a text German.
    """
    lists = Counter(word for words in OTHER_LANGUAGES.values() for word in words)
    english = english_function_words() | ALSO_ENGLISH
    return {
        language: frozenset(word for word in words if lists[word] == 1 and word not in english)
        for language, words in OTHER_LANGUAGES.items()
    }


def is_english_function_word(word: str) -> bool:
    """Return whether ``word`` (in lower case) is a function word or a contraction of English."""
    return word in english_function_words() or CONTRACTION.search(word) is not None
