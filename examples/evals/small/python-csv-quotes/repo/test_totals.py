import unittest

from totals import totals


class Totals(unittest.TestCase):
    def test_plain(self):
        self.assertEqual(totals("ann,1\nbob,2\nann,3\n"), {"ann": 4, "bob": 2})

    def test_quoted(self):
        self.assertEqual(totals('"Poe, Ed",7\n"Poe, Ed",1\n'), {"Poe, Ed": 8})

    def test_quote_in_quotes(self):
        self.assertEqual(totals('"the ""cat""",1\n'), {'the "cat"': 1})
