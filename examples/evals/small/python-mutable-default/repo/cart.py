class Cart:
    def __init__(self, things=[]):
        self.things = things

    def add(self, name, price):
        self.things.append((name, price))

    def total(self):
        return sum(price for _, price in self.things)
