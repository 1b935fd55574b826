"""French words that the guards of `core.likeness` know. Data only; `lexicon.lexicon` says how it is written."""

STOP = """
trouve trouvent situe situé le la les un une des du de d l au aux ce cet cette ces c je j tu il elle on nous vous ils
elles me m te t se s moi toi lui leur leurs mon ma mes ton ta tes son sa ses notre nos votre vos est sont était
étaient être suis es été ai as a avons avez ont avoir avait peut peux peuvent pouvez puis pouvoir pourrait pourrais
dois doit devez faut il_faut et ou mais si que qu qui quoi dont où quand comment pourquoi quel quelle quels quelles
est-ce y en à dans sur sous par pour avec vers chez entre depuis pendant bonjour salut merci svp s'il plaît dire dis
expliquer explique expliquez montrer montre donner donne donnez faire fais fait faites veux veut voudrais aimerais
aider aide besoin possible façon manière moyen moyens meilleur meilleure meilleurs meilleures bon bonne question
savoir aussi très bien plus ici là ça cela chose
"""

NEGATORS = """
sauf excepté hormis ne n pas jamais aucun aucune rien personne ni sans non
"""

NEGATIVES = """
illégal: légal | illégale: légale | impossible: possible | invalide: valide | incorrect: correct | incorrecte:
correcte | dangereux: sûr | interdit: permis | interdite: permise | inactif: actif | inconnu: connu | incompatible:
compatible | inutile: utile
"""

FORMS = """
activer active activez activé | désactiver désactive désactivez désactivé | acheter achète achat | vendre vends vente
| ouvrir ouvre | fermer ferme | supprimer supprime suppression | ajouter ajoute
"""

OPPOSITES = """
montent monte monter augmentent augmenter / baissent baisse baisser descendre | ouvre ouvrir ouvrent / ferme fermer
ferment | importer importation / exporter exportation | gagner / perdre | premier première / dernier dernière | mère /
père | fils / fille | frère / sœur | long longue / court courte | fort forte / faible | riche / pauvre | plein pleine
/ vide | été / hiver | jour / nuit | ami / ennemi | connecter connexion / déconnecter déconnexion | prêter / emprunter
| déposer / retirer | vrai vraie / faux fausse | possible / impossible | allumer / éteindre | activer active allumer /
désactiver désactive éteindre | permis autorisé permettre autoriser / interdit interdire | acheter achète / vendre
vends | ouvrir ouvre / fermer ferme | avant / après | plus / moins | grand grande / petit petite | haut haute élevé
élevée / bas basse faible | avantage avantages / inconvénient inconvénients | bon bonne / mauvais mauvaise | meilleur
meilleure / pire | nouveau nouvelle / ancien ancienne vieux | rapide vite / lent lentement | ajouter ajoute /
supprimer supprime retirer enlever | augmenter augmente / réduire réduis diminuer baisser | gagner / perdre |
prendre_du_poids / perdre_du_poids | pour / contre | avec / sans | maximum maximal / minimum minimal | chaud / froid |
gauche / droite | télécharger / téléverser | importer / exporter | installer / désinstaller | envoyer / recevoir |
bloquer / débloquer | verrouiller / déverrouiller | homme hommes / femme femmes | facile / difficile | intérieur /
extérieur | public / privé | toujours / jamais | pas_cher / cher chère | augmentation / diminution | arrivée / départ
| entrée / sortie
"""

SYNONYMS = """
fichier document | dossier répertoire | supprimer effacer | ordinateur pc | portable téléphone | prix coût | commencer
débuter démarrer | portable téléphone mobile smartphone | voiture auto | supprimer effacer retirer | activer allumer |
désactiver éteindre | prix coût tarif
"""

QUESTIONS = """
who: qui | when: quand à_quelle_heure | where: où | why: pourquoi | how: comment | what: que quoi qu'est-ce | which:
quel quelle quels quelles | how_much: combien | how_long: combien_de_temps | how_often: combien_de_fois | how_old:
quel_âge
"""

QUANTIFIERS = """
all: tous toutes chaque tout toute | some: quelques certains certaines plusieurs | only: seulement uniquement |
always: toujours | sometimes: parfois | rarely: rarement | often: souvent | half: moitié demi | average: moyen moyenne
"""

DEGREES = """
fast: plus_rapide | easy: plus_facile plus_simple | cheap: moins_cher | first: premier première | last: dernier
dernière | large: plus_grand plus_grande | small: plus_petit plus_petite
"""

TIMES = """
now: maintenant actuellement | today: aujourd'hui aujourd | tomorrow: demain | yesterday: hier | morning: matin |
evening: soir | night: nuit | noon: midi | midnight: minuit | last: semaine_dernière mois_dernier an_dernier
année_dernière | next: semaine_prochaine mois_prochain an_prochain année_prochaine
"""

MONTHS = """
janvier | février | mars | avril | mai | juin | juillet | août | septembre | octobre | novembre | décembre
"""

WEEKDAYS = "lundi | mardi | mercredi | jeudi | vendredi | samedi | dimanche"

NUMBERS = """
zéro:0 deux:2 trois:3 quatre:4 cinq:5 six:6 sept:7 huit:8 neuf:9 dix:10 onze:11 douze:12 treize:13 quatorze:14
quinze:15 seize:16 vingt:20 trente:30 quarante:40 cinquante:50 soixante:60 cent:x100 cents:x100 mille:x1000
million:x1000000 millions:x1000000 milliard:x1000000000 milliards:x1000000000
"""

ORDINALS = "premier:1 première:1 deuxième:2 troisième:3 quatrième:4 cinquième:5"

ROLES = """
from: depuis de d du des | to: à vers au aux jusqu | with: avec par | of: dans sur sous pour en chez pendant entre |
and: et ou
"""

UNITS = """
s: seconde secondes | min: minute minutes | h: heure heures | day: jour jours | week: semaine semaines | month: mois |
year: an ans année années | g: gramme grammes | kg: kilogramme kilogrammes kilo kilos | l: litre litres | m: mètre
mètres | km: kilomètre kilomètres | mi: mille milles | lb: livre livres | eur: euro euros | usd: dollar dollars |
percent: pour_cent pourcent
"""

FORMATS = """
short: brièvement bref brève court courte | long: longue | detailed: détail détaillée détaillé | one_sentence:
une_phrase | simple: termes_simples | formal: formel formelle | informal: informel informelle familier | table:
tableau
"""
