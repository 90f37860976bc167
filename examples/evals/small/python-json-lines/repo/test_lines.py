import unittest

from lines import read


class Lines(unittest.TestCase):
    def test_good(self):
        self.assertEqual(read('1\n{"a": 2}\n'), ([1, {"a": 2}], 0))

    def test_bad(self):
        self.assertEqual(read('1\n{"a":\n\n  \nnull\n'), ([1, None], 1))

    def test_nothing(self):
        self.assertEqual(read(""), ([], 0))
