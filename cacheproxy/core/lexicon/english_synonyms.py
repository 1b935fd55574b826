"""English words that may stand for each other in a question. Data only."""

SYNONYMS = """
successful success succeed succeeded successfully | visitor visitors visit visited tourist | auto automatic
automatically | legit legitimate | tech technology | teen teenager | videogames games | uses applications usage |
equipment tools gear | pic picture photo | most majority mostly | daytime day | fat overweight obese obesity | lost
defeated beaten | see-through transparent clear | hourly per_hour each_hour every_hour an_hour | late delayed overdue
behind_schedule | waterproof water_resistant water_proof | probability chance odds likelihood probabilities chances |
donald trump | hillary clinton | barack obama | narendra modi | vladimir putin | mahatma gandhi | adolf hitler | elon
musk | mark zuckerberg | albert einstein | william shakespeare | isaac newton | leonardo da_vinci | google chrome |
purchase buy | see watch show appear | speak talk | find locate discover | understand comprehend | get obtain receive
| odd weird strange | lose forget | multiple several many various | permissible permitted allowed possible | option
method way | incorrect wrong mistake error | birthday birth_date date_of_birth | height tall high | height tall |
united_states usa us america | anywhere everywhere | age young youngest old oldest older how_old | multiple other |
before previously | height tall high how_tall how_high | cost price charge fee expensive how_much | distance far
how_far | length long duration how_long | often frequency how_often | speed fast how_fast | number how_many | size
large how_big how_large | cash_machine cash_machines atm | recall remember | mail send | terrible awful suck |
immediately right_now instantly now | japanese japan | chinese china | russian russia | german germany | french france
| spanish spain | indian india | american usa america | british uk britain england | islam islamic | wait delay long
time | existing already | require requirement minimum | process processed pending | tongue language | freezing freeze
| buy purchase acquire | obtain receive | big large huge | begin start commence | end finish | delete remove erase |
fix repair mend | quick fast rapid speed | car automobile vehicle | phone mobile cellphone smartphone | tv television
| pc computer | laptop notebook | kid child children | doctor physician | house home | movie film | picture photo
image photograph | picture pic | job work career | salary wage pay earn income | salary earning | cost price charge
fee expensive | payment pay paid | transfer transaction transferred transferring | card cards | happy glad | sad
unhappy | advantage benefit pro pros upside | disadvantage drawback con cons downside | method approach technique
procedure | best top great greatest good better | book books | cheap inexpensive affordable low-cost | error mistake
bug | mobile cell | sick ill | disease illness | drug medicine medication | stop quit cease | increase raise boost
improve enhance | decrease reduce lower | reduce cut | learn study | smart intelligent clever | rich wealthy |
difficult hard tough | easy simple | important essential significant | required need necessary requirement | require
need | close shut | choose select pick | create make build develop | produce make | writing write wrote written |
meaning mean definition define | difference differ differentiate distinguish compare comparison | reason cause why |
happen occur | city town | country nation | usa us america u.s u.s.a united_states | uk u.k britain united_kingdom |
uae emirates | verify confirm authenticate validate verification | identity id identification | account profile |
cancel revert cancellation | withdraw withdrawal | atm cash_machine cashpoint | arrive come arrival | delivery deliver
ship shipping shipment | refund reimbursement reimburse | top_up topup | passcode password pwd pass_code | login
log_in sign_in signin logon log_on | logout log_out sign_out signout | sign_up signup register registration enroll
enrol | lost lose | stolen steal theft | exchange swap change convert | rate rates | currency currencies | abroad
overseas | travel trip journey traveling travelling | vacation holiday | flight fly | hotel hotels | food meal | eat
consume | drink drinks | exercise workout | weight weigh | length long | width wide | depth deep | age old | distance
far | frequency often | size big | speed fast | temperature hot | quantity amount | amount much | number many |
boyfriend bf | girlfriend gf | relationship relation | marry marriage married wedding | die death dead died dies |
live life lives living alive | kill murder | love romance | law legal | legal lawful allowed permitted | allow permit
let | engineer engineering | program programming programme coding code | software application app apps | website site
webpage | internet web online | email e-mail mail | message text msg sms | video videos | music song songs | game
games | company firm business corporation | startup start-up | market marketing | money cash fund funds | bank banking
| loan loans | invest investment investing | stock share | tax taxes taxation | degree graduate graduation |
university college | school schools | exam examination test | prepare preparation | course class | interview
interviews | student pupil | teacher instructor | language languages | word words | sentence sentences | improve
better enhance | skill skills | experience experiences | opinion view thought | view views | review reviews | feature
features function | problem issue trouble | solution solve resolve answer | example sample instance | list enumerate |
side_effect adverse_effect | symptom sign | cure treat treatment remedy heal | pain ache hurt | headache migraine |
stain spot | rug carpet | tire tyre | flat punctured puncture | faster fast | recipe cook make | pancake pancakes |
notebook laptop | power turn_on | boot turn_on | turn_on switch_on | turn_off switch_off | remote home | earn make
salary | possible can | visit travel go | hour hours | opening open | president presidents | universe cosmos | world
earth globe | global worldwide | war conflict | attack assault | army military | government govt | politics political
| election elections vote | party parties | leader head | population inhabitants | author writer write | novel book |
popular famous well-known | famous renowned | terrible awful bad | pretty beautiful | female women woman female | men
man male | girl girls | boy boys | hair hairs | skin face | teeth tooth | foot feet | knife knives | leaf leaves |
mouse mice | goose geese | datum data | criterion criteria | phenomenon phenomena | analysis analyses | crisis crises
| link connect | update upgrade | crash crashed | slow slowly | download downloading | install setup set_up | install
installation | configure config configuration setup | operate work function run | wrong incorrect | correct right
proper accurate | correctly properly right | statement statements | charge charged | extra additional more | fee fees
| young age | beneficiary recipient payee | order ordered | track tracking | visa visas | need require | new recent
latest | latest newest current | now currently today | nowadays now | soon quickly | purpose aim goal objective |
effect impact influence affect | result outcome consequence | information info details detail | describe explain |
tutorial guide | beginner beginners newbie | hack hacking hacked | recover recovery retrieve restore | reset resetting
| block blocked | account accounts | contact reach get_in_touch | customer client | service services | support
assistance |
insurance insurances | quit resign | boss manager | fire fired | rent rental | apartment flat | buy buying | lawyer
attorney | physics physical | chemistry chemical | biology biological | mathematics math maths | cs computer_science |
ai artificial_intelligence | ml machine_learning | iot internet_of_things | seo search_engine_optimization | nyc
new_york_city new_york | la los_angeles | sf san_francisco | ww1 wwi world_war_1 world_war_i | ww2 wwii world_war_2
world_war_ii | prime_minister pm | tea teas | climate_change global_warming | explanation explain | translate
translation | summarize summarise summary | generate produce | reply respond response answer | analyze analyse
analysis | optimize optimise | organize organise organization organisation | recognize recognise | color colour |
favorite favourite | center centre | behavior behaviour | license licence | gray grey | program programme | theater
theatre | neighbor neighbour | realize realise | apologize apologise | defense defence | catalog catalogue | check
cheque verify | jewelry jewellery | cancel cancelled canceled cancelling canceling | travel traveled travelled | label
labeled labelled | punctuate punctuation | appear show | according think believe | personality character | believe
belief | marijuana cannabis weed | bike bicycle cycle | motorbike motorcycle | fridge refrigerator | couch sofa |
autumn fall | soccer football | gas petrol gasoline fuel | elevator lift | truck lorry | trash garbage rubbish | cab
taxi | store shop | pants trousers | cookie biscuit | candy sweets | mall shopping_center | vacation holidays |
zip_code postcode postal_code | monthly per_month each_month every_month a_month | weekly per_week each_week
every_week | daily per_day each_day every_day everyday | yearly per_year each_year every_year annual annually
per_annum | go_up goes_up going_up went_up rise increase | go_down goes_down going_down went_down fall drop decrease
decline | director direct directed | singer sing sang sung | leader lead led | author write wrote written | inventor
invent invented | founder found founded | owner own owns owned | creator create created | producer produce produced |
designer design designed | builder build built | winner win won | teacher teach taught | player play played | driver
drive | user use | secure safe | wake wake_up get_up awaken | allowed can permitted able | swell swollen | unhealthy
bad harmful | scam scammer fraud | page website webpage site | use utilize utilise employ apply | utilized employed
used applied | specify designate define indicate determine state | provide furnish supply give offer | furnishes
provides gives offers | provided given specified passed supplied | convert transform turn change cast | contain hold
include comprise | return yield give produce | retrieve fetch obtain get acquire access | download fetch obtain get |
perform execute carry_out conduct do run | call invoke | enable allow let permit facilitate | construct build create
make generate | alter modify change adjust edit amend | remove eliminate delete | location path place | directory
folder | argument parameter input | settings options configuration config parameters | parameter argument setting |
container wrapper | collection set | function method | subset part portion | numerous many several multiple |
beneficial useful advantageous helpful handy | rapid fast quick quickly rapidly swift | certain specific particular |
original source | initial first | step action | organize arrange sort | aid assist help | demonstrate show illustrate
display | discover find explore | explore investigate | compute calculate work_out | associated related linked
connected correlated | related relevant pertinent | save store keep conserve preserve | split divide division | label
name tag | message statement | discussion conversation chat | begin start initiate commence launch | get_started start
begin | finish complete end | completed ready finished done | submit upload send | share upload post | type kind sort
variety form category class | categories classes types kinds | distinct different separate | duplicate copy | instance
copy example | instructions directions guidance guide guides | project task | style format form | mandatory required
compulsory obligatory necessary | default standard usual | typical average usual standard common normal | capability
ability capacity | possibility ability chance | detect find check notice identify | serve act work function | purpose
point goal aim objective intention use | refer see consult | obtain get gain receive earn | thereby thus therefore
hence | additionally also moreover furthermore besides | however but nevertheless | such_as like | section part area
tab | accept take | limit maximum bound cap restriction | restriction limitation limit | speed_up accelerate faster
fast quicken | reduce lessen minimize minimise cut lower decrease | maximize maximise optimize optimise | avoid
prevent stop overcome escape | overcome avoid conquer beat get_over cope | cope deal handle manage | procrastination
procrastinate procrastinating | kind nice | kindest nicest sweetest | scared afraid fear frightened terrified | fear
phobia | strengthen improve increase boost develop | characteristic trait feature quality attribute property | risk
danger hazard | issue problem concern matter trouble | movie cinema film theater theatre picture | percent percentage
percents | flavor taste flavour | impact effect affect influence change | perception view opinion | crazy insane
mind-blowing mindblowing amazing unbelievable incredible awesome interesting cool fascinating surprising | homosexual
gay lesbian | produce make create manufacture form | girl woman lady female girls women ladies | boy man guy male boys
men guys | trade trading invest | study research | ocean sea | airplane plane aeroplane aircraft | under below | over
above | foreigner foreign | citizen people resident person inhabitant | occur come_true happen take_place |
consequence effect result outcome impact | grant give offer | basics concepts fundamentals basic introduction |
disparity difference gap | ratings reviews rating review | probable expected likely predicted | evidence proof | loss
lose | resource tutorial material course website | tutorial course resource lesson | improve increase enhance better
boost raise grow develop | reply answer respond | infant baby babies newborn | toddler child kid | hilarious funny |
tasty delicious yummy | huge giant big large enormous massive | tiny small little | lovely beautiful pretty | stupid
dumb silly foolish idiotic | mad angry furious upset | wealthy rich | famous popular well-known celebrated | perks
benefits advantages | demerits disadvantages cons drawbacks | merits advantages pros benefits | hobby interest pastime
| occupation job profession career | vocation career | gym workout | joke gag | lyrics words | remedy cure treatment
solution | physician doctor | attorney lawyer | cop police policeman | cellphone phone mobile | cell_phone phone
mobile smartphone | mobile_phone phone smartphone | tv_show tv_series show series | show series | serial series | film
movies | flick movie | pics pictures photos images | selfie photo | photograph photo | snap photo | trip tour journey
| tour trip visit | voyage journey | hire recruit employ rent | rent lease hire | accommodation hotel lodging stay |
restaurant eatery | dish food meal recipe | meal dish | tutor teacher | professor teacher lecturer | freshman
first_year | sophomore second_year | fresher freshers | university universities college colleges | institute
institution college school | coaching training classes | training course | coach trainer | exam test examination paper
| marks score grade grades | score marks points | prepare study ready | crack pass clear | attempt try | retire
retirement | commit do | excellent good great | biggest greatest largest | rude impolite | polite courteous | reside
live located | located situated | remaining left | entire whole full complete | utilize used | inform tell notify
let_know | place put | prepare cook make | dropping falling | prevent stop keep avoid | nearest closest | near close
nearby | closest near | shut_down turn_off switch_off | inexpensive cheap | costly expensive pricey | pricey expensive
| purchase order buy | order request | request ask apply | ask_for request | return send_back | reimburse refund
money_back | complain complaint | damaged broken | faulty defective broken | malfunction fail break | freeze hang |
stuck frozen | sluggish slow | password passphrase | username user_name login_name user_id | e-mail_address
email_address | address location | phone_number telephone_number mobile_number contact_number | telephone phone |
toll_free tollfree | customer_service customer_care customer_support support_number helpline | helpline support | care
service support | company firms companies business organisation organization | organisation company | employee staff
worker personnel | boss manager supervisor | coworker colleague | fired dismissed sacked | pay_raise raise | wage
salary pay | compensation pay salary | bill invoice | receipt bill | tariff rate fee | duty tax | mortgage loan | lend
loan | borrow loan | bankrupt insolvent | currency money | banknote note bill | notes currency | demonetization
demonetisation demonetize demonetising | rupee rs inr | dollar bucks | mom mother mum mommy | dad father daddy |
grandma grandmother | grandpa grandfather | spouse partner | bro brother | sis sister | baby infant | pregnant
pregnancy expecting | period menstruation | abdomen stomach belly tummy | belly stomach tummy | heart_attack
cardiac_arrest | high_blood_pressure hypertension | blood_sugar glucose | flu influenza | fever temperature | vomit
throw_up | physician gp | tablets pills tablet pill | pill tablet | vaccine vaccination shot jab | surgery operation |
weight_loss lose_weight losing_weight | weight_gain gain_weight gaining_weight | fat weight | slim thin | fit healthy
| diet eating | nutritious healthy | cancerous
malignant | cause trigger lead_to result_in | reason cause why | causes reasons | consist composed | consist comprise
contain | composition made | originate come origin | invented created discovered | discover invent | built constructed
| locate situate | border frontier | kingdom monarchy | ruler king leader | emperor ruler | vote elect | elect vote
choose | presidential president presidency | presidency president election | win victory | defeat beat win | war
battle | soldier troops | weapon arms gun | bomb explosive | terrorist terrorism | murder killing | rob steal theft |
thief robber burglar | prison jail | crook criminal | court tribunal | sue lawsuit | contract agreement | lease rental
| sign signature | license licence permit | permit allow | immigration immigrate immigrant | migrate move | relocate
move shift | shift move | jump leap | run sprint jog | walk stroll | swim swimming | dance dancing | sing singing |
draw drawing sketch | paint painting | cook cooking | bake baking | read reading | write writing | speak speaking |
learn learning | teach teaching | programming coding programmer | developer programmer coder | code_editor ide | bug
error defect | exception error | crash fail | repository repo | directory dir folder | file document | doc document
documentation | docs documentation | spreadsheet sheet | presentation slides | slideshow presentation | image picture
photo | clip video | audio sound | volume sound | display screen monitor | monitor screen | keyboard keys | hard_drive
hard_disk disk drive | usb_stick flash_drive usb_drive thumb_drive | wi-fi wifi wireless | router modem | browser
web_browser | url link address web_address | homepage home_page | weblog blog | forum board | chat message |
text_message sms text | emoji emoticon | username handle | profile account | followers subscribers | hashtag tag |
tweet post | post posts | upload post | stream streaming | subscribe subscription | membership subscription | cancel
terminate end | terminate end stop | close terminate | extend prolong renew | renew renewal extend | expire expiry
expiration run_out | valid validity | validate verify check confirm | activate enable turn_on start | deactivate
disable turn_off | register registration sign_up | enrol register | reserve book booking reservation | reservation
booking | reschedule rebook change | postpone delay defer | cancel call_off | attend join go | take_part participate
join | participate join | meeting appointment | appointment booking | schedule timetable plan | timetable schedule |
deadline due_date | holiday day_off | sick_leave medical_leave | noon midday | dawn sunrise | dusk sunset | evening
night | weather forecast | rain raining rainy | snow snowing | storm thunderstorm | earthquake quake | flood flooding
| forest woods | hill mountain | river stream | road street | highway motorway freeway | petrol_station gas_station
filling_station | parking park | car_park parking_lot | bus_stop bus_station | train railway rail | subway metro
underground | airport airfield | aeroplane airplane | luggage baggage bags | suitcase luggage bag | passport_control
immigration | customs duty | souvenir gift | gift present | wedding marriage | funeral burial | birthday birth |
christmas xmas | puppy dog | kitty cat kitten | bunny rabbit | pet animal | animal creature | plant grow | flower
blossom | garden yard | lawn grass | house apartment home | flat apartment | basement cellar | restroom bathroom
toilet | toilet bathroom loo | tap faucet | bulb light lamp | lamp light | oven stove | stove cooker | fridge
freezer_compartment | laundry washing | wash clean | clean cleaning | stain mark | smell odor odour stink | odor smell
| dust dirt | mould mold | bug insect | cockroach roach | mice mouse | rid remove eliminate | get_rid remove eliminate
| repair fixing | break damage | crack broken | leak leaking leakage | clog block clogged blocked | assemble
put_together build | disassemble take_apart | tool instrument | glue adhesive | rope string | box container | bag sack
| bottle flask | cup mug | plate dish | trousers pants jeans | sweater jumper pullover | shoes sneakers trainers
footwear | jacket coat | hat cap | dress clothing clothes outfit | clothes clothing | glasses spectacles eyeglasses |
jewel jewelry | haircut hairstyle | makeup cosmetics | perfume fragrance scent | attractive handsome beautiful
good-looking | good-looking handsome attractive | ugly unattractive | shy timid | brave courageous | lonely loneliness
alone | lazy laziness | boring dull bored boredom | bored boredom | tired exhausted fatigue sleepy | sleepy drowsy
tired | hungry hunger | thirsty thirst | angry anger | sad sadness depressed depression | depressed depression |
anxious anxiety nervous | stress stressed | happy happiness | jealous jealousy envy | proud pride | confident
confidence | motivated motivation | successful success succeed | failure fail | fortune luck | lucky fortunate | god
deity | religion faith belief | pray prayer | church chapel | holy sacred | ghost spirit | soul spirit | alien
extraterrestrial | universe space | planet world | astronaut cosmonaut | rocket spaceship spacecraft | gravity
gravitation | energy power | electricity electric power | battery cell | wire cable | engine motor | machine device |
gadget device | robot bot | chatbot bot | algorithm method | equation formula | formula equation | calculate
calculation compute | solve solution | prove proof | graph chart plot | average mean | sum total | digit number |
figure number | quarter fourth | pair two | couple two | trio three | dozen twelve
"""
