"""English words that the guards of `core.likeness` know. Data only; `lexicon.parse` says how it is written."""

STOP = """
a an the this that these those there here it its itself i me my mine myself you your yours yourself we us our ours
they them their theirs he him his she her hers one ones oneself someone somebody anyone anybody people person is are
am was were be been being do does did done doing has have had having will would shall should can could may might must
ought get gets got gotten getting let lets go goes going and or but if then so as at by on in of for to with about
into onto upon than please kindly thanks thank hi hello hey dear help ok okay well just also too very really actually
quite rather simply basically indeed truly maybe perhaps possibly probably likely kind way ways thing things something
anything everything stuff tell show explain describe give know want need wish like love wonder wondering question ask
asking asked answer look looking find think thinking thought mean means say said try trying tried seem seems appear
appeared happen happens happened happening able possible what which who whom whose when where why how whether advice
tip suggestion recommend suggest idea exactly specific particular certain different various other another still
already yet even ever much more many lot lots some any each sir madam folks everyone else own such that's vs versus
etc eg ie via per re pm quick quickly currently according accord again excuse assist aid type types kinds list name
required requirement requirements needs needed option options step steps procedure process method order use using used
out off through throughout around across along away among behind beyond during within toward towards until till since
out_of because due although though despite while whereas once both either instead up back down_to good better best
great greatest nice awesome amazing interesting useful effective efficient_way top ultimate favorite favourite perfect
ideal suitable proper properly main major key important considered known called named regarded termed overall general
generally literally somehow fact in_fact honestly clearly obviously apparently essentially especially particularly
usually normally commonly typically typical common available existing exist exists meant meaning time times role case
cases point part topic example examples instance reason reasons sense matter respect regard terms come comes came
coming become becomes became put puts set keep keeps kept make makes made making take takes took taken taking provide
provides offer offers include includes consider considers feel feels felt call calls work works worked working gone
plan planning start begin end ended manage manages thoughts views opinion opinions view experience world life today
day days nowadays recently presently now sometime anytime one's several few bit little extra hard instruct guide
guidance teach enough seriously perfectly fully completely totally absolutely entirely there's everywhere anywhere
somewhere nowhere_else whenever wherever whatever whichever whoever however undergo let's assistance explanation
explanations explaining explained figure checking check approximately desperately pretty sure attempt attempted
attempting almost far such_as so_far couple upcoming request sincerely extremely super experienced merely oh um uh hmm
yeah yes pls mate buddy bro this_week this_month this_year this_season this_quarter amount at_the_moment moment worth
right_now occur occurs occurring dude at_all all_the_time of_all_time all_time after_all above_all all_right
first_of_all apart from aside self others define definition sort_of sorts_of
"""

WEAK = """
forgotten most same absolute usage amongst year years these_days importance given present yesterday earlier already
vacation
holiday urgent urgently appreciate look looks looked mistake mistakes problem problems issue issues foreign open
opening realise realize notice noticed applied similar manner form functions function series easy easier easiest
easily simple simplest fast faster fastest quick quickest efficient new newer newest latest recent current popular
famous well-known different early special certain whole entire original old big large small huge strong high low long
short further additional daily regular standard basic normal natural personal own modern successfully practical actual
main several able ready live living lives person people human humans place places area areas website site sites online
internet app apps program programs tool tools list type name names detail details information info process system work
job history field career industry company business market service services product products option options technique
techniques strategy strategies question questions answer answers book books post article read reading watch see seen
saw talk talks talking speak write learn learning study studying understand understanding know improve increase grow
try start started begin get find choose select buy create build develop prepare preparation handle deal become remain
stay move change affect cause causes result results effect happen last first next again together alone immediately
soon later wait waiting pay paid receive received send sent accept return visit contact reach hold held tv_series page
highly serious seriously smart surprising surprisingly insane crazy weird wild mind blowing mind-blowing incredible
incredibly unbelievable fascinating helpful excellent outstanding exceptional superb fantastic wonderful brilliant
genius intended real real-life true truly genuine proper right correct legit eminent reputed reputable renowned
notable noteworthy well worst worse stupidest dumbest craziest coolest weirdest interesting typical usual traditional
general generic overall various multiple numerous memorable unforgettable painless peaceful constantly constant
currently lesser little-known unknown past future successful someone's term phrase word concept definition define
aspects aspect tip tips trick tricks hack hacks suggestion suggestions idea ideas advice discoveries discovery
released release tried tested professional trustworthy reliable trusted quality run running make making do doing being
having using use utilizing getting going becoming put putting commit calculate recover manage control physically
mentally emotionally personally literally technically theoretically practically scientifically financially
physiologically psychologically ridiculously insanely primarily mainly mostly largely particularly wholly utterly
thoroughly significantly dramatically drastically gradually slowly steadily regularly effectively efficiently properly
accurately precisely roughly nearly closely directly simply city town state country county region district society
community world globe earth land nation home house house's feild domain niche sector category categories phone mobile
device computer laptop pc software course class classes training exam test lecture companies firm organisation
organization account accounts money cash fund film show tv novel language programming application lord mr mrs ms dr
sir professor prof saint st king queen president minister inc corp ltd llc os edition version acceptable possible
inside within under before after around between compared comparison relate related difference similarities indicate
represent entail served offered used called asks asked ask interviewer personality people's guy guys someone self
myself yourself himself herself oneself regret courage objective culture parts part built uses dream hope wish plan
goal accomplish achieve fix please suggest inform desperately sincerely kindly hoping wondering trying needing looking
seeking willing stuck forever instantly suddenly eventually finally ultimately initially originally previously
formerly sometimes occasionally repeatedly frequently usually normally naturally obviously honestly frankly
respectively instead otherwise therefore hence thus moreover furthermore additionally besides apart aside meanwhile
afterwards thereby
"""

NEGATORS = """
not no never neither nor nobody nothing nowhere cannot without none hardly barely scarcely nt non unless except
excluding except_for no_longer not_any_more anything_but
"""

NEGATIVES = """
illegal: legal | unlawful: legal | unsafe: safe | incorrect: right | wrong: right | invalid: valid | unable: can |
unavailable: available | unhealthy: healthy | unhappy: happy | unfair: fair | unlimited: limit | uncommon: common |
unusual: usual | unlikely: likely | unknown: know | unnecessary: necessary | unpaid: pay | unauthorized: authorized |
unauthorised: authorized | unsupported: support | unsecured: secure | insecure: secure | inactive: active | informal:
formal | incomplete: complete | incompatible: compatible | inappropriate: appropriate | irreversible: reversible |
irregular: regular | irrelevant: relevant | immature: mature | immoral: moral | impolite: polite | imperfect: perfect
| dishonest: honest | disloyal: loyal | unreliable: reliable | unreasonable: reasonable | uncertain: certain |
unconscious: conscious | uneven: even | unequal: equal | unfinished: finish | unofficial: official | unpopular:
popular | unrelated: relate | unrestricted: restrict | unsuccessful: success | unsuitable: suitable | untrue: true |
unwanted: want | unwise: wise | infinite: finite | indirect: direct | insufficient: sufficient | invisible: visible |
involuntary: voluntary | noncompliant: compliant | nonprofit: profit | outside: in | abnormal: normal | atypical:
typical | asymmetric: symmetric | unrealistic: realistic | unethical: ethical | unstable: stable | undesirable:
desirable | unacceptable: acceptable | unaware: aware | unbalanced: balanced | unmarried: married | disapprove:
approve | disagree: agree | dislike: like | disobey: obey | distrust: trust | misunderstand: understand | unpleasant:
pleasant | unfriendly: friendly | ungrateful: grateful | unprotected: protect | unsigned: sign | unverified: verify |
unread: read | unused: use | unedited: edit | unanswered: answer | undocumented: document | impossible: possible |
uncertified: certify | unencrypted: encrypt | ungrammatical: grammatical | inedible: edible | misconfigure: configure
| unreachable: reach | unavoidable: avoid | unlicensed: license | unregistered: register | uninsured: insure |
untested: test | unsubscribed: subscribe | unlisted: list | unlabeled: label | unlabelled: label | untreated: treat |
unvaccinated: vaccinate | unemployed: employ | unprofitable: profitable | unplanned: plan | unexpected: expect |
unsolved: solve | uninformed: inform | unaffected: affect | unchanged: change | unclear: clear | uncommitted: commit |
unconfirmed: confirm | uncooked: cook | undetected: detect | undamaged: damage | uneducated: educate | unfamiliar:
familiar | unfurnished: furnish | unhelpful: helpful | uninstalled: install | uninteresting: interest | unlawfully:
legal | illegally: legal | unmanaged: manage | unnatural: natural | unproven: prove | unpublished: publish |
unqualified: qualify | unsalted: salt | unsold: sell | unsweetened: sweet | untrained: train | unwritten: write |
inaccurate: accurate | inaccessible: access | inadequate: adequate | incapable: capable | inconsistent: consistent |
incurable: curable | ineffective: effective | inefficient: efficient | ineligible: eligible | inexperienced:
experience | inflexible: flexible | inorganic: organic | insensitive: sensitive | intolerant: tolerant | invariable:
variable | irrational: rational | irresponsible: responsible | illegible: legible | illogical: logical | illiterate:
literate | illegitimate: legitimate | immutable: mutable | immortal: mortal | immobile: mobile | impractical:
practical | improper: proper | impure: pure | dissatisfied: satisfy | disallowed: allow | discontinued: continue |
disorganized: organize | disrespectful: respectful | nonstop: stop | nonfiction: fiction | nonverbal: verbal |
nonsmoker: smoker | nonprime: prime | nondairy: dairy | nontoxic: toxic | nonalcoholic: alcoholic | | homeless: home |
childless: child | jobless: job | sugarless: sugar | seedless: seed
"""

SOFT = """
problem problems issue issues miss avoid prevent absent absence error bad forget forgot forgotten wrong mistake
instead_of
"""

FAILURES = """
trouble difficulty difficulties fail fails failed failing failure missing refuse refused reject rejected declined
decline deny denied denies lack lacks lacking stuck unable
"""

QUESTIONS = """
who: who whom whose which_person what_person | when: when what_time what_date what_day what_year which_year | where:
where what_place which_place what_places what_location | why: why how_come what_happened what_is_with what_is_going_on
what_is_wrong what_going_on what_with what_wrong what_happening what_went_wrong what_causes what_cause what_caused
what_reason what_reasons what_makes reason what_is_the_need what_the_need what_is_the_use | how: how what_steps |
how_much: how_much what_cost what_price how_expensive | how_many: how_many number_of | how_long: how_long
how_many_days how_many_weeks how_many_hours how_many_months how_many_years how_many_minutes how_much_time
what_duration | how_often: how_many_times how_often how_frequently | how_far: how_far | how_old: how_old | how_big:
how_big how_large | how_fast: how_fast how_quickly how_soon | how_tall: how_tall how_high | what: what what_going_on
what_with what_wrong what_happening what_happened what_is_with what_is_going_on | which: which
"""

QUANTIFIERS = """
all: all every everybody everyone | some: some any several anyone anybody someone somebody | always: always |
sometimes: sometimes | often: often frequently | rarely: rarely seldom | only: only exclusively solely just_one merely
| none: none never | half: half | partly: partly partially in_part | both: both | either: either | few: few | one:
one_of | some: a_few | average: average | median: median | most: most_of most_people the_majority majority_of |
starting: starting_salary starting_pay starting_price starting_wage entry_level | least_bound: at_least minimum min |
most_bound: at_most maximum max up_to
"""

ASPECTS = "used_to: used_to_be use_to_be formerly former | becoming: becoming | simultaneously: simultaneously"

TIMES = """
now: now currently nowadays today's right_now at_present these_days | today: today | tomorrow: tomorrow | yesterday:
yesterday | tonight: tonight | morning: morning | afternoon: afternoon | evening: evening | night: night | noon: noon
midday | midnight: midnight | last: last_week last_month last_year last_night | next: next_week next_month next_year |
ago: ago | last: last_season last_quarter last_semester last_term last_decade last_century last_summer last_winter
last_spring last_autumn last_weekend previous_week previous_month previous_year previous_quarter past_week past_month
past_year | this: this_season this_quarter this_semester this_week this_month this_year this_summer this_winter
this_weekend current_week current_month current_year current_quarter | next: next_season next_quarter next_semester
next_term next_summer next_winter next_weekend coming_week coming_month coming_year | spring: spring | summer: summer
| winter: winter | autumn: autumn | weekend: weekend
"""

MONTHS = """
january jan | february feb | march mar | april apr | may | june jun | july jul | august aug | september sep sept |
october oct | november nov | december dec
"""

WEEKDAYS = """
monday mon mondays | tuesday tue tues tuesdays | wednesday wed wednesdays | thursday thu thur thurs thursdays |
friday fri fridays | saturday sat saturdays | sunday sun sundays
"""

NUMBERS = """
zero:0 one:1 two:2 three:3 four:4 five:5 six:6 seven:7 eight:8 nine:9 ten:10 eleven:11 twelve:12 thirteen:13
fourteen:14 fifteen:15 sixteen:16 seventeen:17 eighteen:18 nineteen:19 twenty:20 thirty:30 forty:40 fourty:40 fifty:50
sixty:60 seventy:70 eighty:80 ninety:90 hundred:x100 thousand:x1000 million:x1000000 billion:x1000000000
trillion:x1000000000000 dozen:x12 twice:2 thrice:3 double:2 triple:3 half:0.5
"""

ORDINALS = """
first:1 second:2 third:3 fourth:4 fifth:5 sixth:6 seventh:7 eighth:8 ninth:9 tenth:10 eleventh:11 twelfth:12
thirteenth:13 fourteenth:14 fifteenth:15 sixteenth:16 seventeenth:17 eighteenth:18 nineteenth:19 twentieth:20
thirtieth:30 fortieth:40 fiftieth:50 hundredth:100
"""

ROLES = """
from: from out_of off | to: to into onto toward towards until till | than: than | over: over | by: by | with: with
using via through by_using | of: of for in on at about during per within | and: and or vs versus &
"""

FORMATS = """
short: brief briefly concise concisely in_short in_brief short_answer short_version | long: lengthy in_length |
detailed: detailed in_detail in_depth | one_sentence: one_sentence in_a_sentence | formal: formally formal_english |
informal: informally informal_english casual_english | simple: simple_terms simple_words plain_english layman |
technical: technical_terms | rhyme: rhyming | step_by_step: step_by_step
"""

DEGREES = """
fast: fastest faster quickest quicker | easy: easiest easier simplest simpler | cheap: cheapest cheaper | safe: safest
safer | large: largest larger biggest bigger | small: smallest smaller | tall: tallest taller | high: highest higher |
low: lowest lower | old: oldest older | young: youngest younger | strong: strongest stronger | weak: weakest weaker |
rich: richest richer wealthiest | poor: poorest | hot: hottest hotter warmest | cold: coldest colder | long: longest
longer | short: shortest shorter | near: nearest nearer closest closer | far: farthest furthest farther | deep:
deepest deeper | heavy: heaviest heavier | light: lightest lighter | healthy: healthiest healthier | new: newest newer
latest | early: earliest earlier | hard: hardest harder toughest | slow: slowest slower | smart: smartest smarter |
dangerous: deadliest most_dangerous | popular: most_popular | expensive: most_expensive priciest | common: most_common
| first: first | last: last | median: median | total: total
"""
