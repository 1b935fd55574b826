"""English words that mean the opposite of each other. Data only."""

OPPOSITES = """
prevent / cure treat heal | enable activate / disable deactivate | on / off | allow permit / forbid prohibit ban
disallow block prevent | lock /
unlock | block / unblock | increase raise grow boost rise / decrease reduce lower shrink drop fall | gain / lose | win
/ lose | up / down | upgrade / downgrade | install / uninstall | add / remove delete subtract | create / delete
destroy | insert / delete | buy purchase / sell | import / export | upload / download | open / close | start begin
commence / stop end finish quit | before / after | older earlier / newer later | early / late | old / new | old /
young | sooner / later | high / low | large big huge / small little tiny | largest biggest greatest / smallest | long
/ short | tall / short | wide / narrow | thick / thin | fast quick / slow | similar alike similarity / differ
different difference | hot warm / cold cool | heat / cool | hard difficult / easy | hard / soft | heavy / light | dark
/ light | cheap inexpensive / expensive costly | rich wealthy / poor | strong / weak | good / bad | best / worst |
better / worse | more / less fewer | most / least fewest | many / few | maximum max / minimum min | maximize maximise
/ minimize minimise | pro pros advantage benefit upside / con cons disadvantage drawback downside | positive /
negative | true / false | right / wrong | right / left | safe / dangerous | love like / hate dislike | for / against |
support / oppose | accept approve / reject decline deny refuse | include / exclude | inside / outside | internal /
external | inbound incoming / outbound outgoing | input / output | send / receive | give / take | lend / borrow |
deposit / withdraw | debit / credit | arrive / depart leave | arrival / departure | enter / exit leave | push / pull |
attach / detach | connect / disconnect | subscribe / unsubscribe | follow / unfollow | mute / unmute | hide / show |
show / conceal | expand / collapse | zip compress / unzip decompress extract | encrypt / decrypt | encode / decode |
freeze / unfreeze thaw | mount / unmount | bind / unbind | load / unload | pin / unpin | sign_in / sign_out | sign_up
/ cancel | turn_on / turn_off | top / bottom | front / back | first / last | next / previous | above over / below
under beneath | north northern / south southern | east eastern / west western | male man / female woman | men / women
| boy / girl | husband / wife | mother mom / father dad | son / daughter | brother / sister | king / queen | boyfriend
/ girlfriend | he / she | parent / child | employer / employee | buyer / seller | teacher / student | landlord /
tenant | public / private | single / married | marry / divorce | optional / required mandatory | manual / automatic |
manually / automatically | online / offline | indoor / outdoor | domestic / international foreign | local / remote |
permanent / temporary | full / empty | full / partial | complete / partial | fixed / variable | static / dynamic |
synchronous / asynchronous | sync / async | ascending / descending | vertical / horizontal | row / column | rows /
columns | horizontal / vertical | convex / concave | acid / base | acidic / alkaline | solid / liquid | alive / dead |
birth / death | born / die | day / night | morning / evening | sunrise / sunset | summer / winter | profit / loss |
asset / liability | supply / demand | cause / effect | question / answer | teach / learn | employ hire / fire dismiss
| join / leave | merge / split | combine / separate | attack / defend | victory / defeat | success / failure | succeed
/ fail | pass / fail | ally / enemy | friend / enemy | optimist / pessimist | optimistic / pessimistic | conservative
/ liberal | hyper / hypo | hypertension / hypotension | hyperglycemia / hypoglycemia | hyperthyroidism /
hypothyroidism | inflation / deflation | inhale / exhale | immigrate / emigrate | immigration / emigration | agonist /
antagonist | introvert / extrovert | introverted / extroverted | client / server | sender / recipient receiver |
source / destination | parallel / series | parallel / sequential | singular / plural | vowel / consonant | odd / even
| prime / composite | rational / irrational | calm / nervous anxious | brave / coward | happy / sad | religious /
secular | patient / impatient | humble / arrogant | active / passive | strict / lenient | polite / rude | clean /
dirty | wet / dry | formal / casual | common / rare | always / never | rarely seldom / often frequently | always /
sometimes | temporarily / permanently | backup / restore | commit / rollback | approve / deny | gross / net |
wholesale / retail | ancient / modern | urban / rural | ugly / beautiful | smart intelligent clever / stupid dumb |
fat / thin | benign / malignant | acute / chronic | viral / bacterial | virus / bacteria | proximal / distal | artery
/ vein | systolic / diastolic | systole / diastole | mitosis / meiosis | hopeful / hopeless | useful / useless |
careful / careless | harmful / harmless | fearful / fearless | painful / painless | confident / insecure | proactive /
reactive | responsible / irresponsible | visible / invisible hidden | logged_in / logged_out | backward / forward |
backwards / forwards | pessimism / optimism | defensive / offensive | progressive / conservative | organized / messy |
specific / general vague | generous / stingy | lazy / hardworking | defend / accuse | create / destroy | build /
demolish | tighten / loosen | lengthen / shorten | strengthen / weaken | speed_up / slow_down | wake / sleep | reward
/ punish | praise / criticize criticise | safe / risky hazardous unsafe | possible / impossible | grant / revoke |
include including / exclude excluding except | most / few | majority / minority | melt melting / boil boiling | melt
melting / freeze freezing | bigger larger / smaller | promote / demote | hide / visible | archive / unarchive |
convict / acquit | awake / asleep | overeat overeating / undereat undereating | stretch / shrink | attract / repel |
satisfied / dissatisfied | benefit advantage / risk danger harm | happiest / saddest | happier / sadder | strength
strengths / weakness weaknesses | plug / unplug | mask / unmask | wrap / unwrap | fold / unfold | tie / untie | button
/ unbutton | pack / unpack | park / unpark | seal / unseal | register enroll / unregister deregister | assign /
unassign | select / deselect unselect | check / uncheck | flag / unflag | star / unstar | like / unlike | friend /
unfriend | share / unshare | publish / unpublish | link / unlink | group / ungroup | pause suspend / resume continue |
connect / disconnect | engage / disengage | assemble / disassemble | arm / disarm | inflate / deflate | ascend /
descend | ascent / descent | appreciate / depreciate | import importing / export exporting | overweight / underweight
| overpaid / underpaid | overrated / underrated | overvalued / undervalued | overestimate / underestimate | major /
minor | superior / inferior | exterior / interior | plus / minus | sum / difference | multiply / divide |
multiplication / division | addition / subtraction | buy buying / sell selling | bullish / bearish | bull / bear |
long / short | employer / employee | lessor / lessee | creditor / debtor | lender / borrower | winner / loser |
winners / losers | host / guest | predator / prey | student pupil / teacher | doctor / patient | interviewer /
interviewee | trainer / trainee | mentor / mentee | payer / payee | plaintiff / defendant | prosecution / defense |
guilty / innocent | heaven / hell | hero / villain | protagonist / antagonist | majority / minority | presence /
absence | present / absent | present / past | past / future | future / present | before / during | during / after |
predecessor / successor | ancestor / descendant | nephew / niece | uncle / aunt | grandfather / grandmother | actor /
actress | waiter / waitress | prince / princess | bride / groom | widow / widower | sir / madam | mr / mrs | lord /
lady | stepfather / stepmother | godfather / godmother | bull / cow | rooster / hen | left / right | lefthanded /
righthanded | clockwise / counterclockwise anticlockwise | port / starboard | uphill / downhill | upstairs /
downstairs | upstream / downstream | uptown / downtown | upper / lower | uppercase / lowercase | superscript /
subscript | prefix / suffix | head / tail | heads / tails | numerator / denominator | positive / negative | gain /
loss | gains / losses | surplus / deficit | income revenue / expense expenses | assets / liabilities | hired / fired |
voluntary / involuntary | mature / immature | optional / compulsory obligatory | legalize / criminalize | tame / wild
| raw / cooked | fresh / stale | fresh / frozen | sweet / sour | sweet / bitter | loud / quiet | noisy / quiet | rough
/ smooth | sharp / dull blunt | sharp / blunt | tight / loose | shallow / deep | bright / dark | bright / dim | busy /
idle | busy / free | crowded / empty | guilty / innocent | humid / dry | hardware / software | frontend / backend |
read / write | reader / writer | get / set | getter / setter | encode encoding / decode decoding | serialize /
deserialize | push / pop | enqueue / dequeue | allocate / deallocate free | acquire / release | wait / signal | upvote
/ downvote | stage / unstage | signed / unsigned | mutable / immutable | blocking / nonblocking | stateful / stateless
| fetch / push | ingress / egress | inner / outer | inflow / outflow | inlet / outlet | intake / output | ingest /
excrete | absorb / emit | absorption / emission | oxidize / reduce | oxidation / reduction | anode / cathode | anion /
cation | endothermic / exothermic | eukaryotic / prokaryotic | dominant / recessive | aerobic / anaerobic | herbivore
/ carnivore | vertebrate / invertebrate | warm-blooded / cold-blooded | nocturnal / diurnal | remember / forget |
weekday weekdays / weekend weekends | upcoming coming / past previous | since / until till | in_favor_of in_favour_of
/ opposed_to | the_inside on_the_inside / the_outside on_the_outside | total / average | transparent / opaque |
lighter / darker | lighten / darken | dim / brighten | thaw defrost / freeze | hire hired / fire fired | current
present / previous former past | zoom_in / zoom_out | go_up goes_up going_up went_up / go_down goes_down going_down
went_down | check_in / check_out | clock_in / clock_out | opt_in / opt_out | move_in / move_out | fade_in / fade_out |
| | break_in / break_out | phase_in / phase_out | speed_up / slow_down | scale_up / scale_down | scroll_up /
scroll_down | cheer_up / calm_down | log_on / log_off | switch_on / switch_off | come_in / go_out | let_in / let_out |
wake_up / fall_asleep | dress / undress | constipation / diarrhea diarrhoea | thicker / thinner | stronger / weaker |
earlier / later | ethane / ethene | tightly / loosely | quickly / slowly | loudly / quietly | strongly / weakly |
safely / dangerously | well / badly | win winning / lose losing | gaining / losing | cheap cheaply / expensive |
appear / disappear | allowed / forbidden prohibited banned
"""
