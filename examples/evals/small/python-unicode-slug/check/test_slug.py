import unittest

from slug import slug


class Slug(unittest.TestCase):
    def test_plain(self):
        self.assertEqual(slug("Hello World"), "hello-world")

    def test_accents(self):
        self.assertEqual(slug("Crème Brûlée"), "creme-brulee")

    def test_edges(self):
        self.assertEqual(slug("  -- What? -- "), "what")
