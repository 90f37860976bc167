import unittest

from cart import Cart


class Carts(unittest.TestCase):
    def test_own_things(self):
        first = Cart()
        first.add("pen", 2)
        self.assertEqual(Cart().total(), 0)
        self.assertEqual(first.total(), 2)

    def test_given_list_is_not_changed(self):
        given = [("cup", 5)]
        cart = Cart(given)
        cart.add("pen", 2)
        self.assertEqual(given, [("cup", 5)])
        self.assertEqual(cart.total(), 7)
