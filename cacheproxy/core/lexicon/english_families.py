"""English words that belong together: forms of one word, things of one kind. Data only."""

FORMS = """
india indian indians | japan japanese | china chinese | russia russian russians | germany german germans | france
french |
spain spanish | italy italian italians | canada canadian canadians | mexico mexican mexicans | brazil brazilian
brazilians | australia australian australians | turkey turkish | korea korean koreans | sweden swedish |
portugal portuguese | ireland irish | greece greek greeks | israel israeli israelis | pakistan pakistani pakistanis |
begin began begun | become became | bring brought | catch caught | drive drove driven | fall fell fallen | feel felt
fly flew flown | forget forgot forgotten | hold held | keep kept | leave left | lend lent | meet met | read | ride
rode ridden | run ran running | see saw seen | sell sold | send sent | sing sang sung | sit sat | sleep slept | speak
spoke spoken | spend spent | stand stood | swim swam swum | take took taken | teach taught | throw threw thrown |
understand understood | wear wore worn | win won | break broke broken | build built | eat ate eaten | drink drank
drunk | choose chose chosen | grow grew grown | hide hid hidden | know knew known | lead led | pay paid | rise rose
risen | steal stole stolen | freeze froze frozen | give gave given | shoot shot | find found | lose lost | buy bought
| make made | get got obtain | high higher highest | low lower lowest | large larger largest | small smaller smallest
| big bigger biggest | old older oldest | young younger youngest | long longer longest | short shorter shortest |
cheap cheaper cheapest | heavy heavier heaviest | hot hotter hottest | cold colder coldest | rich richer richest |
poor poorer poorest | slow slower slowest | hard harder hardest | early earlier earliest | weak weaker weakest | smart
smarter smartest | tall taller tallest | wide wider widest | deep deeper deepest | safe safer safest | thin thinner
thinnest | thick thicker thickest | new newer newest | child children | woman women | man men | foot feet | tooth
teeth | goose geese | mouse mice | knife knives | leaf leaves | life lives | wife wives | half halves | good better
best | bad worse worst | far farther furthest | criterion criteria | phenomenon phenomena | analysis analyses | crisis
crises | datum data | index indices | matrix matrices | cost costs | die dies died dying | lie lying | mean meant |
forbid forbade forbidden | hear heard | draw drew drawn | cut | shrink shrank shrunk | sink sank sunk | beat beaten |
bite bit bitten | blow blew blown | burn burnt | deal dealt | dig dug | dream dreamt | feed fed | fight fought |
forgive forgave forgiven | hang hung | hurt | lay laid | lie lay lain | light lit | ring rang rung | seek sought |
shake shook shaken | shine shone | shut | slide slid | spread | spring sprang | stick stuck | strike struck | swear
swore sworn | sweep swept | tear tore torn | wake woke woken | weep wept | wind wound | show shown showed | prove
proven proved | strong stronger strongest | fast faster fastest | easy easier easiest | healthy healthier healthiest |
withdraw withdrew withdrawn withdrawal | arrive arrival | deliver delivery | apply applied applies | try tried tries |
carry carried | verify verified verifies verification | identify identified | usd dollar | choose choice | cancel
cancelled canceled cancelling canceling cancellation | swell swelled swollen swelling | swing swung | inch inches |
learn learnt | spell spelt | smell smelt | lean leant | bind bound | bend bent | bleed bled | breed bred | cling clung
| creep crept | flee fled | fling flung | grind ground | kneel knelt | leap leapt | mow mown | sew sewn | slay slain |
sling slung | spin spun | spill spilt | spoil spoilt | sting stung | stride strode | strive strove | undo undid undone
| undergo underwent | overcome overcame | mislead misled | repay repaid | rebuild rebuilt | rewrite rewrote rewritten
| hit | quit | bet | marry married marries | study studied studies | copy copied copies | reply replied replies | deny
denied denies | occur occurred occurring | travel travelled | model modelled | prefer preferred | refer referred |
transfer transferred transferring | plan planned | lens lenses | bus buses | hero heroes | potato potatoes | tomato
tomatoes
"""

KINDS = """
cat dog rabbit bird fish horse cow pig sheep goat chicken duck turtle snake hamster lion tiger bear wolf fox monkey
elephant whale shark dolphin bee ant spider frog lizard parrot puppy kitten mosquito | head neck shoulder arm elbow
wrist hand finger thumb chest back stomach belly hip leg thigh knee ankle foot toe eye ear nose mouth lip tongue tooth
throat heart lung liver kidney brain skin hair nail bone muscle thyroid pancreas spleen bladder colon amygdala
hippocampus cerebellum | red orange yellow green blue purple pink brown black white gray grey silver gold | apple
banana grape lemon mango pear peach cherry strawberry blueberry pineapple watermelon avocado tomato potato onion
garlic carrot cucumber lettuce spinach broccoli corn rice wheat oat barley pasta bread pizza burger sushi steak beef
pork lamb salmon tuna shrimp egg cheese butter milk cream yogurt honey sugar salt pepper flour chocolate | coffee tea
beer wine vodka whiskey rum gin juice soda water | soccer football basketball baseball tennis golf hockey cricket
rugby volleyball swimming boxing wrestling skiing badminton cycling chess | guitar piano violin drum flute cello
trumpet saxophone bass ukulele | doctor nurse teacher lawyer engineer accountant plumber electrician carpenter pilot
chef dentist architect pharmacist firefighter police soldier journalist farmer mechanic programmer designer | mother
father brother sister son daughter uncle aunt cousin grandmother grandfather wife husband nephew niece mom dad | car
bus train plane bike motorcycle boat ship truck helicopter scooter van tram subway | gold silver copper iron steel
aluminum titanium lead zinc tin nickel platinum bronze brass | oxygen hydrogen nitrogen carbon helium sodium potassium
calcium magnesium phosphorus sulfur chlorine iodine iron | sun moon earth mars venus jupiter saturn uranus neptune
pluto mercury | spring summer winter autumn | math physics chemistry biology history geography economics psychology
sociology philosophy statistics algebra calculus geometry astronomy | diabetes cancer asthma flu cold malaria measles
hepatitis pneumonia arthritis depression anxiety autism adhd dementia epilepsy stroke eczema psoriasis anemia migraine
covid hiv tuberculosis bronchitis | ibuprofen aspirin paracetamol acetaminophen naproxen tylenol advil metformin
insulin amoxicillin penicillin lisinopril omeprazole | python java javascript ruby rust golang kotlin swift php perl
scala typescript c++ c# haskell matlab | mysql postgres sqlite mongodb oracle redis cassandra mariadb dynamodb
elasticsearch | windows linux macos ubuntu android ios debian fedora chromeos | chrome firefox safari edge opera |
google facebook twitter instagram whatsapp snapchat tiktok youtube linkedin pinterest reddit telegram discord slack
netflix spotify amazon ebay uber lyft airbnb paypal venmo stripe | word excel powerpoint outlook onenote access | aws
azure gcp heroku docker kubernetes | branch repository repo commit tag fork | file folder directory disk drive |
username password email phone address pin | credit debit gift prepaid | visa mastercard amex | checking savings |
cheque cash | bachelor master phd diploma | breakfast lunch dinner brunch supper | bedroom bathroom kitchen garage
basement attic garden | north south east west | chicken turkey duck | ipad iphone macbook imac airpods | xbox
playstation nintendo | mean median mode variance | sine cosine tangent | noun verb adjective adverb pronoun | circle
square triangle rectangle cube sphere cylinder cone pentagon hexagon | meiosis mitosis | plaintiff defendant | atom
molecule electron proton neutron ion | bread cake pie cookie pancake waffle muffin | england scotland wales ireland
france germany spain italy portugal greece sweden norway denmark finland poland russia ukraine turkey egypt china
japan korea india pakistan bangladesh nepal thailand vietnam indonesia malaysia singapore philippines australia canada
mexico brazil argentina chile peru colombia usa uk austria switzerland belgium netherlands iran iraq israel nigeria
kenya ethiopia ghana morocco algeria | london paris berlin madrid rome tokyo beijing shanghai delhi mumbai bangalore
chennai hyderabad kolkata pune sydney melbourne toronto vancouver chicago boston seattle dallas houston miami austin
nyc los_angeles san_francisco dubai moscow istanbul | texas california florida ohio georgia nevada arizona oregon
virginia colorado michigan alaska hawaii | pregnant elderly diabetic | infant toddler teenager adult baby child |
wedding funeral birthday anniversary graduation christmas easter halloween thanksgiving | invoice receipt refund
payment quote | declined pending cancelled failed reverted completed | earn spend save invest donate | install update
remove configure | live sleep eat breathe
"""
