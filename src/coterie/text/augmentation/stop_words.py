"""English words that carry grammar rather than meaning; synonym operations spare them."""

from __future__ import annotations

_WORDS = """
a an the this that these those such same own
i me my mine myself we us our ours ourselves you your yours yourself yourselves
he him his himself she her hers herself it its itself they them their theirs themselves one ones
who whom whose which what when where why how whoever whatever whichever whenever wherever
am is are was were be been being isn't aren't wasn't weren't ain't
have has had having haven't hasn't hadn't do does did doing done don't doesn't didn't
can could will would shall should may might must ought cannot can't couldn't won't wouldn't shan't shouldn't
mayn't mightn't mustn't needn't oughtn't
i'm i've i'd i'll you're you've you'd you'll he's he'd he'll she's she'd she'll it's it'd it'll
we're we've we'd we'll they're they've they'd they'll that's that'd that'll there's there'll here's
who's who'd who'll what's what're what'll when's where's why's how's let's
and or but nor so yet if then else than because as while until till unless although though whereas whether
of at by for with about against between among into through during before after above below to from up down in out
on off over under onto upon within without toward towards across along around behind beside besides beyond near
per via except since despite
again further once here there also just only even still already always never ever often
all any both each every few more most much many some other another several either neither
no not none nothing nobody nowhere something somebody someone somewhere anything anybody anyone anywhere
everything everybody everyone everywhere
too very quite rather almost enough now
dont doesnt didnt isnt arent wasnt werent cant couldnt wont wouldnt shouldnt havent hasnt hadnt im ive
"""
STOP_WORDS = frozenset(_WORDS.split())
