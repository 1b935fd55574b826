"""Each guard by itself: what it objects to, and what it must not mind. A pair that one guard alone stops shows that it
is needed."""

import pytest

from cacheproxy.core.likeness import ALL, DEFAULT, Guard, explain, judge

ALONE = [
    (Guard.CODE, "What does `f(1)` return?", "What does `f(2)` return?"),
    (Guard.CODE, "What is printed for x > y?", "What is printed for x < y?"),
    (Guard.CODE, "Is a == b here?", "Is a != b here?"),
    (Guard.QUOTES, 'Who sings "so what"?', 'Who sings "so"?'),
    (Guard.LINKS, "Open https://a.example/x", "Open https://a.example/y"),
    (Guard.ADDRESSES, "Write to ann@a.example", "Write to bob@a.example"),
    (Guard.NUMBERS, "Can I park here for 2 hours?", "Can I park here for 3 hours?"),
    (Guard.NUMBERS, "Tell me about Henry VIII", "Tell me about Henry VII"),
    (Guard.NUMBERS, "Films of the 60s", "Films of the 70s"),
    (Guard.NUMBERS, "Is half of 1.5 million enough?", "Is half of 1.5 billion enough?"),
    (Guard.NUMBERS, "A salary of 4000 euros", "A salary of 4000 pesos"),
    (Guard.UNITS, "Is the rent paid per month?", "Is the rent paid per year?"),
    (Guard.DATES, "Sales of last quarter", "Sales of this quarter"),
    (Guard.DATES, "Is it open last Sunday?", "Is it open next Sunday?"),
    (Guard.DATES, "Does it close at noon?", "Does it close at midnight?"),
    (Guard.DATES, "Flights on Monday", "Flights on Tuesday"),
    (Guard.CODES, "Is gate b12a open?", "Is gate b12c open?"),
    (Guard.NEGATION, "Which metals are magnetic?", "Which metals are non-magnetic?"),
    (Guard.NEGATION, "Is there anything to see?", "Is there nothing to see?"),
    (Guard.NEGATION, "Show the invoices", "Show the invoices except mine"),
    (Guard.NEGATION, "Is the seller certified?", "Is the seller uncertified?"),
    (Guard.POLARITY, "How do I zoom in?", "How do I zoom out?"),
    (Guard.POLARITY, "Is the pool at the hotel open on weekdays?", "Is the pool at the hotel open on weekends?"),
    (Guard.AMOUNTS, "Do all bees sting?", "Do some bees sting?"),
    (Guard.AMOUNTS, "Can members vote?", "Can only members vote?"),
    (Guard.AMOUNTS, "Why was my withdrawal declined?", "Why was my withdrawal partly declined?"),
    (Guard.DEGREES, "What is the fastest train to the airport?", "What is the cheapest train to the airport?"),
    (Guard.ASPECT, "Is he a president?", "Is he a former president?"),
    (Guard.QUESTION, "When can I claim it?", "Where can I claim it?"),
    (Guard.QUESTION, "How do jellyfish glow?", "Do jellyfish glow?"),
    (Guard.QUESTION, "Can I wear a helmet?", "Do I have to wear a helmet?"),
    (Guard.QUESTION, "Did it rain?", "Will it rain?"),
    (Guard.QUESTION, "I can't pay it", "I won't pay it"),
    (Guard.WISHES, "Explain it in French", "Explain it in German"),
    (Guard.WISHES, "Explain it in one sentence", "Explain it in simple terms"),
    (Guard.LANGUAGE, "Wo ist das und was ist es?", "Dónde está y qué es esto?"),
    (Guard.DIRECTION, "Convert euros to dollars", "Convert dollars to euros"),
    (Guard.DIRECTION, "Subtract 7 from 12", "Subtract 12 from 7"),
    (Guard.DIRECTION, "Who did Brutus kill?", "Who killed Brutus?"),
    (Guard.DIRECTION, "Is a square always a rectangle?", "Is a rectangle always a square?"),
    (Guard.DIRECTION, "Can I call you back?", "Can you call me back?"),
    (Guard.DIRECTION, "What is my name?", "What is your name?"),
    (Guard.DIRECTION, "How do I top up my card?", "How do I top up with my card?"),
    (Guard.NAMES, "Book the cheap hotel near lake Garda", "Book the cheap hotel near lake Como"),
    (Guard.SIBLINGS, "Is a cheap cotton pillow good for my dog?", "Is a cheap cotton pillow good for my cat?"),
    (Guard.SUBSTITUTION, "How do I fry an egg?", "How do I poach an egg?"),
    (Guard.ADDITION, "How do I boil eggs?", "How do I boil quail eggs?"),
    (Guard.ADDITION, "Is she an author?", "Is she a successful author?"),
]
SAME = [
    ("How do I get to Rome from Pisa?", "How do I get from Pisa to Rome?"),
    ("Do sharks eat seals?", "Are seals eaten by sharks?"),
    ("Is a permit needed to fish?", "Do I need a permit to fish?"),
    ("Is Anna married to Ben?", "Is Ben married to Anna?"),
    ("The recipe for 6, only 3 guests come", "The recipe for six, just 3 guests come"),
    ("Flights on 24 December", "Flights on December 24th"),
    ("What was invented in the 18th century?", "What was invented in the eighteenth century?"),
    ("What did people wear in the 60s?", "What did people wear in the 1960s?"),
    ("Is a fever of 39 °C dangerous?", "Is a fever of 39 Celsius dangerous?"),
    ("A van that is 2.1 m high", "A van that is 2.1 metres high"),
    ("Does the train leave at noon?", "Does the train leave at 12:00?"),
    ("Convert 0.5 to a fraction", "Convert .5 to a fraction"),
    ("How safe is the bridge?", "Is the bridge safe?"),
    ("When topping up by transfer, will I be charged?", "Will I be charged for topping up by transfer?"),
    ("Could you tell me how to reset it?", "How do I reset it?"),
    ("Is there a way to reset my password?", "How do I reset my password?"),
    ("Why didn`t my transfer go through?", "Why didn't my transfer go through?"),
    ("It won't stop saying declined", "It keeps saying declined"),
    ("How do I improve my reading in English?", "How do I improve my English reading?"),
    ("What are the top 10 films?", "What are the best films?"),
    ("How do I rename my user name?", "How do I rename my username?"),
    ("Contact details of Dr. Weber", "Dr. Weber's contact details"),
    ("How do I recover my hacked account?", "How can I get back my hacked account?"),
    ("Why is the knee swollen?", "Why is the knee swelling?"),
    ("How do I obtain a visa?", "How does one go about obtaining a visa?"),
    ("Does the wound need treatment?", "Is treatment needed for the wound?"),
    ("What are some short quotes about friends?", "What are some quotes about friends?"),
    ("What are some of your hobbies?", "What is one of your hobbies?"),
    ("Is an hour of yoga enough?", "Is one hour of yoga enough?"),
    ("How do I reset a keycard?", "How do I reset a key card?"),
    ("Can I change from one currency to another?", "Can I change to another currency?"),
    ("What does the nitrate test show?", "What is shown by the nitrate test?"),
    ("5. Is it true that prices fall?", "Is it true that prices fall?"),
    ("Wer gründete Siemens?", "Wer hat Siemens gegründet?"),
    ("Combien coûtent 10 croissants ?", "Combien coûtent dix croissants ?"),
    ("Zeige alle Rechnungen", "Zeige mir alle Rechnungen"),
    ("¿Quién fundó Zara?", "¿Por quién fue fundada Zara?"),
    ("英語で重力を説明して", "英語で重力を説明してください"),
]


def _told(asked, stored):
    return {verdict.guard for verdict in explain(asked, stored) if verdict.objects}


@pytest.mark.parametrize(("guard", "asked", "stored"), ALONE)
def test_a_guard_sees_its_difference(guard, asked, stored):
    assert guard in _told(asked, stored)
    assert guard in _told(stored, asked)


def test_no_guard_is_idle():
    """For each there is a pair that no other one stops."""
    needed = {guard for guard, *pair in ALONE if judge(*pair, DEFAULT - {guard}) is None}
    assert needed == DEFAULT - {Guard.CODES}


def test_a_code_differs_with_its_digits_or_its_letters():
    """Its digits are a number too; what joins them is not."""
    assert judge("Is gate b12a open?", "Is gate b12c open?", frozenset({Guard.CODES}))
    assert judge("Is it gpt-4o or not?", "Is it gpt4o or not?", ALL) is None


@pytest.mark.parametrize(("asked", "stored"), SAME)
def test_another_form_is_no_difference(asked, stored):
    assert judge(asked, stored) is None
    assert judge(stored, asked) is None


@pytest.mark.parametrize(
    ("asked", "stored"),
    [
        ("Wie aktiviere ich das?", "Wie deaktiviere ich das?"), ("Was passiert nächste Woche?", "Was passierte letzte Woche?"),
        ("Abre na segunda-feira?", "Abre na terça-feira?"), ("Quels animaux volent ?", "Quels animaux ne volent pas ?"),
        ("¿Puedo pagar con tarjeta?", "¿Puedo pagar sin tarjeta?"), ("怎么打开蓝牙？", "怎么关闭蓝牙？"),
        ("トヨタを創業したのは誰？", "ホンダを創業したのは誰？"), ("フランス語で説明して", "英語で説明して"),
    ],
)  # fmt: skip
def test_other_languages_are_read_too(asked, stored):
    assert judge(asked, stored)


def test_a_text_in_doubt_is_read_in_the_language_of_the_other():
    """Alone, the first says nothing of its language."""
    assert judge("Router zurücksetzen", "Wie kann ich den Router zurücksetzen?", frozenset({Guard.STRICT})) is None
