import unittest
from ranges import numbers


class NumbersTest(unittest.TestCase):
    def test_both_ends(self):
        self.assertEqual(numbers(2, 5), [2, 3, 4, 5])


if __name__ == "__main__":
    unittest.main()
