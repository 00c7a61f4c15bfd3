"""A bolt on Storm's own storm.py."""

import storm


class Twice(storm.BasicBolt):
    def process(self, tup):
        storm.emit([2 * tup.values[0]])


Twice().run()
