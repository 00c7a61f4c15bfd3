// Ordinary bolts and spouts in JavaScript, and broken ones: `node programs.js NAME`.
'use strict';
const fs = require('fs');
const path = require('path');
const readline = require('readline');

function send(message) {
  process.stdout.write(JSON.stringify(message) + '\nend\n');
}

class UpperBolt {
  handle(message) {
    if (Array.isArray(message)) return this.ids(message);
    if (message.stream === '__heartbeat') return send({command: 'sync'});
    if (message.stream === '__tick') return this.tick(message);
    this.process(message);
  }

  ids() {}

  tick(tup) {
    send({command: 'ack', id: tup.id});
  }

  process(tup) {
    send({command: 'emit', tuple: [tup.tuple[0].toUpperCase()], anchors: [tup.id]});
    send({command: 'ack', id: tup.id});
  }
}

class DiesOnItsTuple extends UpperBolt {
  process(tup) {
    tup.values[0].toUpperCase();
  }
}

class NeverAcks extends UpperBolt {
  process(tup) {
    send({command: 'emit', tuple: [tup.tuple[0]], anchors: [tup.id]});
  }

  tick() {}
}

class DiesOnTaskIds extends UpperBolt {
  ids(ids) {
    ids.tuple.push(1);
  }
}

class DiesOnATick extends UpperBolt {
  tick(tup) {
    this.process(tup);
  }
}

class RejectsOtherLetters extends UpperBolt {
  process(tup) {
    if (!/^[\x00-\x7f]*$/.test(tup.tuple[0])) throw new Error('not a text');
    super.process(tup);
  }
}

class DecodesEachRead extends UpperBolt {
  source() {
    const text = new (require('stream').PassThrough)();
    process.stdin.on('data', (data) => text.write(data.toString())).on('end', () => text.end());
    return text;
  }
}

class NumberSpout {
  constructor() {
    this.number = 0;
    this.pending = new Map();
  }

  handle(message) {
    if (Array.isArray(message)) return;
    this[message.command](message);
    send({command: 'sync'});
  }

  next() {
    const id = ++this.number;
    this.pending.set(id, id);
    send({command: 'emit', tuple: [id], id});
  }

  ack(message) {
    if (!this.pending.delete(message.id)) throw new Error(`${message.id} is not under way`);
  }

  fail(message) {
    if (!this.pending.has(message.id)) throw new Error(`${message.id} is not under way`);
    send({command: 'emit', tuple: [message.id], id: message.id});
  }

  activate() {}

  deactivate() {}
}

class DiesOnAnAck extends NumberSpout {
  ack(message) {
    this.acked.push(message.id);
  }
}

class HangsOnAFail extends NumberSpout {
  handle(message) {
    if (message.command === 'fail') return;
    super.handle(message);
  }
}

const classes = {
  UpperBolt, DiesOnItsTuple, NeverAcks, DiesOnTaskIds, DiesOnATick, RejectsOtherLetters, DecodesEachRead,
  NumberSpout, DiesOnAnAck, HangsOnAFail,
};
const program = new classes[process.argv[2]]();
let lines = [];
let ready = false;
const input = readline.createInterface({input: program.source ? program.source() : process.stdin, crlfDelay: Infinity});
input.on('line', (line) => {
  if (line !== 'end') {
    lines.push(line);
    return;
  }
  const message = JSON.parse(lines.join('\n'));
  lines = [];
  if (ready) {
    program.handle(message);
    return;
  }
  fs.writeFileSync(path.join(message.pidDir, String(process.pid)), '');
  send({pid: process.pid});
  ready = true;
});
input.on('close', () => process.exit(0));
