// A bolt on Storm's own storm.js.
"use strict";
const { BasicBolt } = require("./storm");

const bolt = new BasicBolt();
bolt.process = (tuple, done) => {
  bolt.emit({ tuple: [2 * tuple.values[0]], anchorTupleId: tuple.id }, () => done());
};
bolt.run();
