import logging

from petrel import storm
from petrel.emitter import Spout

log = logging.getLogger("lines")


class Lines(Spout):
    def __init__(self, times=1):
        super(Lines, self).__init__(script=__file__)
        self.times = times

    @classmethod
    def declareOutputFields(cls):
        return ["line"]

    def initialize(self, conf, context):
        with open("sentences.txt") as file:
            self.waiting = file.read().splitlines() * self.times * conf["lines.times"]
        self.number = 0
        self.failed = []

    def nextTuple(self):
        if self.failed:
            id = self.failed.pop()
            storm.emit([self.waiting[id]], id=id)
        elif self.number < len(self.waiting):
            log.debug("line %d of %d", self.number, len(self.waiting))
            storm.emit([self.waiting[self.number]], id=self.number)
            self.number += 1

    def fail(self, id):
        self.failed.append(id)


def run():
    Lines(times=2).run()
