"""English words that the guards of `core.likeness` know. Data only; `lexicon.parse` says how it is written."""

STOP = """
a an the this that these those there here it its itself i me my mine myself you your yours yourself we us our ours they
them their theirs he him his she her hers one ones oneself someone somebody anyone anybody people person
is are am was were be been being do does did done doing has have had having will would shall should can could may might
must ought get gets got gotten getting let lets go goes going and or but if then so as at by on in of for to with about
into onto upon than please kindly thanks thank hi hello hey dear help ok okay well just also too very really actually
quite rather simply basically indeed truly maybe perhaps possibly probably likely kind sort way ways thing things
something anything everything stuff tell show explain describe give know want need wish like love wonder wondering
question ask asking asked answer look looking find think thinking thought mean means say said try trying tried seem seems
appear appeared happen happens happened happening able possible what which who whom whose when where why how whether
advice tip suggestion recommend suggest idea exactly specific particular certain different various other another
still already yet even ever much more many lot lots some any each
sir madam folks everyone else own such that's vs versus etc eg ie via per re am pm quick quickly currently according accord again
excuse hey assist aid type types kinds sorts please list name required requirement requirements need needs needed option options still
step steps procedure process method order able use using used
out off through throughout around across along away among behind beyond during within toward towards until till since upon
out_of because due although though despite while whereas once both either such else instead rather up back down_to
good better best great greatest nice awesome amazing interesting useful effective efficient_way top ultimate favorite favourite perfect
ideal suitable proper properly main major key important considered known called named regarded termed overall general generally
truly literally somehow fact in_fact honestly clearly obviously apparently essentially especially particularly usually normally
commonly typically typical common must available existing exist exists considered called meant meaning
time times role case cases point part topic example examples instance reason reasons case sense matter respect regard terms
come comes came coming become becomes became put puts set keep keeps kept make makes made making take takes took taken taking
provide provides offer offers include includes consider considers feel feels felt call calls work works worked working going gone
plan planning start begin end up ended manage manages possible available thoughts views opinion opinions view experience
world life today day days nowadays recently currently presently now sometime anytime one's various several few
bit little more extra hard instruct guide guidance teach enough seriously perfectly fully completely totally absolutely entirely
exist there's hers his everywhere anywhere somewhere nowhere_else whenever wherever whatever whichever whoever however
doing undergo let lets let's assist assistance explanation explanations explain explaining explained figure checking check
approximately desperately pretty sure attempt attempted attempting almost far such_as so_far couple upcoming request sincerely extremely super experienced
simply merely maybe oh um uh hmm yeah yes pls folks mate buddy bro dude
apart from aside along own self itself per each other others another any
"""

WEAK = """
yesterday earlier already vacation holiday urgent urgently appreciate look looks looked mistake mistakes
problem problems issue issues foreign open opening realise realize notice noticed applied similar manner form functions function series
easy easier easiest easily simple simplest fast faster fastest quick quickest efficient new newer newest latest recent current
popular famous well-known different early special certain whole entire original old big large small huge
strong high low long short further additional daily regular standard basic normal natural personal own modern
successfully practical actual main several able ready live living lives person people human humans place places area areas website site sites
online internet app apps program programs tool tools list type name names detail details information info process system work job
history field career industry company business market service services product products option options technique
techniques strategy strategies question questions answer answers book books post article read reading watch see seen saw
talk talks talking speak write learn learning study studying understand understanding know improve increase grow try start
started begin get find choose select buy create build develop prepare preparation handle deal become remain stay move
change affect cause causes result results effect happen last first next again together alone immediately soon later
wait waiting pay paid receive received send sent accept return visit contact reach hold held
"""

NEGATORS = "not no never neither nor nobody nothing nowhere cannot without none hardly barely nt non unless"

NEGATIVES = """
illegal: legal | unlawful: legal | unsafe: safe | incorrect: right | wrong: right | invalid: valid | 
unable: can | unavailable: available | unhealthy: healthy | unhappy: happy | unfair: fair | unlimited: limit
uncommon: common | unusual: usual | unlikely: likely | unknown: know | unnecessary: necessary | unpaid: pay
unauthorized: authorized | unauthorised: authorized | unsupported: support | unsecured: secure | insecure: secure
inactive: active | informal: formal | incomplete: complete | incompatible: compatible | inappropriate: appropriate
irreversible: reversible | irregular: regular | irrelevant: relevant | immature: mature | immoral: moral
impolite: polite | imperfect: perfect | dishonest: honest | disloyal: loyal | unreliable: reliable
unreasonable: reasonable | uncertain: certain | unconscious: conscious | uneven: even | unequal: equal
unfinished: finish | unofficial: official | unpopular: popular | unrelated: relate | unrestricted: restrict
unsuccessful: success | unsuitable: suitable | untrue: true | unwanted: want | unwise: wise | infinite: finite
indirect: direct | insufficient: sufficient | invisible: visible | involuntary: voluntary | noncompliant: compliant
nonprofit: profit | outside: in | abnormal: normal
atypical: typical | asymmetric: symmetric | unrealistic: realistic | unethical: ethical | unstable: stable
undesirable: desirable | unacceptable: acceptable | unaware: aware | unbalanced: balanced | unmarried: married
disapprove: approve | disagree: agree | dislike: like | disobey: obey | distrust: trust | misunderstand: understand
unpleasant: pleasant | unfriendly: friendly | ungrateful: grateful | unprotected: protect | unsigned: sign
unverified: verify | unread: read | unused: use | unedited: edit | unanswered: answer | undocumented: document
"""

SOFT = """
hard problem problems issue issues miss avoid prevent stop stopped absent error few little less lost loses lose forget
forgot forgotten wrong mistake impossible fix help
"""

FAILURES = """
trouble difficulty difficulties difficult fail fails failed failing failure missing refuse refused reject rejected declined decline
deny denied denies lack broken stuck unable
"""

OPPOSITES = """
enable activate / disable deactivate
on / off
allow permit / forbid prohibit ban disallow block prevent
lock / unlock
block / unblock
increase raise grow boost rise / decrease reduce lower shrink drop fall
gain / lose
win / lose
up / down
upgrade / downgrade
install / uninstall
add / remove delete subtract
create / delete destroy
insert / delete
buy purchase / sell
import / export
upload / download
open / close
start begin commence / stop end finish quit
before / after
older earlier / newer later
early / late
old / new
old / young
sooner / later
high / low
large big huge / small little tiny
largest biggest greatest / smallest
long / short
tall / short
wide / narrow
thick / thin
fast quick / slow
similar alike similarity / differ different difference
hot warm / cold cool
heat / cool
hard difficult / easy
hard / soft
heavy / light
dark / light
cheap inexpensive / expensive costly
rich wealthy / poor
strong / weak
good / bad
best / worst
better / worse
more / less fewer
most / least fewest
many / few
maximum max / minimum min
maximize maximise / minimize minimise
pro pros advantage benefit upside / con cons disadvantage drawback downside
positive / negative
true / false
right / wrong
right / left
safe / dangerous
love like / hate dislike
for / against
support / oppose
accept approve / reject decline deny refuse
include / exclude
inside / outside
internal / external
inbound incoming / outbound outgoing
input / output
send / receive
give / take
lend / borrow
deposit / withdraw
debit / credit
arrive / depart leave
arrival / departure
enter / exit leave
push / pull
attach / detach
connect / disconnect
subscribe / unsubscribe
follow / unfollow
mute / unmute
hide / show
show / conceal
expand / collapse
zip compress / unzip decompress extract
encrypt / decrypt
encode / decode
freeze / unfreeze thaw
mount / unmount
bind / unbind
load / unload
pin / unpin
sign_in / sign_out
sign_up / cancel
turn_on / turn_off
top / bottom
front / back
first / last
next / previous
above over / below under beneath
north northern / south southern
east eastern / west western
male man / female woman
men / women
boy / girl
husband / wife
mother mom / father dad
son / daughter
brother / sister
king / queen
boyfriend / girlfriend
he / she
parent / child
employer / employee
buyer / seller
teacher / student
landlord / tenant
public / private
single / married
marry / divorce
optional / required mandatory
manual / automatic
manually / automatically
online / offline
indoor / outdoor
domestic / international foreign
local / remote
permanent / temporary
full / empty
full / partial
complete / partial
fixed / variable
static / dynamic
synchronous / asynchronous
sync / async
ascending / descending
vertical / horizontal
row / column
rows / columns
horizontal / vertical
convex / concave
acid / base
acidic / alkaline
solid / liquid
alive / dead
birth / death
born / die
day / night
morning / evening
sunrise / sunset
summer / winter
profit / loss
asset / liability
supply / demand
cause / effect
question / answer
teach / learn
employ hire / fire dismiss
join / leave
merge / split
combine / separate
attack / defend
victory / defeat
success / failure
succeed / fail
pass / fail
ally / enemy
friend / enemy
optimist / pessimist
optimistic / pessimistic
conservative / liberal
hyper / hypo
hypertension / hypotension
hyperglycemia / hypoglycemia
hyperthyroidism / hypothyroidism
inflation / deflation
inhale / exhale
immigrate / emigrate
immigration / emigration
agonist / antagonist
introvert / extrovert
introverted / extroverted
client / server
sender / recipient receiver
source / destination
parallel / series
parallel / sequential
singular / plural
vowel / consonant
odd / even
prime / composite
rational / irrational
calm / nervous anxious
brave / coward
happy / sad
religious / secular
patient / impatient
humble / arrogant
active / passive
strict / lenient
polite / rude
clean / dirty
wet / dry
formal / casual
common / rare
always / never
rarely seldom / often frequently
always / sometimes
temporarily / permanently
backup / restore
commit / rollback
approve / deny
gross / net
wholesale / retail
ancient / modern
urban / rural
ugly / beautiful
smart intelligent clever / stupid dumb
fat / thin
benign / malignant
acute / chronic
viral / bacterial
virus / bacteria
proximal / distal
artery / vein
systolic / diastolic
systole / diastole
mitosis / meiosis
hopeful / hopeless
useful / useless
careful / careless
harmful / harmless
fearful / fearless
painful / painless
confident / insecure
proactive / reactive
responsible / irresponsible
visible / invisible hidden
logged_in / logged_out
backward / forward
backwards / forwards
pessimism / optimism
defensive / offensive
progressive / conservative
organized / messy
specific / general vague
generous / stingy
lazy / hardworking
defend / accuse
create / destroy
build / demolish
tighten / loosen
lengthen / shorten
strengthen / weaken
speed_up / slow_down
wake / sleep
reward / punish
praise / criticize criticise
remember / forget
appear / disappear
allowed / forbidden prohibited banned
"""

FORMS = """
begin began begun | become became | bring brought | catch caught | drive drove driven | fall fell fallen | feel felt fly flew flown | forget forgot forgotten | hold held | keep kept | leave left | lend lent | meet met | read | ride rode ridden run ran running | see saw seen | sell sold | send sent | sing sang sung | sit sat | sleep slept | speak spoke spoken spend spent | stand stood | swim swam swum | take took taken | teach taught | throw threw thrown | understand understood wear wore worn | win won | break broke broken | build built | eat ate eaten | drink drank drunk | choose chose chosen grow grew grown | hide hid hidden  | know knew known | lead led | pay paid | rise rose risen | steal stole stolen freeze froze frozen | give gave given | shoot shot | find found | lose lost | buy bought | make made get got obtain
child children | woman women | man men | foot feet | tooth teeth | goose geese | mouse mice | knife knives | leaf leaves | life lives
wife wives | half halves | good better best | bad worse worst | far farther furthest | criterion criteria | phenomenon phenomena
analysis analyses | crisis crises | datum data | index indices | matrix matrices | cost costs | die dies died dying | lie lying
mean meant | forbid forbade forbidden | hear heard | draw drew drawn | cut | shrink shrank shrunk | sink sank sunk | beat beaten | bite bit bitten
blow blew blown | burn burnt | deal dealt | dig dug | dream dreamt | feed fed | fight fought | forgive forgave forgiven | hang hung | hurt
lay laid | lie lay lain | light lit | ring rang rung | seek sought | shake shook shaken | shine shone | shut | slide slid | spread | spring sprang
stick stuck | strike struck | swear swore sworn | sweep swept | tear tore torn | wake woke woken | weep wept | wind wound | show shown showed
prove proven proved | strong stronger strongest | fast faster fastest | easy easier easiest | healthy healthier healthiest
withdraw withdrew withdrawn withdrawal | arrive arrival | deliver delivery | apply applied applies | try tried tries | carry carried
verify verified verifies verification | identify identified | usd dollar | choose choice | cancel cancelled canceled cancelling canceling cancellation
"""

SYNONYMS = """
purchase buy | see watch show appear | speak talk | find locate discover | understand comprehend | get obtain receive | odd weird strange
lose forget | multiple several many various | permissible permitted allowed possible | option method way | incorrect wrong mistake error
birthday birth_date date_of_birth | height tall high | height tall | united_states usa us america | anywhere everywhere | age young youngest old oldest older how_old | multiple other | before previously | height tall high how_tall how_high | cost price charge fee expensive how_much | distance far how_far | length long duration how_long | often frequency how_often | speed fast how_fast | number how_many | size large how_big how_large
cash_machine cash_machines atm | recall remember | mail send | terrible awful suck | immediately right_now instantly now | japanese japan | chinese china | russian russia | german germany
french france | spanish spain | indian india | american usa america | british uk britain england | islam islamic
wait delay long time | existing already | require requirement minimum | process processed pending | tongue language | freezing freeze

buy purchase acquire | obtain receive | big large huge | begin start commence | end finish | delete remove erase
fix repair mend | quick fast rapid speed | car automobile vehicle | phone mobile cellphone smartphone | tv television
pc computer | laptop notebook | kid child children | doctor physician | house home | movie film | picture photo image photograph
picture pic | job work career | salary wage pay earn income | salary earning | cost price charge fee expensive
payment pay paid | transfer transaction transferred transferring | card cards | happy glad | sad unhappy
advantage benefit pro pros upside | disadvantage drawback con cons downside | method approach technique procedure
best top great greatest good better | book books | cheap inexpensive affordable low-cost | error mistake bug
mobile cell | sick ill | disease illness | drug medicine medication | stop quit cease | increase raise boost improve enhance
decrease reduce lower | reduce cut | learn study | smart intelligent clever | rich wealthy | difficult hard tough
easy simple | important essential significant | required need necessary requirement | require need | close shut
choose select pick | create make build develop | produce make | writing write wrote written | meaning mean definition define
difference differ differentiate distinguish compare comparison | reason cause why | happen occur | city town
country nation | usa us america u.s u.s.a united_states | uk u.k britain united_kingdom | india | uae emirates
verify confirm authenticate validate verification | identity id identification | account profile | cancel revert cancellation
withdraw withdrawal | atm cash_machine cashpoint | arrive come arrival | delivery deliver ship shipping shipment
refund reimbursement reimburse | top_up topup | passcode password pwd pass_code | login log_in sign_in signin logon log_on
logout log_out sign_out signout | sign_up signup register registration enroll enrol | lost lose | stolen steal theft
exchange swap change convert | rate rates | currency currencies | abroad overseas | travel trip journey traveling travelling
vacation holiday | flight fly | hotel hotels | food meal | eat consume | drink drinks | exercise workout | weight weigh
height tall | length long | width wide | depth deep | age old | distance far | frequency often | size big
speed fast | temperature hot | quantity amount | amount much | number many | boyfriend bf | girlfriend gf | relationship relation
marry marriage married wedding | die death dead died dies | live life lives living alive | kill murder | love romance
law legal | legal lawful allowed permitted | allow permit let | engineer engineering | program programming programme coding code
software application app apps | website site webpage | internet web online | email e-mail mail | message text msg sms
video videos | music song songs | game games | company firm business corporation | startup start-up | market marketing
money cash fund funds | bank banking | loan loans | invest investment investing | stock share | tax taxes taxation
degree graduate graduation | university college | school schools | exam examination test | prepare preparation | course class
interview interviews | student pupil | teacher instructor | language languages | english | word words | sentence sentences
improve better enhance | skill skills | experience experiences | opinion view thought | view views | review reviews
feature features function | problem issue trouble | solution solve resolve answer | example sample instance | list enumerate
side_effect adverse_effect | symptom sign | cure treat treatment remedy heal | pain ache hurt | headache migraine
stain spot | rug carpet | tire tyre | flat punctured puncture | faster fast | recipe cook make | pancake pancakes
notebook laptop | power turn_on | boot turn_on | turn_on switch_on | turn_off switch_off | remote home
earn make salary | possible can | visit travel go | hour hours | opening open | president presidents | universe cosmos
world earth globe | global worldwide | war conflict | attack assault | army military | government govt | politics political
election elections vote | party parties | leader head | population inhabitants | author writer write | novel book
popular famous well-known | famous renowned | nice good | terrible awful bad | pretty beautiful | female women woman female
men man male | girl girls | boy boys | hair hairs | skin face | teeth tooth | foot feet | knife knives | leaf leaves
mouse mice | goose geese | datum data | criterion criteria | phenomenon phenomena | analysis analyses | crisis crises
link connect | update upgrade | crash crashed | slow slowly | download downloading | install setup set_up
install installation | configure config configuration setup | operate work function run | wrong incorrect | correct right proper accurate
correctly properly right | statement statements | charge charged | extra additional more | fee fees | young age | beneficiary recipient payee
order ordered | track tracking | visa visas | need require | new recent latest | latest newest current | now currently today
nowadays now | soon quickly | purpose aim goal objective | effect impact influence affect | result outcome consequence
information info details detail | describe explain | tutorial guide | beginner beginners newbie | hack hacking hacked | recover recovery retrieve restore
reset resetting | block blocked | account accounts | contact reach | customer client | service services | support assistance
insurance insurances | quit resign | boss manager | fire fired | rent rental | apartment flat | buy buying | lawyer attorney
physics physical | chemistry chemical | biology biological | mathematics math maths | cs computer_science | ai artificial_intelligence
ml machine_learning | iot internet_of_things | seo search_engine_optimization | nyc new_york_city new_york | la los_angeles | sf san_francisco
ww1 wwi world_war_1 world_war_i | ww2 wwii world_war_2 world_war_ii | prime_minister pm | tea teas | climate_change global_warming
explanation explain | translate translation | summarize summarise summary | generate produce | reply respond response answer
analyze analyse analysis | optimize optimise | organize organise organization organisation | recognize recognise | color colour | favorite favourite
center centre | behavior behaviour | license licence | gray grey | program programme | theater theatre | neighbor neighbour
realize realise | apologize apologise | defense defence | catalog catalogue | check cheque verify | jewelry jewellery
cancel cancelled canceled cancelling canceling | travel traveled travelled | label labeled labelled | punctuate punctuation | appear show
according think believe | personality character | believe belief | marijuana cannabis weed | bike bicycle cycle | motorbike motorcycle
fridge refrigerator | couch sofa | autumn fall | soccer football | gas petrol gasoline fuel | elevator lift | truck lorry | trash garbage rubbish
cab taxi | store shop | pants trousers | cookie biscuit | candy sweets | mall shopping_center | vacation holidays | zip_code postcode postal_code
"""

QUESTIONS = """
who: who whom whose which_person what_person
when: when what_time what_date what_day what_year which_year
where: where what_place which_place what_places what_location
why: why how_come what_happened what_is_with what_is_going_on what_is_wrong what_went_wrong what_causes what_cause what_caused what_reason what_reasons what_makes reason
how: how what_steps
how_much: how_much what_cost what_price how_expensive
how_many: how_many number_of
how_long: how_long how_many_days how_many_weeks how_many_hours how_many_months how_many_years how_many_minutes how_much_time what_duration
how_often: how_often how_frequently
how_far: how_far
how_old: how_old
how_big: how_big how_large
how_fast: how_fast how_quickly how_soon
how_tall: how_tall how_high
what: what what_happened what_is_with what_is_going_on
which: which
"""

QUANTIFIERS = """
all: all every everybody everyone
some: some any several
always: always
sometimes: sometimes
often: often frequently
rarely: rarely seldom
only: only exclusively solely just_one merely
none: none never
half: half
both: both
either: either
average: average median
starting: starting_salary starting_pay starting_price starting_wage entry_level
least_bound: at_least minimum min
most_bound: at_most maximum max up_to
"""

ASPECTS = """
used_to: used_to_be use_to_be formerly former
becoming: becoming
simultaneously: simultaneously
"""

TIMES = """
now: now currently nowadays today's right_now at_present these_days
today: today
tomorrow: tomorrow
yesterday: yesterday
tonight: tonight
morning: morning
afternoon: afternoon
evening: evening
night: night
noon: noon midday
midnight: midnight
last: last_week last_month last_year last_night
next: next_week next_month next_year
ago: ago
spring: spring
summer: summer
winter: winter
autumn: autumn
weekend: weekend
"""

MONTHS = """january jan|february feb|march mar|april apr|may|june jun|july jul|august aug|september sep sept|october oct|
november nov|december dec"""

WEEKDAYS = """monday mon|tuesday tue tues|wednesday wed|thursday thu thur thurs|friday fri|saturday sat|sunday sun"""

NUMBERS = """
zero:0 one:1 two:2 three:3 four:4 five:5 six:6 seven:7 eight:8 nine:9 ten:10 eleven:11 twelve:12 thirteen:13 fourteen:14
fifteen:15 sixteen:16 seventeen:17 eighteen:18 nineteen:19 twenty:20 thirty:30 forty:40 fourty:40 fifty:50 sixty:60
seventy:70 eighty:80 ninety:90 hundred:x100 thousand:x1000 million:x1000000 billion:x1000000000 trillion:x1000000000000
dozen:x12 twice:2 thrice:3 double:2 triple:3 half:0.5
"""

ORDINALS = """
first:1 second:2 third:3 fourth:4 fifth:5 sixth:6 seventh:7 eighth:8 ninth:9 tenth:10 eleventh:11 twelfth:12
"""

ROLES = """
from: from out_of off
to: to into onto toward towards until till
than: than
over: over
by: by
with: with using via through by_using
of: of for in on at about during per within
and: and or vs versus &
"""

FORMATS = """
short: brief briefly concise concisely in_short in_brief short_answer short_version | long: lengthy in_length
detailed: detailed in_detail in_depth | one_sentence: one_sentence in_a_sentence | formal: formally formal_english
informal: informally informal_english casual_english | simple: simple_terms simple_words plain_english layman
technical: technical_terms | rhyme: rhyming | step_by_step: step_by_step
"""

KINDS = """
cat dog rabbit bird fish horse cow pig sheep goat chicken duck turtle snake hamster lion tiger bear wolf fox monkey elephant whale shark dolphin bee ant spider frog lizard parrot puppy kitten mosquito
head neck shoulder arm elbow wrist hand finger thumb chest back stomach belly hip leg thigh knee ankle foot toe eye ear nose mouth lip tongue tooth throat heart lung liver kidney brain skin hair nail bone muscle thyroid pancreas spleen bladder colon amygdala hippocampus cerebellum
red orange yellow green blue purple pink brown black white gray grey silver gold
apple banana grape lemon mango pear peach cherry strawberry blueberry pineapple watermelon avocado tomato potato onion garlic carrot cucumber lettuce spinach broccoli corn rice wheat oat barley pasta bread pizza burger sushi steak beef pork lamb salmon tuna shrimp egg cheese butter milk cream yogurt honey sugar salt pepper flour chocolate
coffee tea beer wine vodka whiskey rum gin juice soda water
soccer football basketball baseball tennis golf hockey cricket rugby volleyball swimming boxing wrestling skiing badminton cycling chess
guitar piano violin drum flute cello trumpet saxophone bass ukulele
doctor nurse teacher lawyer engineer accountant plumber electrician carpenter pilot chef dentist architect pharmacist firefighter police soldier journalist farmer mechanic programmer designer
mother father brother sister son daughter uncle aunt cousin grandmother grandfather wife husband nephew niece mom dad
car bus train plane bike motorcycle boat ship truck helicopter scooter van tram subway
gold silver copper iron steel aluminum titanium lead zinc tin nickel platinum bronze brass
oxygen hydrogen nitrogen carbon helium sodium potassium calcium magnesium phosphorus sulfur chlorine iodine iron
sun moon earth mars venus jupiter saturn uranus neptune pluto mercury
spring summer winter autumn
math physics chemistry biology history geography economics psychology sociology philosophy statistics algebra calculus geometry astronomy
diabetes cancer asthma flu cold malaria measles hepatitis pneumonia arthritis depression anxiety autism adhd dementia epilepsy stroke eczema psoriasis anemia migraine covid hiv tuberculosis bronchitis
ibuprofen aspirin paracetamol acetaminophen naproxen tylenol advil metformin insulin amoxicillin penicillin lisinopril omeprazole
python java javascript ruby rust golang kotlin swift php perl scala typescript c++ c# haskell matlab
mysql postgres sqlite mongodb oracle redis cassandra mariadb dynamodb elasticsearch
windows linux macos ubuntu android ios debian fedora chromeos
chrome firefox safari edge opera
google facebook twitter instagram whatsapp snapchat tiktok youtube linkedin pinterest reddit telegram discord slack netflix spotify amazon ebay uber lyft airbnb paypal venmo stripe
word excel powerpoint outlook onenote access
aws azure gcp heroku docker kubernetes
branch repository repo commit tag fork
file folder directory disk drive
username password email phone address pin
credit debit gift prepaid
visa mastercard amex
checking savings
cheque cash
bachelor master phd diploma
breakfast lunch dinner brunch supper
bedroom bathroom kitchen garage basement attic garden
north south east west
chicken turkey duck
ipad iphone macbook imac airpods
xbox playstation nintendo
mean median mode variance
sine cosine tangent
noun verb adjective adverb pronoun
circle square triangle rectangle cube sphere cylinder cone pentagon hexagon
meiosis mitosis
plaintiff defendant
atom molecule electron proton neutron ion
bread cake pie cookie pancake waffle muffin
england scotland wales ireland france germany spain italy portugal greece sweden norway denmark finland poland russia ukraine turkey egypt china japan korea india pakistan bangladesh nepal thailand vietnam indonesia malaysia singapore philippines australia canada mexico brazil argentina chile peru colombia usa uk austria switzerland belgium netherlands iran iraq israel nigeria kenya ethiopia ghana morocco algeria
london paris berlin madrid rome tokyo beijing shanghai delhi mumbai bangalore chennai hyderabad kolkata pune sydney melbourne toronto vancouver chicago boston seattle dallas houston miami austin nyc los_angeles san_francisco dubai moscow istanbul
texas california florida ohio georgia nevada arizona oregon virginia colorado michigan alaska hawaii
pregnant elderly diabetic
infant toddler teenager adult baby child
wedding funeral birthday anniversary graduation christmas easter halloween thanksgiving
invoice receipt refund payment quote
declined pending cancelled failed reverted completed
earn spend save invest donate
install update remove configure
live sleep eat breathe
"""

DEGREES = """
fast: fastest faster quickest quicker | easy: easiest easier simplest simpler | cheap: cheapest cheaper | safe: safest safer
large: largest larger biggest bigger | small: smallest smaller | tall: tallest taller highest higher | old: oldest older
young: youngest younger | strong: strongest stronger | weak: weakest weaker | rich: richest richer wealthiest | poor: poorest
hot: hottest hotter warmest | cold: coldest colder | long: longest longer | short: shortest shorter | near: nearest nearer closest closer
far: farthest furthest farther | deep: deepest deeper | heavy: heaviest heavier | light: lightest lighter | healthy: healthiest healthier
new: newest newer latest | early: earliest earlier | hard: hardest harder toughest | slow: slowest slower | smart: smartest smarter
dangerous: deadliest most_dangerous | popular: most_popular | expensive: most_expensive priciest | common: most_common
first: first | last: last | median: median | total: total
"""
