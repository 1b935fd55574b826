"""German words that the guards of `core.likeness` know. Data only; `lexicon.lexicon` says how it is written."""

STOP = """
befindet befinden liegt gilt kannst darfst dürfte sollen heißt lautet bitte mir euch einmal hast der die das den dem
des ein eine einen einem einer eines ich du er sie es wir ihr mich mir dich dir ihn ihm uns euch mein meine meinen
meinem meiner dein deine sein seine ihre unser unsere man sich ist sind war waren bin bist sei wird werden wurde
wurden worden geworden hat haben hatte hatten habe kann können könnte könnten konnte muss müssen soll sollte sollten
darf dürfen will wollen möchte möchten mag und oder aber wenn dass ob als wie so auch nur noch schon mal denn doch ja
bitte danke hallo hi im am zum zur in an auf bei mit für von zu aus um über unter nach vor durch bis hier da dort dies
diese dieser dieses diesen jener welche welcher welches was wer wen wem wo wann warum wieso weshalb wohin woher gibt
geben sagen zeigen erklären erkläre sag machen mache macht tun tue geht gehen möglich eigentlich genau gerne etwas
jemand beste besten gut guten weg art weise frage wissen
"""

NEGATORS = """
außer ausgenommen nicht kein keine keinen keinem keiner keines nie niemals niemand nichts ohne weder
"""

NEGATIVES = """
illegal: legal | unmöglich: möglich | unsicher: sicher | ungültig: gültig | unerlaubt: erlaubt | falsch: richtig |
ungesund: gesund | unfähig: fähig | unwichtig: wichtig | unbezahlt: bezahlt | unbekannt: bekannt | inkompatibel:
kompatibel | inaktiv: aktiv
"""

FORMS = """
aktiviere aktivieren aktiviert | deaktiviere deaktivieren deaktiviert | lösche löschen löscht gelöscht | kaufe kaufen
gekauft | verkaufe verkaufen verkauft | öffne öffnen geöffnet | schließe schließen geschlossen | erlaubt erlauben |
verboten verbieten
"""

OPPOSITES = """
öffnet öffnen / schließt schließen | steigen steigt / sinken sinkt fallen | anmelden / abmelden | größer größere /
kleiner kleinere | länger / kürzer | schneller / langsamer | billiger günstiger / teurer | höchste höchsten /
niedrigste niedrigsten | längste / kürzeste | schnellste / langsamste | älteste / jüngste neueste | maximum / minimum
| höchstens / mindestens | gekauft / verkauft | import importe / export exporte | eingang / ausgang | einnahmen /
ausgaben | gewinn / verlust | legal / illegal | mann männer / frau frauen | sohn / tochter | bruder / schwester |
mutter / vater | warm / kalt | dick / dünn | stark / schwach | reich / arm | lang / kurz | erste / letzte | vorher /
nachher | oben / unten | vorne / hinten | tag / nacht | sommer / winter | einschalten eingeschaltet / ausschalten
ausgeschaltet | abonnieren / abbestellen | einzahlen / abheben | verbinden / trennen | hinzufüge / entferne lösche |
beginnt beginn anfang / endet ende | ankommen ankunft / abfahren abfahrt abflug | freund / feind | freiwillig /
verpflichtend | pflicht / optional | roh / gekocht | voll / leer | richtig / falsch | bestanden / durchgefallen |
aktiviere aktivieren einschalten / deaktiviere deaktivieren ausschalten | an / aus | erlaubt erlauben / verboten
verbieten | kaufen kaufe / verkaufen verkaufe | öffnen öffne / schließen schließe | vor / nach | mehr / weniger |
größte größten / kleinste kleinsten | groß große großen / klein kleine kleinen | hoch hohe hohen hoher / niedrig
niedrige niedrigen niedriger | vorteile vorteil / nachteile nachteil | gut gute / schlecht schlechte | neu neue neuen
/ alt alte alten | schnell schnelle / langsam langsame | hinzufügen / entfernen löschen | erhöhen erhöhe steigern /
senken senke verringern | zunehmen / abnehmen | gewinnen / verlieren | für / gegen | mit / ohne | maximal maximale /
minimal minimale | heiß / kalt | links / rechts | hochladen / herunterladen | importieren / exportieren | installieren
/ deinstallieren | senden / empfangen | sperren / entsperren | männlich / weiblich | sicher / gefährlich | schwer
schwierig / leicht einfach | billig günstig / teuer | innerhalb / außerhalb | öffentlich / privat | immer / nie
niemals
"""

SYNONYMS = """
zahlen bezahlen | kosten preis | starten beginnen anfangen | anwenden verwenden benutzen nutzen | ändern wechseln
anpassen | reparieren beheben | krankheit erkrankung | arzt doktor | flugzeug flieger | fahrrad rad | geschwister
bruder | arbeit job beruf | gehalt lohn verdienst | schnell rasch | wichtig bedeutend | gelegen liegen | handy
smartphone telefon | auto wagen | beenden kündigen | einschalten aktivieren | ausschalten deaktivieren | löschen
entfernen
"""

QUESTIONS = """
when: um_wie_viel_uhr wie_viel_uhr zu_welcher_zeit | why: aus_welchem_grund was_ist_der_grund | who: wer wen wem
wessen | when: wann | where: wo wohin woher | why: warum wieso weshalb weswegen | how: wie | what: was | which: welche
welcher welches | how_much: wie_viel wieviel | how_many: wie_viele wieviele | how_long: wie_lange | how_often: wie_oft
| how_old: wie_alt | how_far: wie_weit | how_big: wie_groß
"""

QUANTIFIERS = """
median: median | only: ausschließlich lediglich | all: alle allen aller jeder jede jedes jeden | some: einige manche
etliche | only: nur | always: immer | sometimes: manchmal | rarely: selten | often: oft häufig | half: halb halbe
hälfte | average: durchschnittlich durchschnitt durchschnittliche
"""

DEGREES = """
fast: schnellste schnellsten | easy: einfachste einfachsten | cheap: billigste günstigste billigsten günstigsten |
first: erste ersten | last: letzte letzten
"""

TIMES = """
now: jetzt | today: heute | tomorrow: morgen | yesterday: gestern | evening: abend abends | night: nacht | noon:
mittag | last: letzte_woche letzten_monat letztes_jahr | next: nächste_woche nächsten_monat nächstes_jahr
"""

MONTHS = """
januar jan | februar feb | märz | april | mai | juni | juli | august | september | oktober okt | november | dezember
dez
"""

WEEKDAYS = """
montag montags | dienstag dienstags | mittwoch mittwochs | donnerstag donnerstags | freitag freitags | samstag
sonnabend samstags sonnabends | sonntag sonntags
"""

NUMBERS = """
null:0 eins:1 zwei:2 zwo:2 drei:3 vier:4 fünf:5 sechs:6 sieben:7 acht:8 neun:9 zehn:10 elf:11 zwölf:12 dreizehn:13
vierzehn:14 fünfzehn:15 sechzehn:16 siebzehn:17 achtzehn:18 neunzehn:19 zwanzig:20 dreißig:30 vierzig:40 fünfzig:50
sechzig:60 siebzig:70 achtzig:80 neunzig:90 hundert:x100 tausend:x1000 million:x1000000 millionen:x1000000
milliarde:x1000000000 milliarden:x1000000000 eintausend:1000 zweitausend:2000 fünftausend:5000 zehntausend:10000
einhundert:100 zweihundert:200 fünfhundert:500
"""

ORDINALS = "erste:1 ersten:1 zweite:2 zweiten:2 dritte:3 dritten:3 vierte:4 fünfte:5"

ROLES = """
from: von aus vom | to: nach zu zum zur bis ins | than: als | with: mit per mittels | of: in im an am auf bei für über
unter während des der | and: und oder sowie
"""

UNITS = """
s: sekunde sekunden | min: minute minuten | h: stunde stunden std | day: tag tage tagen | week: woche wochen | month:
monat monate monaten | year: jahr jahre jahren | g: gramm | kg: kilogramm kilo | l: liter | m: meter metern | km:
kilometer | mi: meile meilen | cm: zentimeter | lb: pfund | eur: euro | usd: dollar | percent: prozent
"""

FORMATS = """
short: kurz knapp | long: lang lange | detailed: ausführlich detailliert | one_sentence: einem_satz | simple:
einfachen_worten | formal: förmlich | informal: umgangssprachlich | table: tabelle | bullets: stichpunkten stichpunkte
"""
