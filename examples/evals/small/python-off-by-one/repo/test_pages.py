import unittest

from pages import page, page_count


class Pages(unittest.TestCase):
    def test_count(self):
        self.assertEqual(page_count(0, 10), 0)
        self.assertEqual(page_count(10, 10), 1)
        self.assertEqual(page_count(11, 10), 2)

    def test_page(self):
        self.assertEqual(page([1, 2, 3, 4, 5], 1, 2), [1, 2])
        self.assertEqual(page([1, 2, 3, 4, 5], 3, 2), [5])


if __name__ == "__main__":
    unittest.main()
