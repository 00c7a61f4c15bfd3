"""The attempt that users see as the first value of every tuple."""

from __future__ import annotations

import pickle
from copy import deepcopy

import pytest

from multilang.protocol.codec import encode_values
from multilang.transactional import TransactionAttempt

ATTEMPT = TransactionAttempt(17, -42)


def test_an_attempt_is_its_form_on_the_wire():
    assert encode_values([ATTEMPT, 3]) == '["17:-42",3]'
    assert TransactionAttempt.parse("17:-42") == ATTEMPT == "17:-42"
    assert hash(ATTEMPT) == hash("17:-42")


def test_an_attempt_has_both_numbers_and_says_so():
    assert (ATTEMPT.txid, ATTEMPT.attempt) == (17, -42)
    assert repr(ATTEMPT) == "TransactionAttempt(17, -42)"
    assert str(ATTEMPT) == "17:-42"


def test_another_attempt_at_the_same_transaction_is_another():
    assert TransactionAttempt(17, -42) == ATTEMPT
    assert TransactionAttempt(17, 42) != ATTEMPT
    assert TransactionAttempt(18, -42) != ATTEMPT


@pytest.mark.parametrize("copied", [deepcopy, lambda attempt: pickle.loads(pickle.dumps(attempt))])
def test_a_copy_is_an_attempt_too(copied):
    copy = copied(ATTEMPT)
    assert copy == ATTEMPT
    assert (type(copy), copy.txid, copy.attempt) == (TransactionAttempt, 17, -42)


def test_what_is_no_attempt_is_refused():
    for text in ("", "17", "17:", ":3", "a:b"):
        with pytest.raises(ValueError, match="invalid literal"):
            TransactionAttempt.parse(text)
