"""What tales.py tells: names, animals, things, places, and the plots with their cases. See there for the notation.

A plot has `cases`, one of which is drawn (a list in it is drawn from in turn), `fixed` and `keep`, words that are
drawn once a tale, and `children`, the share of tales whose hero is a child and not an animal."""

GIRLS = """
    Mia Lily Anna Ella Rosa Nora Zoe Ruby Ivy Clara Emma Lucy Alma Tessa Wendy Maya Nina Sara Polly June Greta Ada
    Lena Molly Daisy Flora Lotte Susi Eva Jane Kate Amy Rita Vera Leila Noor Yuki Ines Marta Hanna Olga
""".split()
BOYS = """
    Tom Ben Max Leo Sam Finn Jack Oscar Hugo Noah Tim Otto Felix Emil Paul Jonas Milo Ned Theo Adam Luca Peter Karl
    Ravi Omar Ali Hans Will Henry Arlo Erik Ivan Jan Kofi Mark Nils Pedro Rafi Simon Toby
""".split()
BEAST_NAMES = """
    Pip Bruno Dot Fuzzy Nibbles Hazel Momo Tuck Bramble Pepper Biscuit Mossy Button Coco Whisker Clover Rusty Patch
    Bobo Tilly Snowy Bean Cinder Fern Hoppy Mumble Pom Quill Rolo Sunny Teasel Willow
""".split()
BEASTS = """
    bear fox rabbit mouse hedgehog squirrel kitten puppy badger beaver otter lamb pony piglet goat raccoon
""".split()
ELDERS = [("mother", True), ("father", False), ("grandmother", True), ("grandfather", False), ("aunt", True),
          ("uncle", False), ("mother", True), ("father", False)]

# ---------------------------------------------------------------- what all plots share
RULES = {
    "moods": "{little|little|little|little|young|small|cheerful little|curious|quiet|clever|brave|kind|merry}",
    "house": """{in a small house by the sea|in a yellow house at the end of the road|in a village between two
        hills|in a white house near the forest|on a farm|in a tall house in the middle of the town|in a house with a
        red door|next to an old mill|in a little house by the river}""",
    "den": """{in a warm den under an old oak|in the middle of the forest|at the edge of the forest|near a quiet
        pond|under the roots of a big tree|on a farm behind the hill|in a hollow by the river|in a green valley}""",
    "child_hobby": """{{loved|liked} to {paint|sing|climb trees|run in the wind|collect shells|look at the stars|ask
        questions|listen to stories|dance in the rain|count birds|bake cakes|build towers}|was always {hungry|busy|
        full of ideas|in a good mood|the first to get up}|{could whistle like a bird|knew every tree in the garden|
        had a new idea every day}}""",
    "beast_hobby": """{{loved|liked} to {sing|run in the wind|collect stones|look at the stars|sleep in the sun|roll
        in the grass|listen to stories|dance in the rain|count clouds|chase leaves|splash in puddles}|was always
        {hungry|busy|full of ideas|in a good mood|the first to wake up}|{could smell honey from far away|knew every
        path in the forest|had a new idea every day}}""",
    "opening": """{{Once upon a time|Once upon a time|Once|Long ago} there was a <mood> <kind> {named|called}
        <name>. {|<He> lived <home>.}|{Once upon a time|Once} {a <mood> <kind>|there was a <mood> <kind> who} lived
        <home>. {<His> name was <name>.|Everyone called <him> <name>.}|<name> was a <mood> <kind> who lived <home>.|
        <Home> lived a <mood> <kind> {named|called} <name>.|There was once a <mood> <kind> {named|called} <name>.|
        <introduced>|<unusual>|<unusual>} [<He> <hobby>.]""",
    "unusual": """{One {rainy|sunny|windy|cold|foggy|snowy} {day|morning|evening}{,|} <a mood> <kind> {named|called}
        <name> {looked out of the window|came out of the house|sat under a tree|sat by the fire|had nothing to do|
        felt very happy|was bored}.|The {old|little|big|red|last} {boat|house|tree|bridge|mill|garden|well|road|
        train} was {the favourite place of <name>, <a mood> <kind>.|empty and quiet. Only <name>, <a mood> <kind>,
        was there.}|This is the story of <name>, <a mood> <kind> who lived <home>.|Do you know <name>, the <mood>
        <kind> who lived <home>?}""",
    "child_introduced": "<Home> there lived <a kind>, and <his> name was <name>.",
    "beast_introduced": "<name> the <kind> lived <home>.", "begin": "{<opening>|<opening>|<opening>|}",
    "begin_part": "{<opening> ~|<opening> ~|<opening> ~|}", "skies": "{sunny|bright|warm|quiet|cool|beautiful}",
    "day": "one {<skies> |<skies> |}{morning|day|afternoon}",
    "sad": """{<name> was very sad.|<name> felt like crying.|A big tear rolled down <name>'s cheek.|<name> sat down
        and cried.|"Oh no!" {cried|said} <name>. {<He> was very sad.|Tears came to <his> eyes.}|"What {shall|can} I
        do now?" {said|cried|asked} <name>.}""",
    "why": """{"Why are you {so sad|crying}?"|"What is the matter?"|"What is wrong?"|"Can I help you?"|"Why do you
        look so sad?"}""",
    "glad": """{<name> was {so|very} {happy|glad}.|<name> {jumped|danced|laughed} for joy.|<name> smiled from ear to
        ear.|<name> {clapped|laughed} and {hopped up and down|danced in a circle}.|How happy <name> was!}""",
    "thanks": """{"Thank you{|, thank you|, dear <helper>|, <helper>}!" {said|cried|called} <name>.|<He> thanked the
        <helper> {again and again|with all <his> heart|many times}.}""",
    "good_night": """{That night <name> slept {very well|like a stone|with a smile|better than ever}.|{That evening|
        In the evening} <name> told <his> <elder> {everything|the whole story|all about it}. ["What a day!" said
        <his> <elder>.]|It had been a {good|wonderful|long and happy} day.|<name> never forgot that day.|And that is
        the end of the story.|And when <name> went to bed, <he> was still smiling.|Then the sun went down, and
        <name> went home {happy|tired and happy}.}""",
    "friends": """{From that day on|After that|From then on} <name> and <name2> {were {best|good} friends|played
        together every day|did everything together|were never lonely again}.""",
    "colour": "{red|blue|green|yellow|white|red|blue}", "item": "{<noun>|<noun>|<thing>}",
    "proposal": "{we can <idea>.|let us <idea>!|why do we not <idea>?}",
    "agreed": "{good idea!|yes, let us do that!|oh yes!}", "thing": "<adj> <noun>",
    "had": """{<name> had <a thing>.|<His> <elder> had given <him> <a thing>.|For <his> birthday <he> had got <a
        thing>.} {It was <his> favourite thing in the world.|<He> took it with <him> everywhere.|<He> loved it {very
        much|more than anything}.|} ~ <Day> <name> went to <place> {with <his> <item>|and took <his> <item> with
        <him>}.""",
    "from_helper": """{From that day on <name> and the <helper> were friends.|And so <name> found not only <his>
        <noun>, but a friend too.|After that they {met|played} <at> every day.|"You are a true friend," <he> said.}""",
}

# ---------------------------------------------------------------- something is lost
TREE_HELPERS = [
    {
        "helper": "squirrel", "can": "{I can climb any tree|Trees are my home|Climbing is easy for me}",
        "food": "a nut",
        "does": """{ran up the trunk|was up in a moment}, {hopped along the branch|jumped from branch to branch} and
            {pushed|shook} the <item> {down|free}""",
    },
    {
        "helper": "crow", "can": "{I have wings|I can fly up there|Nothing is too high for me}",
        "food": "a piece of bread",
        "does": """{flew|flapped} up to the {top|branch} and pulled the <item> {free|down} with its {strong |black |
            }beak""",
    },
    {
        "helper": "cat", "can": "{I am a good climber|Climbing is easy for me|I know this tree well}",
        "food": "a bowl of milk",
        "does": """climbed {slowly|quickly} from branch to branch and {pushed|pulled} the <item> down with its {soft
            |}paw""",
    },
    {
        "helper": "owl", "can": "{I have wings|I see everything from up there|I can fly}", "food": "a sweet berry",
        "does": "opened its {big|wide} wings, flew up without a sound and brought the <item> down",
    },
]
WATER_HELPERS = [
    {
        "helper": "duck", "can": "{I can dive|I swim all day|Water is my home}", "food": "a piece of bread",
        "does": "{dived down|put its head under the water} and came up with the <item> in its beak",
    },
    {
        "helper": "frog", "can": "{I can jump and swim|I live here|I am the best swimmer here}",
        "food": "a fat fly",
        "does": "jumped {in with a splash|from leaf to leaf} and pushed the <item> to the {shore|edge}",
    },
    {
        "helper": "otter", "can": "{I can dive|I love to dive|Nobody swims as fast as I do}",
        "food": "a little fish",
        "does": "{dived|slipped} into the water and {came back|was soon back} with the <item>",
    },
    {
        "helper": "turtle", "can": "{I am slow, but I swim well|I have time|I can swim}", "food": "a green leaf",
        "does": "swam {slowly|calmly} to the middle and brought the <item> back on its {hard |round |}back",
    },
    {
        "helper": "swan", "can": "{I am at home on the water|I can swim very well}", "food": "a piece of bread",
        "does": "{glided|swam} over the water and pushed the <item> to the {shore|edge} with its long neck",
    },
]
HOLE_HELPERS = [
    {
        "helper": "mouse", "can": "{I am small enough|I can go into any hole|Holes are my home}",
        "food": "a bit of cheese",
        "does": """{slipped|crept} into the hole and {rolled|pulled} the <item> out, {bit by bit|with all its
            strength}""",
    },
    {
        "helper": "mole", "can": "{I see well in the dark|I know all the holes here|I can dig}",
        "food": "a sweet carrot",
        "does": "{dug and dug|went under the ground}, and soon {the earth moved and |}the <item> {popped|came} out",
    },
    {
        "helper": "rabbit", "can": "{I can dig fast|This is my front door|I live down there}", "food": "a carrot",
        "does": "{hopped|jumped} into the hole and pushed the <item> out with its {nose|strong legs}",
    },
    {
        "helper": "badger", "can": "{I can dig|My paws are strong|No hole is too deep for me}",
        "food": "a ripe plum",
        "does": "{dug with its big paws|made the hole wider and wider} and pulled out the <item>",
    },
]
GRASS_HELPERS = [
    {
        "helper": "dog", "can": "{I have a good nose|My nose finds everything|I can smell it}",
        "food": "a big bone",
        "does": """{sniffed here and sniffed there|put its nose to the ground}, ran to a bush and barked. {Under it|
            There} lay the <item>""",
    },
    {
        "helper": "hedgehog", "can": "{I know every leaf here|I look under every leaf}", "food": "a sweet apple",
        "does": """{walked through the leaves|turned over every leaf} and {called|cried}, "Here it is!" {Under a
            leaf|There} lay the <item>""",
    },
    {
        "helper": "bee", "can": "{I see everything from above|I fly over every flower}",
        "food": "a beautiful flower",
        "does": """flew {in circles|high up} and came {down|to rest} on a {stone|flower}. {Next to it|There} lay the
            <item>""",
    },
    {
        "helper": "fox", "can": "{I have a good nose|I find everything|I know every corner here}",
        "food": "a ripe pear",
        "does": """{sniffed|looked} here and {sniffed|looked} there and ran to an old log. {Behind it|There} lay the
            <item>""",
    },
]
LOST_CASES = [
    {
        "noun": "{kite|hat|scarf|balloon|ribbon|paper bird}", "adj": "{<colour>|<colour>|new|beautiful}",
        "place": "{the park|the meadow|the garden|the big field}", "at": "in <place>", "case": TREE_HELPERS,
        "lost": """{Suddenly the wind blew|Then a strong wind came} and {carried|took} the <noun> up into a tall
            tree. {There it hung, high above <him>.|It was much too high.|It hung there and would not come down.}""",
        "try": """First <he> jumped as high as <he> could. {But the tree was too tall.|It was no use.} Then <he>
            shook the tree, but only {leaves|two leaves} came down.""",
        "where": "in the tree", "careful": "hold it tight",
    },
    {
        "noun": "{boat|ball|doll|bucket|cap}", "adj": "{<colour>|<colour>|little|new}",
        "place": "{the pond|the river|the lake|the brook}", "at": "by <place>", "case": WATER_HELPERS,
        "lost": """{Suddenly <he> slipped|Then <he> was careless for a moment}, and the <noun> fell into the water.
            {It went farther and farther away.|Soon it was far from the shore.|It was gone.}""",
        "try": """First <he> tried to reach it with {<his> arm|a stick}. {But it was too far away.|It was no use.}
            Then <he> threw a stone behind it, but that only made waves.""",
        "where": "in the water", "careful": "look after it",
    },
    {
        "noun": "{ball|marble|ring|coin|bell}", "adj": "{<colour>|little|shiny|golden}",
        "place": "{the hill|the field|the meadow|the old wall}", "at": "near <place>", "case": HOLE_HELPERS,
        "lost": """{Suddenly it fell|It fell out of <his> hand}, rolled {and rolled|away} and {dropped|disappeared}
            into a {deep|dark|deep, dark} hole.""",
        "try": """First <he> tried to reach it, but <his> arm was too short. Then <he> tried it with a stick, but
            the hole was {too deep|deeper than the stick}.""",
        "where": "in the hole", "careful": "put it into <his> pocket",
    },
    {
        "noun": "{key|ring|doll|whistle|button|book|spoon}", "adj": "{<colour>|little|old|favourite}",
        "place": "{the park|the meadow|the forest|the garden}", "at": "in <place>", "case": GRASS_HELPERS,
        "lost": """<He> {played|ran and jumped} until {noon|<he> was tired}. Then <he> {looked for|wanted to take}
            <his> <noun>, but it was {gone|not there}.""",
        "try": """{2%<He> looked {behind the trees|behind a tree}.|<He> looked under {the bench|a stone}.|<He>
            looked in the {high |wet |}grass.} {But the <noun> was nowhere.|The <noun> was not there.}""",
        "where": "lost", "careful": "never leave it behind",
    },
]
LOST = {
    "cases": LOST_CASES, "fixed": ["noun", "adj", "place"],
    "text": """{<opening> <had>|<opening> <had>|<opening> <had>|<Day> <name> went to <place> {with <his> <thing>|and
        took <his> <thing> with <him>}.} <lost> {<sad> <try>|<try> <sad>} ~ {Just then|After a while|At that moment}
        {<a helper> came by|<a helper> came along|<he> saw <a helper>}. <why> {asked|said} the <helper>. ["Oh,
        <helper>," {said| sighed|answered} <name>.] "{My <noun> is <where>|My <thing> is <where>}{!| and I cannot
        get it!}" {"Do not worry," said the <helper>. "<can>."|"Let me help you," said the <helper>. "<can>."|
        "<can>," said the <helper>{.| and smiled.}} The <helper> <does>{.|!} ~ <glad> <thanks> {<He> gave the
        <helper> <food>.|And the <helper> got <food>.|The next day <he> brought the <helper> <food>.|}
        {<From_helper>|<From_helper>|From then on <he> was careful to <careful>.} [<good_night>]""",
}

# ---------------------------------------------------------------- an animal needs help
BABY_CASES = [
    {
        "baby": "{kitten|puppy|bird|lamb}", "trouble": "It was {wet and cold|cold and shaking}.",
        "help": """<name> {put <his> scarf around it|wrapped it in <his> coat} and {carried|took} it home. There it
            {lay|slept} by the {warm |}stove. {Soon it was warm again.|In the morning it was dry and warm.}""",
        "say": "You are {so |}cold",
    },
    {
        "baby": "{kitten|puppy|duckling|mouse}", "trouble": "It was {very hungry|thin and hungry}.",
        "help": """<name> {gave it <his> bread|shared <his> bread with it}. It ate {every crumb|it all up} and
            {licked|nibbled} <his> fingers. {Then it was full and happy.|Soon it felt much better.}""",
        "say": "You must be hungry",
    },
    {
        "baby": "{dog|fox|cat|lion}", "trouble": "It had a {sharp |}thorn in its paw.",
        "help": """"{Hold still|This will hurt a bit}," said <name>, and very {carefully|gently} <he> pulled out the
            thorn. {The <baby> licked its paw.|Now the <baby> could walk again.}""",
        "say": "{That must hurt|Your poor paw}",
    },
    {
        "baby": "{duckling|lamb|bird|rabbit}", "trouble": "It had lost its mother.",
        "help": """They looked {by the pond|behind the hill|in the field} and {near the mill|under the trees}. At
            last they heard a voice. "{There you are|My child|My little one}!" {cried|called} the mother. {How happy
            they were!|The <baby> ran to her as fast as it could.}""",
        "say": "{Are you all alone|Are you lost}",
    },
    {
        "baby": "{rabbit|fox|lamb|hedgehog}",
        "trouble": "It was caught in {an old net|a bush full of thorns|a fence}.",
        "help": """<name> {pulled and pulled|worked slowly and carefully}. {At last|After a while} the <baby> was
            free. {It shook itself and jumped in the air.|It took a deep breath.}""",
        "say": "{Do not move|Poor thing}",
    },
]
RESCUE = {
    "cases": BABY_CASES, "fixed": ["baby"], "children": 0.75,
    "keep": {"place": "{the forest|the village|the market|the river|the field|the mill}"},
    "text": """<begin_part> <Day> <name> {was on the way to <place>|was walking to <place>|came home from <place>}.
        {Suddenly|Then} <he> heard a {soft|small|sad} {sound|voice|cry}. {<He> stopped and listened.|What could it
        be?|It came from {behind a tree|under a bush}.} There {was|sat|lay} a {little|small|tiny} <baby>! <trouble>
        {"<say>!"|"<say>, little <baby>!"} said <name>. {"Do not be afraid. I will help you."|"I will help you."|
        "Wait, I am here."|"Come, I will look after you."} ~ <help> <glad> ~ {A few days later|The next week|One
        evening after that} {<name> got lost in {the fog|the dark}. <He> did not know the way home. Then the <baby>
        came and {showed <him> the way|led <him> home}. "{You helped me, and now I help you|Now we have both been
        helped}," {it said|said the <baby>}.|there was a {shiny stone|red apple|blue feather|yellow flower} in front
        of <name>'s door. {Who had put it there?|Next to it were small footprints.} It was {a present|a thank you}
        from the <baby>!|the <baby> came back. {It had brought all its friends.|It wanted to play.} {They played
        until the sun went down.|They ran and jumped all afternoon.}} {"{A good deed|Kindness} always comes back,"
        said <his> <elder>.|From that day on they were friends.|<name> was proud and glad.|<good_night>}""",
}

# ---------------------------------------------------------------- two want the same
SHARE_CASES = [
    {
        "noun": "{cake|pie|big cookie|pear}", "adj": "{sweet|round|warm|delicious}",
        "found": "{on the table|in the kitchen}",
        "war": "They pulled, and {the <noun> fell on the floor|half of the <noun> fell down}.",
        "idea": "{cut it in two|make two halves}",
        "peace": """They cut the <noun> in two halves, {and each half was sweet|one for <name> and one for <name2>}.
            They ate {slowly|together in the sun}, and it tasted {twice as good|wonderful}.""",
    },
    {
        "noun": "{sled|cart|wagon}", "adj": "{<colour>|old|new}", "found": "{behind the house|in the barn}",
        "war": "They pulled, {and both fell down|and the <noun> tipped over}.",
        "idea": "{sit on it together|let one pull and one ride}",
        "peace": """First <name> pulled and <name2> rode, then <name2> pulled and <name> rode. {They laughed all the
            way.|It was much more fun than alone.}""",
    },
    {
        "noun": "{drum|swing|ball|kite}", "adj": "{<colour>|new|big}", "found": "{in the garden|under a tree}",
        "war": """They {pushed and shouted|pulled and shouted}, {and soon both were crying|until they were red in
            the face}.""",
        "idea": "{take turns|count to twenty and change}",
        "peace": """{First it was <name2>'s turn, then <name>'s.|First <name> had it, then <name2>.} {They counted
            to twenty each time.|Nobody had to wait long.} {Soon they had forgotten who was first.|It was much more
            fun than alone.}""",
    },
]
SHARE = {
    "cases": SHARE_CASES, "fixed": ["noun", "adj"],
    "text": """<opening> {<name> had a friend {named|called} <name2>.|<His> best friend was <name2>, who lived next
        door.|<name> and <name2> were friends.} ~ <Day> they found <a thing> <found>. "{It is mine|I want it}!" said
        <name>. "{No, I saw it first|No, it is mine}!" said <name2>. <war> {Then neither of them had any fun.|"I do
        not want to play with you any more!" said <name2>.|They sat down back to back and did not say a word.} ~
        {After a while|Some time later} {<name> looked at <name2>. <He2> looked as sad as <he> was.|<name>'s <elder>
        came by. "Why are you so quiet?" <he3> asked. They told <him3> everything. <He3> only smiled. "{One <noun>,
        two friends|Think of something}," <he3> said.|it was very quiet. It is no fun to be angry.} {{"I am sorry,"
        said <name>.|"I have an idea," said <name>.} "<Proposal>" "<Agreed>" said <name2>.|"I am sorry," said
        <name2>. "<Proposal>" "<Agreed>" said <name>.} <peace> ~ {<friends>|<good_night>|"It is better with you,"
        said <name2>.|"Sharing is fun," said <name>.|And they never {quarrelled|fought} about a <noun> again.}""",
}

# ---------------------------------------------------------------- afraid
FEAR_CASES = [
    {
        "fear": "the dark",
        "sign": """Every night <he> hid under <his> blanket. The shadows on the wall looked like {giants|monsters|
            big hands}.""",
        "advice": """{Come to the window. The stars can only shine when it is dark.|The dark is only the day with
            its eyes closed.|Look, the night is as soft as a blanket.}""",
        "try": """<name> {opened|went to} the window. {There was the moon, round and bright.|The sky was full of
            stars.} {An owl called, and it sounded friendly.|It was so beautiful that <he> forgot to be afraid.}""",
        "end": """{Now <name> liked the night.|After that <he> said good night to the stars every evening.|And the
            shadows? They were only the tree in front of the window.}""",
    },
    {
        "fear": "thunder",
        "sign": "When the sky grew dark, <he> {crept|hid} under the {table|bed} and held <his> ears.",
        "advice": """{Count with me.|Let us count.} {When you see the flash, count until it booms.|The more you can
            count, the farther away it is.}""",
        "try": """There was a flash! One, two, three, four, {boom!|five, boom!} {The next time <he> could count to
            seven, then to ten.|"It goes away!" cried <name>.}""",
        "end": """{Soon there was only the rain on the roof.|Then the sun came out, and there was a rainbow.|After
            that <name> counted in every storm.}""",
    },
    {
        "fear": "the water",
        "sign": "{When the others swam, <he> sat on the shore.|Even a puddle was too deep for <him>.}",
        "advice": "{Only one step today, and tomorrow another one.|One step at a time, and I will hold your hand.}",
        "try": """On the first day <name> put in {one foot|<his> toes}. On the second day <he> stood up to <his>
            knees. {And then, one day, <he> swam!|On the third day <he> laughed and splashed.}""",
        "end": """{"The water carries me!" <he> cried.|Now nobody could get <him> out of the water.|"Look at me!"
            <he> called to everyone.}""",
    },
    {
        "fear": "the big dog",
        "sign": """The dog lived next door, and it had a very {deep|loud} voice. <name> always ran past as fast as
            <he> could.""",
        "advice": """{Perhaps the dog is lonely.|Perhaps it only wants to say hello.} Stand still and let it smell
            your hand.""",
        "try": """The next day <name> did not run. <He> stood still and held out <his> hand. The dog sniffed,
            {wagged its tail|lay down on its back} and {licked <his> nose|gave <him> its paw}.""",
        "end": """{"You are not bad at all!" laughed <name>.|Now they run together every day.|And so <name> got a
            very big friend.}""",
    },
    {
        "fear": "singing in front of others",
        "sign": """At home <he> sang like a bird. But when others listened, <his> voice {was gone|became very
            small}.""",
        "advice": "{Sing only for me.|Look only at me.} {I will sit in the first row.|Forget all the others.}",
        "try": """At the feast <name> stood in front of everyone. <His> knees shook. {<He> looked at <his> <elder>
            and began.|Then <he> closed <his> eyes and began.} {Quietly at first, then louder and louder.|The song
            came out clear.}""",
        "end": """{Everyone clapped.|All were silent, and then they clapped and clapped.|"Again! Again!" they all
            cried.}""",
    },
]
FEAR = {
    "cases": FEAR_CASES, "children": 0.65,
    "text": """<begin> <name> was {not afraid of much, but <he> was afraid of <fear>|afraid of <fear>|brave, but
        there was one thing: <he> was afraid of <fear>}. <sign> {Nobody knew about it.|The other <who> laughed at
        <him>.|"I am so small," <he> thought.|} ~ {One day|One evening} <his> <elder> {saw it|found out|sat down
        next to <him>}. {"Everyone is afraid of something," <he3> said. "<advice>"|"When I was small, I was afraid
        too," <he3> said. "<advice>"|"Shall I tell you a secret?" <he3> asked. "I was afraid of that too. <advice>"|
        "<advice>" <he3> said.} {<name> thought about it for a long time.|"I will try," said <name>.|<name> took a
        deep breath.|"Really?" asked <name>.} ~ <try> <end> {"I am proud of you," said <his> <elder>.|"You see?"
        said <his> <elder>.|} {To be brave is to be afraid and to {do|try} it all the same.|And when somebody else
        was afraid of <fear>, <name> knew what to say.|<good_night>|}""",
}

# ---------------------------------------------------------------- making something
MAKE_CASES = [
    {
        "noun": "cake", "for": "{<elder>'s birthday|the feast}",
        "steps": """{<He> mixed flour, eggs and milk|<He> took flour, butter and sugar} and {stirred|stirred and
            stirred}.""",
        "oops": "But {the bowl tipped over|the cake was burnt}, and there was {flour|smoke} everywhere.",
        "fix": """{They washed the table and began again.|They took smaller bowls and were more careful.} {This
            time|Now} the cake was {golden and soft|round and sweet}.""",
        "joy": "{The whole house smelled of it.|They put {berries|candles} on top.} Everyone got a piece.",
    },
    {
        "noun": "kite", "for": "{the windy days|the big race}",
        "steps": """{<He> took paper, wood and string|<He> cut paper and tied two sticks} and painted a {face|star|
            sun} on it.""",
        "oops": "But when the wind came, the kite {fell down like a stone|turned round and round and fell}.",
        "fix": """"It needs a {longer |}tail," said <name2>. They {tied|made} a tail of {ribbons|old socks}.""",
        "joy": "Up it went, higher and higher, {until it was only a dot in the sky|above all the roofs}.",
    },
    {
        "noun": "boat", "for": "{the river|the lake}",
        "steps": "{<He> took an old box|<He> put planks together} and made a sail out of {a shirt|a blanket}.",
        "oops": "But the boat had a hole, and the water came in. {Glug, glug, glug!|They got very wet.}",
        "fix": """"{We need wax|We must close it}," said <name2>. They closed the hole with wax {and waited|and
            leaves}.""",
        "joy": """Now the boat {swam like a duck|danced on the waves}. "{Ahoy|Hurrah}!" they {cried|shouted}.""",
    },
    {
        "noun": "snowman", "for": "{the winter feast|the first snow}",
        "steps": "<He> rolled a big ball, a smaller ball and a very small ball of snow.",
        "oops": "But the {head|biggest ball} was too heavy. {Nobody could lift it.|It rolled down the hill.}",
        "fix": """"Together!" said <name2>. One, two, three, {and up it went|they lifted it}!""",
        "joy": """They gave him {a carrot for a nose|two stones for eyes} and a {red|blue|warm} scarf. {He seemed to
            smile.|He looked very grand.}""",
    },
    {
        "noun": "house for the birds", "for": "{the cold winter|the spring}",
        "steps": "<He> {found|sawed} {four|six} boards and put them together.",
        "oops": "But {it was crooked|the door was too small}, and no bird came.",
        "fix": """"{Birds are shy|Let us ask the birds}," said <name2>. They {made the door wider|made it straight}
            and hung it {in the old tree|higher up}.""",
        "joy": """{The next morning|Soon} two little birds moved in. {They sang for <name> every day.|In May there
            were eggs in it.}""",
    },
    {
        "noun": "soup", "for": "{all the neighbours|the cold evening}",
        "steps": "<He> cut {carrots and onions|potatoes and beans} and put them into a {big|very big} pot.",
        "oops": """But the soup {tasted of nothing|was much too thin}. {Everyone made a long face.|"It is like
            water," said <name>.}""",
        "fix": """"{Something is missing|It needs salt}," said <name2>. {One brought salt, one brought herbs, one
            brought cheese.|They put in salt and {herbs|mushrooms}.}""",
        "joy": """{Now it was the best soup in the world.|It smelled so good that even the cat came.} Nobody left a
            drop.""",
    },
]
MAKE = {
    "cases": MAKE_CASES, "fixed": ["for"],
    "text": """<begin> <Day> <name> had an idea. "I will make a <noun> for <for>!" {<he> said.|<he> thought.} {<He>
        began at once.|<He> ran home and began.|<He> asked <his> friend <name2> to come.|} <steps> {It was a lot of
        work.|<He> sang while <he> worked.|It was not as easy as it looked.|} ~ <oops> {"Oh no!" {cried|said}
        <name>.|<name> was {angry|sad}. "I will never make a <noun> again!"|"Now everything is {lost|spoiled},"
        {sighed|said} <name>.} {But <name2> laughed. "We {try again|can do it}," <he2> said.|<His> friend <name2>
        put an arm around <him>. "Do not {cry|give up}," <he2> said.|"Wait, I will help you," said {<his> friend |
        }<name2>.} <fix> ~ <joy> {"We did it!" {said|cried} <name>.|"Two heads are better than one," said <name2>.|
        <glad>} {<friends>|<good_night>|They were very proud of their <noun>.}""",
}

# ---------------------------------------------------------------- rain
RAIN = {
    "keep": {
        "place": "{the hill|the lake|the meadow|the forest}",
        "shelter": "{an old barn|a cave|a hollow tree|an old mill}",
        "there": "{hedgehog|old goat|little owl|wet cat|family of mice}",
        "basket": "{bread and cheese|cake and apples|berries and nuts|soup and bread}",
    },
    "text": """<begin> <Day> <name> and <his> {friend <name2>|friend <name2>|<elder>} {went to|walked up to} <place>
        for a picnic. They had a basket with <basket>. {The sun was shining, and the birds were singing.| There was
        not a cloud in the sky.|They sang as they walked.} ~ {But then|Suddenly} {a big grey cloud came|it grew
        dark}. {Plop! A drop fell on <name>'s nose.|It thundered far away.} Soon it was raining {hard|so hard that
        they could not see the path}. "Our picnic!" cried <name>. "{Quick|Run}!" {They ran as fast as they could.|
        They took the basket and ran.} At last they found <shelter>. {It was dark in there, but dry.|They were wet
        from top to toe.} ~ {Something moved in the corner.|"Hello," said a {small|thin} voice.|Two eyes looked at
        them.} It was {<a there>|only <a there>}! {"Come in," said a voice, "there is room for all."|"May we stay
        here?" asked <name>. "Of course."} {They shared <basket> and told stories.|They all ate together, and {the
        rain drummed on the roof|nobody was cold any more}.} {It was the best picnic of all.|Nobody thought of the
        rain.} ~ When they came out, {there was a rainbow over <place>|the sun was shining again|the whole world
        smelled fresh}. {They jumped into every puddle on the way home.|"I hope it rains again {tomorrow| soon},"
        said <name>.|<good_night>}""",
}

# ---------------------------------------------------------------- a new friend
NEWCOMER = {
    "keep": {
        "place": "{the playground|the big tree|the pond|the old bridge}",
        "game": "{hide and seek|tag|ball|pirates}",
        "skill": "{draw|sing|juggle|whistle|tell stories|stand on one leg}",
    },
    "text": """<opening> <Day> {somebody new came|<name> saw somebody new}. It was <a kind2> {named|called} <name2>.
        {<He2> came from far away.|<He2> had just moved here with <his2> family.|<He2> did not know anybody.}
        <name2> sat {alone |}by <place> and {looked at <his2> feet|said nothing|watched the others}. {The others
        played <game> and did not look at <him2>.|"<He2> is strange," said the others.|} ~ {<name> thought, "I would
        not like to be alone."|<name> felt sorry for <him2>.|<name> remembered how it was to be new.} <He> {went
        over|took a deep breath and went over}. "{Hello|Hi}! {I am <name>|My name is <name>}. {Do you want to play
        <game>?|Would you like to play with us?}" <name2> {looked up|smiled a little}. "{I do not know how|I am not
        good at it}," <he2> {said|whispered}. "{I will show you|That does not matter|Nobody is, at first}," said
        <name>. ~ {Soon they were playing|They played} <game> and laughed a lot. {Then|And then} <name2> showed what
        <he2> could do: <he2> could <skill>{, better than anyone| very well}! {"Can you teach me?" asked <name>.|
        Everyone {stared|clapped}.|"That is wonderful!" said <name>.} {"Yes, tomorrow!" said <name2>.|<name2>
        laughed for the first time.|} ~ <friends> {"{I am glad that you came over|You were the first who asked},"
        said <name2>.|One kind word was enough.|<good_night>|}""",
}

# ---------------------------------------------------------------- a seed
SEED_CASES = [
    {
        "plant": "sunflower",
        "grew": """It grew and grew, until it was taller than {the fence|the house}. At the top there was a {big|
            huge} yellow flower, {like a little sun|round as a plate}.""",
        "share": "{In autumn <he> gave the seeds to all <his> friends.|The bees came from everywhere.}",
    },
    {
        "plant": "pumpkin",
        "grew": """It grew and grew, {first a leaf, then a flower|along the ground and over the wall}, and then
            there was a {round|huge}, orange pumpkin.""",
        "share": "{They made soup of it for the whole village.|It was so big that ten had to carry it.}",
    },
    {
        "plant": "strawberry",
        "grew": """It grew {leaves and white flowers|slowly but surely}, and in June there were {five|ten|twelve}
            red strawberries.""",
        "share": "{<name> gave the biggest one to <his> <elder>.|<name> shared them with <his> friend <name2>.}",
    },
    {
        "plant": "bean",
        "grew": """It climbed up {a stick|the wall}, higher and higher, {up to the window|up to the roof}, and it
            was full of {long |}green beans.""",
        "share": "{There were enough for everyone.|<name> shared them with <his> friend <name2>.}",
    },
    {
        "plant": "apple tree",
        "grew": """It took {many years|a long time}. <name> grew, and the tree grew, and one {autumn|day} there were
            red apples on it.""",
        "share": "{<name> and <his> friend <name2> sat under it and ate.|There were enough for everyone.}",
    },
]
SEED = {
    "cases": SEED_CASES,
    "text": """<opening> {<Day>|In spring} <his> <elder> gave <him> a {small|tiny|little} {brown |}seed. "{What is
        it?|What is in it?}" asked <name>. "{Plant it and wait|You will see|It is a surprise}," said <his> <elder>.
        <Name> dug a {small|little} hole in the {garden|earth}, put the seed into it and {gave it water|watered it}.
        ~ {The next day|In the morning} <name> {ran out|ran to look}. Nothing. {The day after|On the second day},
        nothing. {"It does not like me," said <name>.|"Perhaps it is asleep," said <name>.|"It is broken," said
        <name>.} "{Good things take time|You cannot hurry a seed|Give it water and be patient}," said <his> <elder>.
        So <name> {watered it every day|waited and waited}{ and sang to it| and told it stories|}. {It rained, and
        the sun shone.|A week went by.|} ~ Then, one morning, {there was a green dot|something green looked out of
        the ground}! <glad> {"It is awake!" <he> cried.|"Come and see!" <he> called.|} <grew> {It was <a plant>!|So
        that was the surprise: <a plant>!|} <share> {<name> had learned to wait.|And <name> kept one seed for the
        next year.|"It was worth the wait," said <name>.|<good_night>}""",
}

# ---------------------------------------------------------------- something is broken
BROKEN = {
    "children": 0.75,
    "keep": {
        "noun": "{cup|vase|lamp|plate|bowl|clock|jar}", "adj": "{blue|white|old|beautiful|green}",
        "hide": "{under the bed|behind the door|in a box|behind the oven}",
    },
    "text": """<begin> <name>'s <elder> had <a thing>. {It stood on the shelf, and nobody was allowed to touch it.|
        <He3> loved it very much.|It was very old, and <he3> was proud of it.} ~ <Day> <name> {played with <his>
        ball in the house|danced through the room|ran through the kitchen}. {Bump!|Crash!|Oops!} The <noun> fell
        {down|from the shelf} and {broke|broke in two|was broken}. {<name>'s heart stood still.|<name> looked at the
        pieces.|"Oh no!" said <name>.} {Nobody had seen it.|<He> was all alone.} {Quickly|Very quietly} <he> hid the
        pieces <hide>. {But <he> did not feel well.|But then <he> had a {bad|strange} feeling in <his> stomach.} ~
        {At dinner <he> could not eat.|<He> did not want to play any more.|<He> could not look at <his> <elder>.}
        "{What is the matter|What is wrong|Are you ill}, <name>?" asked <his> <elder>. {<name> took a deep breath.|
        Then <name> began to cry.|<name> was silent for a while.} "I broke {your|the} <noun>," <he> said. "And I hid
        it. {I am {so |very |}sorry|Please do not be angry}." ~ {<His> <elder> was silent for a moment.|<His>
        <elder> looked at <him>.} Then <he3> {took <him> into <his3> arms|smiled|gave <him> a hug}. "{Thank you for
        telling me|It was brave to tell me}," <he3> said. "{A <noun> is only a <noun>|We can mend a <noun>}."
        {Together they glued the pieces.|They got the glue and put the pieces together.} {The <noun> had a crack
        now, but <his> <elder> liked it even more.|In the evening it stood on the shelf again.} {And <name> felt as
        light as a feather.|The stone in <name>'s stomach was gone.|<good_night>}""",
}

# ---------------------------------------------------------------- a race
RACE = {
    "children": 0.3,
    "keep": {
        "goal": "{the old oak|the mill|the bridge|the big stone}",
        "prize": "{a basket of apples|a golden ribbon|a jar of honey|a big cake}",
    },
    "text": """<opening> {Every year there was a race|Soon there would be a big race}, and the winner got <prize>.
        <name> wanted to win. {But <he> was the {smallest|slowest} of all.|But <his> legs were short.} {"You?
        Never!" laughed <name2>, {the fastest of all|who was very fast}.|The others laughed. "You will be last!"
        said <name2>.} ~ {<name> did not give up.|"We will see," said <name>.} Every {morning|evening} <he> ran to
        <goal> and back. {On the first day <he> was out of breath.|It was hard at first.} {But each day it was a
        little easier.|After a week <he> was faster.} ~ Then came the day of the race. "{Ready, steady, go|One, two,
        three, go}!" {Everyone ran.|Off they went.} {<name2> was first, of course.|<name2> was soon far in front.}
        But near <goal> {<name2> fell over a root|<name2> stepped into a hole} and {hurt <his2> foot|could not get
        up}. {The others ran past.|Nobody stopped.} {Only <name> stopped.|<name> looked at the finish and then at
        <name2>. Then <he> stopped.} "{Hold on to me|Come, I will help you}," said <name>. ~ They came in last, arm
        in arm. {But everyone clapped the loudest for them.|And what happened? Everyone cheered!} {"Why did you
        stop?" asked <name2>. "You could have won!" "{A friend is better than <prize>|You needed me}," said <name>.|
        "I am sorry that I laughed at you," said <name2>.} {And <name> got <prize> after all.|They shared <prize>,
        for the winner gave it to them.|<friends>}""",
}

# ---------------------------------------------------------------- a sound in the night
NIGHT_CASES = [
    {
        "sound": "{tap, tap, tap|tick, tick, tick}",
        "was": "{a branch|the old apple tree} that knocked at the window in the wind",
        "after": """{"Good night, tree," said <name>.|"So it is you!" laughed <name>.}""",
    },
    {
        "sound": "{crunch, crunch|scratch, scratch}", "was": "a {little|tiny} mouse with a {nut|bit of cheese}",
        "after": """{"Good evening," said the mouse. "Do you want some?"|"I was hungry," said the mouse. "Did I wake
            you?"}""",
    },
    {
        "sound": "{drip, drop, drip|plip, plop}",
        "was": "{the rain that came through the roof|the tap in the kitchen}",
        "after": """{<name> put a bowl under it, and now it made music.|<name> put a cloth under it, and it was
            still.}""",
    },
    {
        "sound": "{hoo, hoo|woo, woo}", "was": "an owl that sat on the roof {and sang|and looked at the moon}",
        "after": """{"I sing for the moon," said the owl.|"Hoo are you?" asked the owl, and <name> had to laugh.}""",
    },
    {
        "sound": "{meow, meow|thump, thump}", "was": "a {wet|small} cat that wanted to come in",
        "after": "{<name> opened the door, and the cat slept at <his> feet.|<name> gave it milk, and it purred.}",
    },
]
NIGHT = {
    "cases": NIGHT_CASES, "fixed": ["sound", "was"], "keep": {"guess": "{a giant|a ghost|a robber|a dragon}"},
    "text": """<begin_part> One night <name> {could not sleep|woke up}. {Everything was dark and still.|The moon
        shone into the room.} {Then <he> heard something.|But what was that?} "<Sound>," it went. {<name> sat up.|
        <name>'s heart beat fast.|<name> pulled the blanket up to <his> chin.} "{It is|That must be|Perhaps it is}
        <guess>!" <he> {thought|whispered}. "<Sound>," it went again, {louder this time|and again}. {<He> wanted to
        hide.|<He> did not dare to move.} ~ But <name> was {also curious|tired of being afraid}. <He> took {a lamp|a
        candle|<his> blanket} and went {on tiptoe|slowly|step by step} {to the door|down the stairs|through the
        dark}. "{Who is there|Is somebody there}?" <he> asked {with a small voice|very quietly}. {Nobody answered.|
        It was still for a moment.} "<Sound>." {<name> looked around the corner.|<name> held up the light.} And what
        did <he> see? ~ It was not <guess>. It was only <was>! <after> <name> {laughed until <his> stomach hurt|
        laughed about <himself>|was so glad}. {Then <he> went back to bed.|"And I thought you were <guess>!" <he>
        said.} {Soon <he> was asleep, and nothing could wake <him>.|In the dark, small things sound big.|
        <good_night>}""",
}

# ---------------------------------------------------------------- a present
GIFT_CASES = [
    {
        "gift": "{picture|card}",
        "make": """<He> took <his> {colours|pencils} and {painted|drew} {the house and the garden|the two of them,
            hand in hand}. {It took all afternoon.|There was paint on <his> nose.}""",
        "liked": "<He3> {hung|put} it over the {table|bed}, where <he3> could see it every day",
    },
    {
        "gift": "{crown|wreath}",
        "make": """<He> picked {yellow|white|blue} flowers in the meadow and {wove|tied} them together. {The first
            one fell apart.|A bee helped <him> to find the best ones.}""",
        "liked": "<He3> put it on at once and {danced|wore it all day}",
    },
    {
        "gift": "{song|poem}",
        "make": """<He> sat under a tree and thought of {words|rhymes}. {It had to be just right.|The birds helped
            <him> a little.}""",
        "liked": "<He3> wanted to hear it {three times|again and again}",
    },
    {
        "gift": "{necklace|chain}",
        "make": """<He> looked for {shells|red berries|little stones} and put them on a string, {one by one|one
            after the other}. {It took all afternoon.|Some fell down, but <he> was patient.}""",
        "liked": "<He3> never took it off again",
    },
    {
        "gift": "{bread|little cake}",
        "make": """<He> mixed flour, water and {honey|nuts} and {waited|put it into the oven}. {It was a bit
            crooked.|It smelled wonderful.}""",
        "liked": "<He3> ate {every crumb|it all} and asked for more",
    },
]
GIFT = {
    "cases": GIFT_CASES, "fixed": ["gift"],
    "text": """<opening> {It was <his> <elder>'s birthday|The next day was <his> <elder>'s birthday}, and <name>
        {wanted to give <him3> something|had no present yet}. {<He> looked into <his> pocket. There was only {a
        button|one coin|a piece of string}.|But <he> had no money.} {"What can I do?" thought <name>.|<name>
        {thought and thought|walked up and down}.} ~ {<His> friend <name2> said|<He> asked <his> friend <name2>.
        <He2> said}, "{You can make something|The best presents are made by hand|Give what you can do}." {That was
        it!|What a good idea!} "I will make <a gift>!" {said|cried} <name>. <make> {At last it was finished.|Then it
        was ready.} ~ {In the evening|After dinner} <name> {washed <his> hands and|took a deep breath and} {went to|
        ran to} <his> <elder>. "{Happy birthday|This is for you}," <he> said. "{I made it myself|It is only a small
        thing|It is not much}." {<His> <elder>'s eyes {shone|became wet}.|<His> <elder> did not say anything at
        first.} "{It is the best present of all|Nobody ever gave me such a <gift>}," <he3> said. <liked>. {What
        comes from the heart is never small.|And <name> was even happier than <his> <elder>.| <glad>| <good_night>}""",
}

# ---------------------------------------------------------------- a star
STAR = {
    "keep": {"place": "{the garden|the meadow|the pond|the field}", "ally": "{owl|goose|heron|eagle}"},
    "text": """<opening> {Every night|In the evening} <he> looked at the stars. One {night|evening} {a star fell
        from the sky|there was a flash in the sky}. {<name> ran out at once.|<name> put on <his> shoes and ran out.}
        There, {near|not far from} <place>, lay a {little|tiny} star. It {was cold and shook|shone only a little}. ~
        "{I fell down|I danced too wildly and fell}," said the star. "{I want to go home|My sisters are waiting for
        me}." {"I will help you," said <name>.|"Do not cry, little star," said <name>.} <He> {put it into <his>
        pocket|took it in <his> hands}. It was {light as a feather|warm now}. {First <name> threw it up|First <name>
        climbed a tree}, but the sky was too far away. {Then <he> went up the highest hill|Then <he> stood on the
        roof}, but that was not high enough. ~ {<A ally> came.|They met <a ally>.} "{Who is up so late|What have you
        there}?" {asked the <ally>|it asked}. {<name> told it everything.|"A star that wants to go home," said
        <name>.} "{I fly very high|Sit on my back, little star}," said the <ally>. {The star kissed <name> on the
        nose.|"Thank you, <name>," said the star. "I will not forget you."} {Up and up they flew|They flew higher
        and higher}, until {<name> could not see them any more|they were only a dot}. ~ {Then <he> saw a new light
        in the sky.|And there, next to the moon, a star began to shine.} {Every evening it winks at <name>, and
        <name> winks back.|And when <name> is sad, it shines a little brighter.|If you look up tonight, you may see
        it too.}""",
}

# ---------------------------------------------------------------- the way home
ASTRAY_CASES = [
    {
        "guide": "firefly", "hint": "{Follow my light|I will shine for you}",
        "way": "{It flew ahead like a little lamp.|Its light danced between the trees.}",
    },
    {
        "guide": "owl", "hint": "{I see in the dark|I know every tree}",
        "way": """{It flew from tree to tree and waited for <him>.|It called from every tree, and <name> went after
            the call.}""",
    },
    {
        "guide": "brook", "hint": "{Go where I go|I run past your door}",
        "way": """{<name> walked along the water, round stones and under bridges.|It sang all the way, and <name>
            sang too.}""",
    },
    {
        "guide": "old horse", "hint": "{Sit on my back|I know the way}",
        "way": "{It walked slowly and surely.|<name> held on to its mane, and they trotted off.}",
    },
    {
        "guide": "snail", "hint": "{I leave a trail|I came from there}",
        "way": "{Its trail shone like silver in the moonlight.|They were not fast, but they did not lose the way.}",
    },
]
ASTRAY = {
    "cases": ASTRAY_CASES,
    "keep": {"lure": "{a blue butterfly|a red bird|a white feather in the wind|a hare with long ears}"},
    "text": """<opening> "{Do not go too far|Be home before dark}," <his> <elder> always said. ~ {But one day|<Day>}
        <name> saw something{:| new:} <lure>! {<He> followed it, farther and farther.|<He> ran after it and forgot
        everything.} {Over a hill and through a wood <he> went.|<He> did not look where <he> went.} Then it was
        gone{.|, and <name> stood still.} {<He> looked around. All the trees looked the same.|"Where am I?" asked
        <name>. Nobody answered.} {It was getting dark.|The sun was going down.|Fog came up.} <sad> ~ "{Where do you
        want to go|Are you lost}?" {asked|said} a {soft|quiet|friendly} voice. It was <a guide>. "{I want to go
        home|I cannot find the way home}," said <name>. {"That is easy,"|"Do not be afraid,"} said the <guide>.
        "<hint>." <way> {The forest was not so dark any more.|<name> was not afraid any more.|} ~ At last {<name>
        saw a light. It was {home|the window of <his> house}!|<he> smelled soup and heard a voice. Home!} <His>
        <elder> {ran to meet <him>|stood at the door}. "{There you are|I was so worried}!" <he3> {said|cried}.
        {<name> turned round to thank the <guide>.|"The <guide> brought me home," said <name>.} {From then on <he>
        stayed near the house, or at least <he> looked at the way.|The next day <he> went back to say thank you, and
        this time <he> left a trail of stones.|<good_night>}""",
}

PLOTS = [LOST, LOST, RESCUE, RESCUE, SHARE, FEAR, FEAR, MAKE, MAKE, RAIN, NEWCOMER, SEED, BROKEN, RACE, NIGHT, GIFT,
         STAR, ASTRAY]
