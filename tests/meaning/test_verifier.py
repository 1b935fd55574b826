"""The verifier that is always there."""

from cacheproxy.core.opinion import SHIPPED, Opinion, read
from cacheproxy.meaning.verifier import TYPICAL, Classifier

ASKED, SAME, OTHER = "How do I reset my password?", "How can I reset my password?", "How do I reset your password?"


async def test_it_says_what_the_classifier_says():
    verifier = Classifier()
    await verifier.warm()
    for stored in (SAME, OTHER, ASKED):
        expected = SHIPPED.probability(read(ASKED), read(stored), 0.93)
        assert await verifier.agreement(ASKED, stored, 0.93) == expected
    assert await verifier.agreement(ASKED, SAME, 0.93) > 0.9 > 0.2 > await verifier.agreement(ASKED, OTHER, 0.93)
    await verifier.close()
    assert verifier.name in repr(verifier).lower()


async def test_what_was_asked_before_is_not_mistaken_for_what_is_asked_now():
    verifier = Classifier()
    await verifier.agreement(OTHER, OTHER, 0.95)
    assert await verifier.agreement(ASKED, OTHER, 0.95) == SHIPPED.probability(read(ASKED), read(OTHER), 0.95)


async def test_similarities_of_another_scale_count_for_nothing():
    verifier = Classifier(known=False)
    found = {await verifier.agreement(ASKED, SAME, similarity) for similarity in (0.3, 0.8, 1.0)}
    assert found == {SHIPPED.probability(read(ASKED), read(SAME), TYPICAL)}


async def test_other_weights_can_be_given():
    verifier = Classifier(Opinion({}, 0.0, ((0.0, 0.5),)))
    assert await verifier.agreement(ASKED, OTHER, 0.9) == 0.5
