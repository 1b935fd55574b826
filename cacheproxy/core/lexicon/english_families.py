"""English words that belong together: forms of one word, synonyms, things of one kind. Data only."""

FORMS = """
begin began begun | become became | bring brought | catch caught | drive drove driven | fall fell fallen | feel felt
fly flew flown | forget forgot forgotten | hold held | keep kept | leave left | lend lent | meet met | read | ride
rode ridden run ran running | see saw seen | sell sold | send sent | sing sang sung | sit sat | sleep slept | speak
spoke spoken spend spent | stand stood | swim swam swum | take took taken | teach taught | throw threw thrown |
understand understood wear wore worn | win won | break broke broken | build built | eat ate eaten | drink drank
drunk | choose chose chosen grow grew grown | hide hid hidden | know knew known | lead led | pay paid | rise rose
risen | steal stole stolen freeze froze frozen | give gave given | shoot shot | find found | lose lost | buy bought
| make made get got obtain | high higher highest | low lower lowest | large larger largest | small smaller smallest
| big bigger biggest | old older oldest | young younger youngest | long longer longest | short shorter shortest |
cheap cheaper cheapest | heavy heavier heaviest | hot hotter hottest | cold colder coldest | rich richer richest |
poor poorer poorest | slow slower slowest | hard harder hardest | early earlier earliest | weak weaker weakest |
smart smarter smartest | tall taller tallest | wide wider widest | deep deeper deepest | safe safer safest | thin
thinner thinnest | thick thicker thickest | new newer newest | child children | woman women | man men | foot feet |
tooth teeth | goose geese | mouse mice | knife knives | leaf leaves | life lives | wife wives | half halves | good
better best | bad worse worst | far farther furthest | criterion criteria | phenomenon phenomena | analysis analyses
| crisis crises | datum data | index indices | matrix matrices | cost costs | die dies died dying | lie lying | mean
meant | forbid forbade forbidden | hear heard | draw drew drawn | cut | shrink shrank shrunk | sink sank sunk | beat
beaten | bite bit bitten | blow blew blown | burn burnt | deal dealt | dig dug | dream dreamt | feed fed | fight
fought | forgive forgave forgiven | hang hung | hurt | lay laid | lie lay lain | light lit | ring rang rung | seek
sought | shake shook shaken | shine shone | shut | slide slid | spread | spring sprang | stick stuck | strike struck
| swear swore sworn | sweep swept | tear tore torn | wake woke woken | weep wept | wind wound | show shown showed |
prove proven proved | strong stronger strongest | fast faster fastest | easy easier easiest | healthy healthier
healthiest | withdraw withdrew withdrawn withdrawal | arrive arrival | deliver delivery | apply applied applies |
try tried tries | carry carried | verify verified verifies verification | identify identified | usd dollar | choose
choice | cancel cancelled canceled cancelling canceling cancellation
"""

SYNONYMS = """
purchase buy | see watch show appear | speak talk | find locate discover | understand comprehend | get obtain
receive | odd weird strange | lose forget | multiple several many various | permissible permitted allowed possible |
option method way | incorrect wrong mistake error | birthday birth_date date_of_birth | height tall high | height
tall | united_states usa us america | anywhere everywhere | age young youngest old oldest older how_old | multiple
other | before previously | height tall high how_tall how_high | cost price charge fee expensive how_much | distance
far how_far | length long duration how_long | often frequency how_often | speed fast how_fast | number how_many |
size large how_big how_large | cash_machine cash_machines atm | recall remember | mail send | terrible awful suck |
immediately right_now instantly now | japanese japan | chinese china | russian russia | german germany | french
france | spanish spain | indian india | american usa america | british uk britain england | islam islamic | wait
delay long time | existing already | require requirement minimum | process processed pending | tongue language |
freezing freeze | buy purchase acquire | obtain receive | big large huge | begin start commence | end finish |
delete remove erase | fix repair mend | quick fast rapid speed | car automobile vehicle | phone mobile cellphone
smartphone | tv television | pc computer | laptop notebook | kid child children | doctor physician | house home |
movie film | picture photo image photograph | picture pic | job work career | salary wage pay earn income | salary
earning | cost price charge fee expensive | payment pay paid | transfer transaction transferred transferring | card
cards | happy glad | sad unhappy | advantage benefit pro pros upside | disadvantage drawback con cons downside |
method approach technique procedure | best top great greatest good better | book books | cheap inexpensive
affordable low-cost | error mistake bug | mobile cell | sick ill | disease illness | drug medicine medication | stop
quit cease | increase raise boost improve enhance | decrease reduce lower | reduce cut | learn study | smart
intelligent clever | rich wealthy | difficult hard tough | easy simple | important essential significant | required
need necessary requirement | require need | close shut | choose select pick | create make build develop | produce
make | writing write wrote written | meaning mean definition define | difference differ differentiate distinguish
compare comparison | reason cause why | happen occur | city town | country nation | usa us america u.s u.s.a
united_states | uk u.k britain united_kingdom | india | uae emirates | verify confirm authenticate validate
verification | identity id identification | account profile | cancel revert cancellation | withdraw withdrawal | atm
cash_machine cashpoint | arrive come arrival | delivery deliver ship shipping shipment | refund reimbursement
reimburse | top_up topup | passcode password pwd pass_code | login log_in sign_in signin logon log_on | logout
log_out sign_out signout | sign_up signup register registration enroll enrol | lost lose | stolen steal theft |
exchange swap change convert | rate rates | currency currencies | abroad overseas | travel trip journey traveling
travelling | vacation holiday | flight fly | hotel hotels | food meal | eat consume | drink drinks | exercise
workout | weight weigh | length long | width wide | depth deep | age old | distance far | frequency often | size big
| speed fast | temperature hot | quantity amount | amount much | number many | boyfriend bf | girlfriend gf |
relationship relation | marry marriage married wedding | die death dead died dies | live life lives living alive |
kill murder | love romance | law legal | legal lawful allowed permitted | allow permit let | engineer engineering |
program programming programme coding code | software application app apps | website site webpage | internet web
online | email e-mail mail | message text msg sms | video videos | music song songs | game games | company firm
business corporation | startup start-up | market marketing | money cash fund funds | bank banking | loan loans |
invest investment investing | stock share | tax taxes taxation | degree graduate graduation | university college |
school schools | exam examination test | prepare preparation | course class | interview interviews | student pupil |
teacher instructor | language languages | english | word words | sentence sentences | improve better enhance | skill
skills | experience experiences | opinion view thought | view views | review reviews | feature features function |
problem issue trouble | solution solve resolve answer | example sample instance | list enumerate | side_effect
adverse_effect | symptom sign | cure treat treatment remedy heal | pain ache hurt | headache migraine | stain spot |
rug carpet | tire tyre | flat punctured puncture | faster fast | recipe cook make | pancake pancakes | notebook
laptop | power turn_on | boot turn_on | turn_on switch_on | turn_off switch_off | remote home | earn make salary |
possible can | visit travel go | hour hours | opening open | president presidents | universe cosmos | world earth
globe | global worldwide | war conflict | attack assault | army military | government govt | politics political |
election elections vote | party parties | leader head | population inhabitants | author writer write | novel book |
popular famous well-known | famous renowned | nice good | terrible awful bad | pretty beautiful | female women woman
female | men man male | girl girls | boy boys | hair hairs | skin face | teeth tooth | foot feet | knife knives |
leaf leaves | mouse mice | goose geese | datum data | criterion criteria | phenomenon phenomena | analysis analyses
| crisis crises | link connect | update upgrade | crash crashed | slow slowly | download downloading | install setup
set_up | install installation | configure config configuration setup | operate work function run | wrong incorrect |
correct right proper accurate | correctly properly right | statement statements | charge charged | extra additional
more | fee fees | young age | beneficiary recipient payee | order ordered | track tracking | visa visas | need
require | new recent latest | latest newest current | now currently today | nowadays now | soon quickly | purpose
aim goal objective | effect impact influence affect | result outcome consequence | information info details detail |
describe explain | tutorial guide | beginner beginners newbie | hack hacking hacked | recover recovery retrieve
restore | reset resetting | block blocked | account accounts | contact reach | customer client | service services |
support assistance | insurance insurances | quit resign | boss manager | fire fired | rent rental | apartment flat |
buy buying | lawyer attorney | physics physical | chemistry chemical | biology biological | mathematics math maths |
cs computer_science | ai artificial_intelligence | ml machine_learning | iot internet_of_things | seo
search_engine_optimization | nyc new_york_city new_york | la los_angeles | sf san_francisco | ww1 wwi world_war_1
world_war_i | ww2 wwii world_war_2 world_war_ii | prime_minister pm | tea teas | climate_change global_warming |
explanation explain | translate translation | summarize summarise summary | generate produce | reply respond
response answer | analyze analyse analysis | optimize optimise | organize organise organization organisation |
recognize recognise | color colour | favorite favourite | center centre | behavior behaviour | license licence |
gray grey | program programme | theater theatre | neighbor neighbour | realize realise | apologize apologise |
defense defence | catalog catalogue | check cheque verify | jewelry jewellery | cancel cancelled canceled cancelling
canceling | travel traveled travelled | label labeled labelled | punctuate punctuation | appear show | according
think believe | personality character | believe belief | marijuana cannabis weed | bike bicycle cycle | motorbike
motorcycle | fridge refrigerator | couch sofa | autumn fall | soccer football | gas petrol gasoline fuel | elevator
lift | truck lorry | trash garbage rubbish | cab taxi | store shop | pants trousers | cookie biscuit | candy sweets
| mall shopping_center | vacation holidays | zip_code postcode postal_code
"""

KINDS = """
cat dog rabbit bird fish horse cow pig sheep goat chicken duck turtle snake hamster lion tiger bear wolf fox monkey
elephant whale shark dolphin bee ant spider frog lizard parrot puppy kitten mosquito | head neck shoulder arm elbow
wrist hand finger thumb chest back stomach belly hip leg thigh knee ankle foot toe eye ear nose mouth lip tongue
tooth throat heart lung liver kidney brain skin hair nail bone muscle thyroid pancreas spleen bladder colon amygdala
hippocampus cerebellum | red orange yellow green blue purple pink brown black white gray grey silver gold | apple
banana grape lemon mango pear peach cherry strawberry blueberry pineapple watermelon avocado tomato potato onion
garlic carrot cucumber lettuce spinach broccoli corn rice wheat oat barley pasta bread pizza burger sushi steak beef
pork lamb salmon tuna shrimp egg cheese butter milk cream yogurt honey sugar salt pepper flour chocolate | coffee
tea beer wine vodka whiskey rum gin juice soda water | soccer football basketball baseball tennis golf hockey
cricket rugby volleyball swimming boxing wrestling skiing badminton cycling chess | guitar piano violin drum flute
cello trumpet saxophone bass ukulele | doctor nurse teacher lawyer engineer accountant plumber electrician carpenter
pilot chef dentist architect pharmacist firefighter police soldier journalist farmer mechanic programmer designer |
mother father brother sister son daughter uncle aunt cousin grandmother grandfather wife husband nephew niece mom
dad | car bus train plane bike motorcycle boat ship truck helicopter scooter van tram subway | gold silver copper
iron steel aluminum titanium lead zinc tin nickel platinum bronze brass | oxygen hydrogen nitrogen carbon helium
sodium potassium calcium magnesium phosphorus sulfur chlorine iodine iron | sun moon earth mars venus jupiter saturn
uranus neptune pluto mercury | spring summer winter autumn | math physics chemistry biology history geography
economics psychology sociology philosophy statistics algebra calculus geometry astronomy | diabetes cancer asthma
flu cold malaria measles hepatitis pneumonia arthritis depression anxiety autism adhd dementia epilepsy stroke
eczema psoriasis anemia migraine covid hiv tuberculosis bronchitis | ibuprofen aspirin paracetamol acetaminophen
naproxen tylenol advil metformin insulin amoxicillin penicillin lisinopril omeprazole | python java javascript ruby
rust golang kotlin swift php perl scala typescript c++ c# haskell matlab | mysql postgres sqlite mongodb oracle
redis cassandra mariadb dynamodb elasticsearch | windows linux macos ubuntu android ios debian fedora chromeos |
chrome firefox safari edge opera | google facebook twitter instagram whatsapp snapchat tiktok youtube linkedin
pinterest reddit telegram discord slack netflix spotify amazon ebay uber lyft airbnb paypal venmo stripe | word
excel powerpoint outlook onenote access | aws azure gcp heroku docker kubernetes | branch repository repo commit tag
fork | file folder directory disk drive | username password email phone address pin | credit debit gift prepaid |
visa mastercard amex | checking savings | cheque cash | bachelor master phd diploma | breakfast lunch dinner brunch
supper | bedroom bathroom kitchen garage basement attic garden | north south east west | chicken turkey duck | ipad
iphone macbook imac airpods | xbox playstation nintendo | mean median mode variance | sine cosine tangent | noun
verb adjective adverb pronoun | circle square triangle rectangle cube sphere cylinder cone pentagon hexagon |
meiosis mitosis | plaintiff defendant | atom molecule electron proton neutron ion | bread cake pie cookie pancake
waffle muffin | england scotland wales ireland france germany spain italy portugal greece sweden norway denmark
finland poland russia ukraine turkey egypt china japan korea india pakistan bangladesh nepal thailand vietnam
indonesia malaysia singapore philippines australia canada mexico brazil argentina chile peru colombia usa uk austria
switzerland belgium netherlands iran iraq israel nigeria kenya ethiopia ghana morocco algeria | london paris berlin
madrid rome tokyo beijing shanghai delhi mumbai bangalore chennai hyderabad kolkata pune sydney melbourne toronto
vancouver chicago boston seattle dallas houston miami austin nyc los_angeles san_francisco dubai moscow istanbul |
texas california florida ohio georgia nevada arizona oregon virginia colorado michigan alaska hawaii | pregnant
elderly diabetic | infant toddler teenager adult baby child | wedding funeral birthday anniversary graduation
christmas easter halloween thanksgiving | invoice receipt refund payment quote | declined pending cancelled failed
reverted completed | earn spend save invest donate | install update remove configure | live sleep eat breathe
"""
