import unittest

from retry import retry


class Retry(unittest.TestCase):
    def failing(self, failures):
        self.calls = 0

        def call():
            self.calls += 1
            if self.calls <= failures:
                raise OSError(self.calls)
            return self.calls

        return call

    def test_first(self):
        self.assertEqual(retry(self.failing(0), 3), 1)

    def test_third(self):
        self.assertEqual(retry(self.failing(2), 3), 3)

    def test_last_error(self):
        with self.assertRaises(OSError) as caught:
            retry(self.failing(9), 3)
        self.assertEqual(caught.exception.args, (3,))
        self.assertEqual(self.calls, 3)

    def test_no_times(self):
        with self.assertRaises(ValueError):
            retry(self.failing(0), 0)
        self.assertEqual(self.calls, 0)
