import unittest

import bill
import money


class Money(unittest.TestCase):
    def test_named(self):
        self.assertEqual(money.with_tax(10), 12)
        self.assertFalse(hasattr(money, "calc"))

    def test_bill(self):
        self.assertEqual(bill.lines([("tea", 5)]), ["tea 6.0"])
